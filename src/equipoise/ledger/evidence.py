"""
Each arm's answers in the order of asking, and what can be said of them.

Confidence sequences need each arm's samples in the order in which they were asked for (`intervals.Intervals`). A
study keeps all its tickets in that order, so that nothing need be done when one is asked for or answered: whoever looks
lines up the answers since the last look. An arm's line ends at its first ticket in flight. A ticket that was given up
or declined is passed over, for good: what comes later does not enter, whether somebody looked meanwhile or not. So a
line only grows, and is the same whenever one looks.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.compiled import jit
from equipoise.intervals import Intervals, Kind, default_kind
from equipoise.ledger.state import ANSWERED, IN_FLIGHT
from equipoise.strategies import Support

# Of tickets, which have 32 bits in a log.
Numbers = npt.NDArray[np.uint32]
# A kind of intervals, or the bets on finite populations of zeros and ones that sums are made of.
Bets = Kind | Literal["pools"]
# What sequences are tuned to; any other level may be asked for.
LEVEL = 0.95
# A state of more numbers than this is not made for the sake of a few arms.
MANY = 1_000_000
# So many samples are looked at in one go, so that a look at very many takes little memory.
_BLOCK = 1 << 16
# Slow answers are compared with fast ones within blocks of this many samples or a little more.
BLOCK = 10
# The share of an arm's samples that are its tails, and the most samples whose tails are looked at, which takes 0.1 s.
TAIL = 0.02
RANKED = 200_000


@cache
def _follower(update: Callable[..., None]) -> Any:
    def follow(tickets: Any, order: Any, start: int, stop: int, rows: Any, state: Any, settings: Any) -> None:
        for i in range(start, stop):
            ticket = tickets[order[i]]
            if rows[ticket.arm] >= 0:
                update(state, rows[ticket.arm], ticket.value, settings)

    return jit(follow, nogil=True)


class Lines:
    """The lines of a study's arms, as far as somebody looked."""

    def __init__(self, arms: int, support: Support, budget: int | None, populations: Floats | None = None) -> None:
        self.arms, self.support, self.budget = arms, support, budget
        self.populations = None if populations is None else tuple(populations.tolist())
        # The tickets in line, in the order of asking; and those that wait for one before them.
        self._order: Numbers = np.empty(0, np.uint32)
        self._size = self._scanned = 0
        # Whether the samples in line are all 0 or 1.
        self._binary = True
        self._waiting = np.empty(0, np.int64)
        # By kind, a state and how many tickets of the order are in it; for one thread at a time.
        self.lock = threading.Lock()
        self.states: dict[Bets, tuple[Floats, int]] = {}
        # In the same way.
        self.powers: tuple[Powers, int] = Powers.none(arms), 0

    def look(self, tickets: Any, answered: Answered, missing: Ints, binary: bool, seconds: Floats | None) -> Evidence:
        """
        Return what the tickets say now.

        Parameters
        ----------
        tickets, answered
            All tickets, and what became of them.
        missing
            Tickets of each arm that are in flight or were given up.
        binary
            Whether the moments of all samples, in line or not, are those of zeros and ones.
        seconds
            How long each sample took, by the tickets' ids.
        """
        self._line_up(tickets, answered.asked)
        return Evidence(self, tickets, self._order, self._size, answered, missing, self._binary and binary, seconds)

    def _line_up(self, tickets: Any, stop: int) -> None:
        """Append the tickets before the id `stop` whose turn has come."""
        ids = np.concatenate([self._waiting, np.arange(self._scanned, stop)])
        self._scanned = stop
        status, arms = tickets["status"][ids], tickets["arm"][ids]
        # A ticket that was declined or ever given up is passed over, for good.
        kept = (status == IN_FLIGHT) | (status == ANSWERED)
        ids, arms, in_flight = ids[kept], arms[kept], (status == IN_FLIGHT)[kept]
        # The line of an arm ends at its first ticket in flight.
        waiting_from = np.full(self.arms if in_flight.any() else 0, len(ids))
        np.minimum.at(waiting_from, arms[in_flight], np.flatnonzero(in_flight))
        waits = np.arange(len(ids)) >= waiting_from[arms] if len(waiting_from) else in_flight
        self._append(ids[~waits])
        if self._binary:
            values = tickets["value"][ids[~waits]]
            self._binary = bool(((values == 0) | (values == 1)).all())
        self._waiting = ids[waits]

    def _append(self, ids: Ints) -> None:
        size = self._size + len(ids)
        if size > len(self._order):
            # A new array, as the evidence of earlier looks holds on to the old one.
            order = np.empty(max(size, 2 * len(self._order)), np.uint32)
            order[: self._size] = self._order[: self._size]
            self._order = order
        self._order[self._size : size] = ids
        self._size = size


