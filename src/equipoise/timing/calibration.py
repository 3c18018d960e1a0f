"""The time that a shell takes by itself, measured as precisely as the commands need it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from equipoise.run.commands import CommandError
from equipoise.timing.timer import Run, Timer, words_of
from equipoise.timing.timings import Overhead

# Runs of a shell that does nothing: those before any that count, and those in one block.
_WARMUP: Final = 3
BLOCK: Final = 50
# How many runs tell whether more of them would help, the most, and the most seconds that they may take.
_TELLING, _MOST, _SECONDS = 200, 5000, 10.0


class Calibration:
    """
    The shell's own time, by runs of it with nothing to do.

    Parameters
    ----------
    shell
        The shell.
    timer
        What runs it and times it.
    """

    def __init__(self, shell: str, timer: Timer) -> None:
        self.shell, self._timer = shell, timer
        self._runs: list[Run] = []

    def add(self) -> None:
        """Run the shell once more, as in each round of runs of the commands: its time drifts as everything does."""
        self._runs.append(self._run())

    def refine(self, blurs: Callable[[Overhead], Iterable[float]], begin: Callable[[], None]) -> Overhead:
        """
        Run the shell until its time is known well enough for the commands, and return it.

        That is a first block of runs, and then as many blocks as are needed; none where they would take too long.

        Parameters
        ----------
        blurs
            Returns how large the error of the shell's time is for each command that has been run, as `Overhead.blur`.
        begin
            Is called before the first run, if there is any.
        """
        more = not self._runs or self._vague(blurs)
        if more:
            begin()
            for _ in range(_WARMUP):
                self._run()
        while more:
            self._runs += [self._run() for _ in range(BLOCK)]
            more = self._vague(blurs)
        return self.overhead

    @property
    def overhead(self) -> Overhead:
        """The shell's own time, by its runs while the commands were run if there are enough of them."""
        enough = len(self._runs) >= 2 * BLOCK
        return Overhead.of(self.shell, self._runs[BLOCK if enough else 0 :])

    def hides(self, blur: float, overhead: Overhead) -> bool:
        """Return whether the error of the shell's time is too large for a command, and more runs would not help."""
        return blur > 1 and not self._attainable(blur, overhead)

    def _vague(self, blurs: Callable[[Overhead], Iterable[float]]) -> bool:
        """Return whether the shell's own time is not known well enough for a command, and can be."""
        overhead, few = self.overhead, len(self._runs) < _TELLING
        return any(blur > 1 and (few or self._attainable(blur, overhead)) for blur in blurs(overhead))

    def _attainable(self, blur: float, overhead: Overhead) -> bool:
        """Return whether more runs of the shell would make its error small enough for a command."""
        most = min(_MOST, _SECONDS / max(overhead.seconds, 1e-6))
        # Errors fall as the square root of the number of runs.
        return blur**2 * len(self._runs) < most

    def _run(self) -> Run:
        run = self._timer(words_of("", self.shell), "")
        if run.code != 0:
            raise CommandError(f"the shell {self.shell!r} failed: {run.said}")
        return run
