"""
What a benchmark of commands found: a summary of each one's times, and how many times faster the fastest is.

References
----------
.. [1] J. W. Tukey (1977), Exploratory Data Analysis, Addison-Wesley: values beyond three interquartile ranges are "far
   out".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist
from typing import Final, Literal

import numpy as np

from equipoise.base.arrays import Floats
from equipoise.intervals import asymptotic, fixed_width, t_mixture
from equipoise.timing import drift, ratios
from equipoise.timing.ratios import RatioInterval
from equipoise.timing.timer import Run

LEVEL: Final = 0.95
# Which interval the margin of a mean is of: that which stopped a command at its precision (either of the first two),
# one that holds whenever a person looks, or one for runs that nobody decided about by looking.
MarginKind = Literal["fixed-width", "anytime", "fixed-n"]
# The shell's own time is not known well enough for a command if its margin is more than this share of the target. The
# margins of the commands themselves have SHARP of it left: the two are added as errors are.
BLUR: Final = 0.3
SHARP: Final = math.sqrt(1 - BLUR**2)
# The target that this is judged by where none was given, as a share of the mean.
_SHARE: Final = 0.05
# Interquartile ranges beyond the quartiles, and the fewest runs of which quartiles say anything.
_FAR, _LEAST = 3.0, 8
# The fewest runs of which the standard deviation says about how many are needed.
_SOME: Final = 3


@dataclass(frozen=True)
class Overhead:
    """The time that a shell takes by itself, which is subtracted, with its standard error; and computing time in it."""

    shell: str
    seconds: float
    error: float
    user: float = 0.0
    system: float = 0.0

    @classmethod
    def of(cls, shell: str, runs: Sequence[Run]) -> Overhead:
        """Return that of a shell which was run with nothing to do."""
        seconds = np.array([run.seconds for run in runs])
        error = float(seconds.std(ddof=1)) / math.sqrt(len(seconds))
        user, system = (float(np.mean([getattr(run, kind) for run in runs])) for kind in ("user", "system"))
        return cls(shell, float(seconds.mean()), error, user, system)

    def blur(self, mean: float, target: float) -> float:
        """
        Return how large its error is for a command with this mean and this target, NaN for no target.

        It is too large above 1.
        """
        most = BLUR * (_SHARE * mean if math.isnan(target) else target)
        return 2 * self.error / most if most > 0 else math.inf

    def blurs(self, mean: float, target: float) -> bool:
        """Return whether its error is too large for a command with this mean and this target; NaN for no target."""
        return self.blur(mean, target) > 1


@dataclass(frozen=True)
class Timing:
    """
    The times of one command.

    Attributes
    ----------
    name, command
        The name it goes by, and its command line.
    runs
        Its runs, in order.
    seconds
        Their times, without the shell's own: below zero where a run took less than the shell does on average.
    margin
        Of the 95% interval of the mean, simultaneous over commands; infinite where too little is known.
    interval
        Which interval that is.
    target
        The margin that was asked for; NaN if none was.
    reached
        Whether it is reached.
    """

    name: str
    command: str
    runs: Sequence[Run]
    seconds: Floats
    margin: float
    target: float
    reached: bool
    interval: MarginKind = "fixed-width"

    @property
    def times(self) -> Floats:
        """Those of single runs as they are shown: a program takes no less than no time."""
        return np.maximum(self.seconds, 0)

    @property
    def mean(self) -> float:
        """The mean time, which is not below zero; NaN without runs."""
        return max(float(self.seconds.mean()), 0.0) if len(self.seconds) else math.nan

    @property
    def deviation(self) -> float:
        """The standard deviation of the times; NaN below two."""
        return float(self.seconds.std(ddof=1)) if len(self.seconds) > 1 else math.nan

    @cached_property
    def outliers(self) -> list[int]:
        """Which runs lie more than three interquartile ranges beyond the quartiles [1]_; none of fewer than eight."""
        if len(self.seconds) < _LEAST:
            return []
        low, high = np.quantile(self.seconds, [0.25, 0.75])
        far = _FAR * (high - low)
        found: list[int] = np.flatnonzero((self.seconds < low - far) | (self.seconds > high + far)).tolist()
        return found

    @property
    def failures(self) -> int:
        """How many runs ended with another exit code than 0."""
        return sum(run.code != 0 for run in self.runs)


@dataclass(frozen=True)
class Ratio:
    """How many times faster the fastest command is than another one; `times` is the ratio of their mean times."""

    fast: Timing
    slow: Timing
    times: RatioInterval


@dataclass(frozen=True)
class Timings:
    """
    What a benchmark of commands found.

    Attributes
    ----------
    commands
        The times of each command.
    order
        The place of the command of each run, in the order of all runs.
    precision, wanted
        What was asked for: a precision such as "5%", or a number of runs of each command; the other one is None.
    out_of_time
        Whether time was up.
    stopped
        Whether a person, a signal or a command that failed ended it.
    overhead
        The shell's own time; None where no shell was used.
    warmup
        Runs of each command before those that count.
    parameters
        The values of the parameters of each command, by its name.
    """

    commands: tuple[Timing, ...]
    order: tuple[int, ...]
    precision: str | float | None
    wanted: int | None
    out_of_time: bool
    stopped: bool
    overhead: Overhead | None
    warmup: int = 0
    parameters: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def reached(self) -> bool:
        """Whether all means have the precision that was asked for, or all commands as many runs."""
        return all(each.reached if self.wanted is None else len(each.runs) >= self.wanted for each in self.commands)

    @property
    def too_short(self) -> tuple[Timing, ...]:
        """The commands for whose times the shell's own is not known well enough."""
        if self.overhead is None:
            return ()
        return tuple(each for each in self.commands if self.overhead.blurs(each.mean, each.target))

    def computing(self, timing: Timing, what: Literal["user", "system"]) -> float:
        """Return the mean seconds of processor time of a command in the program or in the kernel, without the shell."""
        own = 0.0 if self.overhead is None else getattr(self.overhead, what)
        return max(float(np.mean([getattr(run, what) for run in timing.runs])) - own, 0.0)

    @property
    def left(self) -> tuple[float, float]:
        """
        About how many more runs are needed, of all commands together, and seconds; infinite where nobody knows.

        Those of commands for whose times the shell's own is not known well enough are left out.
        """
        runs, seconds, share = 0.0, 0.0, 1.0 if self.overhead is None else SHARP
        alpha = (1 - LEVEL) / len(self.commands)
        for each in self.commands:
            n = len(each.runs)
            if self.wanted is not None:
                more = float(self.wanted - n)
            elif each.reached or each in self.too_short:
                continue
            elif n < _SOME or not each.target > 0:
                return math.inf, math.inf
            else:
                more = float(_stopping(n, each.deviation, share * each.target, alpha) - n)
            runs += more
            seconds += more * float(np.mean([run.seconds for run in each.runs]))
        return runs, seconds

    @cached_property
    def drifts(self) -> bool:
        """Whether times changed in the course of the runs."""
        return drift.score(each.seconds for each in self.commands) > drift.DRIFT

    @cached_property
    def pairs(self) -> Floats:
        """The mean time of each command in each pair of rounds, a row for a pair."""
        following = [iter(each.seconds.tolist()) for each in self.commands]
        return drift.pairs(self.order, np.array([next(following[k]) for k in self.order]), len(self.commands))

    @cached_property
    def ratios(self) -> tuple[Ratio, ...]:
        """
        How many times faster the fastest command is than each other one, the fastest of those first.

        The intervals hold for all pairs of commands simultaneously (Bonferroni), and so for whichever is fastest. Where
        times drift, they are those of pairs of rounds in which all commands were run.
        """
        arms = len(self.commands)
        if arms < 2 or not all(len(each.seconds) for each in self.commands):
            return ()
        alpha = (1 - LEVEL) / (arms * (arms - 1) / 2)
        means = self.pairs.mean(axis=0) if self.drifts else np.array([each.mean for each in self.commands])
        first, *others = np.argsort(means, kind="stable").tolist()
        return tuple(Ratio(self.commands[first], self.commands[k], self._ratio(k, first, alpha)) for k in others)

    def _ratio(self, slow: int, fast: int, alpha: float) -> RatioInterval:
        if self.drifts:
            return ratios.of_pairs(self.pairs[:, slow], self.pairs[:, fast], alpha)
        error = 0.0 if self.overhead is None else self.overhead.error
        a, b = self.commands[slow].seconds, self.commands[fast].seconds
        return ratios.of_means(a, b, alpha, error, stopped=self.precision is not None)


def _stopping(n: int, deviation: float, target: float, alpha: float) -> int:
    """Return about which number of runs, above n, an interval at level 1 - alpha stops a command at a target."""
    z = NormalDist().inv_cdf(1 - alpha / 2)
    normal = math.ceil((z * deviation / target) ** 2)
    if deviation > 0:
        for t in range(max(n + 1, normal, int(t_mixture.first(alpha))), asymptotic.START):
            if t_mixture.half_width(t, alpha) * deviation <= target:
                return t
    # Equal times are not trusted before START of them; others have the fixed-width interval.
    return max(n + 1, normal, int(fixed_width.fewest(z)) if deviation > 0 else asymptotic.START)