@dataclass(frozen=True)
class Powers:
    """
    Sums of powers of the deviations of each arm's samples from their mean.

    Attributes
    ----------
    first, mean
        The first sample, and the mean relative to it, for the digits of means far from 0.
    count, m2, m3, m4
        How many there are, and the sums of the deviations to the powers 2, 3 and 4.
    """

    first: Floats
    count: Floats
    mean: Floats
    m2: Floats
    m3: Floats
    m4: Floats

    @staticmethod
    def none(arms: int) -> Powers:
        """Return those of no samples."""
        return Powers(*(np.zeros(arms) for _ in range(6)))

    def merged(self, arms: Ints, values: Floats) -> Powers:
        """Return those of these samples and more, which have the places of their arms."""
        K, na = len(self.count), self.count
        # From behind, so that the first of an arm is written last.
        first, unseen = self.first.copy(), (na[arms] == 0)[::-1]
        first[arms[::-1][unseen]] = values[::-1][unseen]
        nb = np.bincount(arms, minlength=K).astype(float)
        n = na + nb
        with np.errstate(all="ignore"):
            deviations = values - first[arms]
            mean = np.bincount(arms, deviations, K) / np.maximum(nb, 1)
            deviations -= mean[arms]
            squares = deviations * deviations
            b2, b3, b4 = (np.bincount(arms, each, K) for each in (squares, squares * deviations, squares * squares))
            # The formulas of P. Pébay (2008) for merging two sets of samples.
            d, a, b = np.where(na * nb > 0, mean - self.mean, 0.0), na / np.maximum(n, 1), nb / np.maximum(n, 1)
            return Powers(
                first,
                n,
                np.where(na > 0, self.mean + d * b, mean),
                self.m2 + b2 + d**2 * na * b,
                self.m3 + b3 + d**3 * na * b * (a - b) + 3 * d * (a * b2 - b * self.m2),
                self.m4 + b4 + d**4 * na * b * (a * a - a * b + b * b)
                + 6 * d**2 * (a * a * b2 + b * b * self.m2) + 4 * d * (a * b3 - b * self.m3),
            )  # fmt: skip


@dataclass(frozen=True)
class Answered:
    """
    How many tickets were handed out, and what became of those that were not answered.

    Attributes
    ----------
    asked
        Tickets handed out: as many were answered as are none of the following.
    given_up, in_flight, declined, withdrawn
        Tickets that were forgotten and never answered; that are waited for; that were declined; that were given back
        without being sampled, as their arm was retired or had no more samples.
    """

    asked: int
    given_up: int
    in_flight: int
    declined: int
    withdrawn: int = 0

    @property
    def share(self) -> float:
        """The share of the tickets that were sampled and are not in flight that was given up."""
        settled = self.asked - self.in_flight - self.withdrawn
        return self.given_up / settled if settled else 0.0


class Evidence:
    """
    What was seen up to one look, in the order of asking; later answers do not change it.

    Pickled, it keeps what can be asked of it and not the samples.
    """

    def __init__(
        self,
        lines: Lines,
        tickets: Any,
        order: Numbers,
        size: int,
        answered: Answered,
        missing: Ints,
        binary: bool,
        seconds: Floats | None,
    ) -> None:
        self._lines: Lines | None = lines
        self.arms, self.support, self._budget = lines.arms, lines.support, lines.budget
        self._populations = lines.populations
        self._tickets, self._order, self._size = tickets, order, size
        self.answered = answered
        self._missing = missing
        # Nobody said so, but all samples are 0 or 1.
        self.recognised = lines.support is None and binary and size > 0
        self._seconds = seconds
        self._states: dict[Bets, Floats] = {}
        self._powers: Powers | None = None
        self._skewness: Floats | None = None
        self._heavy: Bools | None = None
        self._slow: Floats | None = None
        self._slow_bias: Floats | None = None

    def intervals(self, kind: Bets | None = None) -> Intervals:
        """The sequences of a kind, as they were tuned before the first sample; of binary arms if recognised as such."""
        support: Support = "binary" if self.recognised else self.support
        if kind == "pools":
            support, kind = (0.0, 1.0), "betting"
        kind = kind or default_kind(support)
        pools = self._populations if kind == "betting" and support != "binary" else None
        return Intervals(self.arms, support, kind, LEVEL, self._budget, pools)

    def state(self, kind: Bets) -> Floats:
        """The state of the sequences of this kind. Each sample enters once, however often one looks."""
        if kind not in self._states:
            assert self._lines is not None
            with self._lines.lock:
                state, done = self._lines.states.get(kind, (None, 0))
                if state is None or done > self._size:  # by a later look
                    state, done = self.intervals(kind).start(), 0
                self._follow(kind, state, done, np.arange(self.arms))
                known = self._lines.states.get(kind, (None, 0))[1]
                if self._size >= known:
                    self._lines.states[kind] = state, self._size
                self._states[kind] = state.copy()
        return self._states[kind]

    def state_of(self, kind: Bets, places: Sequence[int]) -> Floats:
        """The rows of some arms: where there are very many, the others' need not be made."""
        sequences = self.intervals(kind)
        if kind in self._states or self._lines is None or self.arms * sequences.kernel.columns <= MANY:
            return np.asarray(self.state(kind)[np.asarray(places)])
        rows = np.full(self.arms, -1)
        # The same place twice has the same row.
        some, which = np.unique(np.asarray(places), return_inverse=True)
        rows[some] = np.arange(len(some))
        state = sequences.start(some)
        self._follow(kind, state, 0, rows)
        return np.asarray(state[which])

    def _follow(self, kind: Bets, state: Floats, start: int, rows: Ints) -> None:
        kernel = self.intervals(kind).kernel
        _follower(kernel.update)(self._tickets, self._order, start, self._size, rows, state, kernel.settings)

    def samples(self) -> list[Floats] | None:
        """Return the samples of each arm, in the order of asking; None where they are not known any more."""
        if self._tickets is None:
            return None
        ids = self._order[: self._size]
        arms = self._tickets["arm"][ids]
        sizes = np.bincount(arms, minlength=self.arms)
        return np.split(self._tickets["value"][ids[np.argsort(arms, kind="stable")]], np.cumsum(sizes)[:-1])

    def since(self, start: int, stop: int | None = None) -> tuple[Ints, Floats]:
        """Return the arms and values of the samples in line from a position on, by arm in the order of asking."""
        assert self._tickets is not None
        ids = self._order[start : self._size if stop is None else min(stop, self._size)]
        return self._tickets["arm"][ids].astype(np.int64), self._tickets["value"][ids]

    @property
    def powers(self) -> Powers:
        """The powers of each arm's samples in line. Each sample enters once, however often one looks."""
        if self._powers is None:
            assert self._lines is not None
            with self._lines.lock:
                known, done = self._lines.powers
                if done > self._size:  # by a later look
                    known, done = Powers.none(self.arms), 0
                for start in range(done, self._size, _BLOCK):
                    known = known.merged(*self.since(start, start + _BLOCK))
                if self._size >= self._lines.powers[1]:
                    self._lines.powers = known, self._size
            self._powers = known
        return self._powers

    @property
    def skewness(self) -> Floats:
        """The skewness of each arm's samples; 0 where there are fewer than three or they are all equal."""
        if self._skewness is None:
            count, m2, m3 = self.powers.count, self.powers.m2, self.powers.m3
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                skewness = np.sqrt(count) * m3 / m2**1.5
            self._skewness = np.where((count >= 3) & (m2 > 0) & np.isfinite(skewness), skewness, 0.0)
        return np.asarray(self._skewness)

    @property
    def heavy(self) -> Bools:
        """
        Which arms' variances rest on few samples, so that an interval that rests on the variance may be too narrow.

        Looked at is the share of the sum of squared deviations that the two percent of the samples farthest from the
        mean make, less what they make of exponential samples on average. An arm is heavy if its excess is too large for
        the largest of as many exponential arms, or if that of all arms together is too large and its own is above one
        standard error. And the standard error of its variance, by the fourth moment, is at least 5% of it. At most 5%
        of studies with exponential samples have such an arm, and none with Gaussian ones. Not told of fewer than 50
        samples, nor in studies of more than 200,000.
        """
        if self._heavy is None:
            ids = np.sort(self._order[: self._size if self._size <= RANKED else 0])
            arms, values = self._tickets["arm"][ids].astype(np.int64), self._tickets["value"][ids]
            self._heavy = _heavy_tails(arms, values, self.arms)
        return self._heavy

    @property
    def slow(self) -> Floats | None:
        """
        For each arm, the probability that values that have nothing to do with how long they took look as these do.

        By Spearman's rank correlation of values and seconds within blocks of about ten samples that were asked for one
        after the other: warming up, and whatever else changes values and seconds with time, makes no difference between
        slow and fast answers of one time. The variance of the sum over blocks is that of random order, whatever the
        ties, or that which the blocks show, if it is larger, as where neighbouring samples are alike. NaN where there
        are fewer than 20 samples, or where all are alike; None where nobody told how long samples took.
        """
        if self._slow is None and self._seconds is not None:
            arms, values, seconds = self._timed
            self._slow = _rank_tests(arms, values, seconds, self.arms)
        return self._slow

    @property
    def slow_bias(self) -> Floats | None:
        """
        By about how much each mean is off if the answers that are missing are like the slower half of the others.

        Missing are those in flight and those given up: their share of the arm's, times the difference between the mean
        of the slower half and the mean. None where nobody told how long samples took.
        """
        if self._slow_bias is None and self._seconds is not None:
            arms, values, seconds = self._timed
            sizes = np.bincount(arms, minlength=self.arms)
            slower = _ranks(seconds, arms) > (sizes[arms] + 1) / 2
            with np.errstate(invalid="ignore", divide="ignore"):
                of_all = np.bincount(arms, values, self.arms) / sizes
                of_slower = np.bincount(arms, values * slower, self.arms) / np.bincount(arms, slower, self.arms)
                bias = self._missing / (self._missing + sizes) * (of_all - of_slower)
            self._slow_bias = np.nan_to_num(bias, posinf=0.0, neginf=0.0)
        return self._slow_bias

    @property
    def _timed(self) -> tuple[Ints, Floats, Floats]:
        """Arms, values and seconds of the samples in line whose seconds are known, in the order of asking."""
        assert self._seconds is not None
        ids = self._order[: self._size]
        ids = np.sort(ids[ids < len(self._seconds)])
        ids = ids[np.isfinite(self._seconds[ids])]
        return self._tickets["arm"][ids].astype(np.int64), self._tickets["value"][ids], self._seconds[ids]

    def __getstate__(self) -> dict[str, Any]:
        kinds: list[Bets] = ["asymptotic", "fixed-width"]
        if self.support is not None or self.recognised:
            kinds.append("betting")
        if self._populations is not None and (self.recognised or self.support == "binary"):
            kinds.append("pools")
        for kind in kinds:
            self.state(kind)
        known = {
            "_powers": self.powers,
            "_skewness": self.skewness,
            "_heavy": self.heavy,
            "_slow": self.slow,
            "_slow_bias": self.slow_bias,
        }
        return self.__dict__ | known | {"_lines": None, "_tickets": None, "_order": None, "_seconds": None}


def _ranks(values: Floats, groups: Ints) -> Floats:
    """Return ranks from 1 on within each group; equal values share the mean of theirs."""
    order = np.lexsort((values, groups))
    sorted_values, sorted_groups = values[order], groups[order]
    place = np.arange(len(values))
    of_group = np.concatenate([[True], sorted_groups[1:] != sorted_groups[:-1]])[: len(values)]
    of_tie = of_group | np.concatenate([[True], sorted_values[1:] != sorted_values[:-1]])[: len(values)]
    first = np.maximum.accumulate(np.where(of_group, place, 0))
    tie = np.cumsum(of_tie) - 1
    ranks = np.empty(len(values))
    ranks[order] = (np.bincount(tie, place) / np.bincount(tie))[tie] - first + 1
    return ranks


def _heavy_tails(arms: Ints, values: Floats, K: int) -> Bools:
    """Return which arms are heavy, as `Evidence.heavy` says."""
    n = np.bincount(arms, minlength=K)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # Relative to a sample of the arm, for the digits of means that are far from 0.
        first = np.zeros(K)
        first[arms[::-1]] = values[::-1]
        shifted = values - first[arms]
        squares = np.square(shifted - (np.bincount(arms, shifted, K) / n)[arms])
        m2 = np.bincount(arms, squares, K)
        relative = squares / m2[arms]
        uncertain = np.bincount(arms, relative * relative, K) - 1 / n >= 0.05**2
        # The largest of each arm have the highest ranks.
        far = _ranks(relative, arms) > (n - np.ceil(TAIL * n))[arms]
        told = (n >= 1 / TAIL) & (m2 > 0)
        excess = np.where(told, np.bincount(arms, relative * far, K) - _tail_of_exponential(n), 0.0)
        # In standard errors, which are nearly 1.05/sqrt(n); the largest has the tail of an exponential law.
        alone = excess * np.sqrt(n) > 0.6 + 0.48 * np.log(40 * max(told.sum(), 1))
        together = excess.sum() > 1.7 * math.sqrt((1.1 / n[told]).sum())
        return np.asarray(told & uncertain & (alone | (together & (excess * np.sqrt(n) > 1.05))))


def _tail_of_exponential(n: Ints) -> Floats:
    """Return the share of the squared deviations that the tail of n exponential samples makes, on average or more."""
    # The integral of (x - 1)² beyond the quantile -log(t), less what few samples do not show.
    t = np.ceil(TAIL * n) / n
    return np.asarray(t * (np.log(t) ** 2 + 1) - 3 / n)


def _rank_tests(arms: Ints, values: Floats, seconds: Floats, K: int) -> Floats:
    """Return the probabilities of `Evidence.slow`, of samples in the order of asking."""
    sizes = np.bincount(arms, minlength=K)
    order = np.argsort(arms, kind="stable")
    arms, values, seconds = arms[order], values[order], seconds[order]
    # The blocks of an arm, as even as can be: sample i of n is in block i m // n of m.
    blocks_of = np.maximum(sizes // BLOCK, 1)
    i = np.arange(len(arms)) - (np.cumsum(sizes) - sizes)[arms]
    block = (np.cumsum(blocks_of) - blocks_of)[arms] + i * blocks_of[arms] // np.maximum(sizes[arms], 1)
    B = int(blocks_of.sum())
    owner, length = np.repeat(np.arange(K), blocks_of), np.bincount(block, minlength=B)
    x, y = (_ranks(each, block) - (length[block] + 1) / 2 for each in (values, seconds))
    sums, xx, yy = (np.bincount(block, product, B) for product in (x * y, x * x, y * y))
    total = np.bincount(owner, sums, K)
    in_random_order = np.bincount(owner, xx * yy / np.maximum(length - 1, 1), K)
    deviations = sums - (total / blocks_of)[owner]
    as_shown = np.bincount(owner, deviations * deviations, K) * blocks_of / np.maximum(blocks_of - 1, 1)
    variance = np.maximum(in_random_order, as_shown)
    tested = (sizes >= 2 * BLOCK) & (in_random_order > 0)
    found = np.full(K, math.nan)
    found[tested] = [math.erfc(z) for z in (np.abs(total[tested]) / np.sqrt(2 * variance[tested])).tolist()]
    return found
