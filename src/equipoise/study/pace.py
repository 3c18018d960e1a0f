"""How fast samples come, by the clock on the wall."""

from __future__ import annotations

import numpy as np

from equipoise.base.arrays import Floats, Ints

# The pace is that of the last half of the samples, in as many parts, of which the median counts: pauses do not.
PARTS = 8
# There is a point whenever the samples have grown by this factor, and the latest.
STEP = 1 + 1 / 64


class Pace:
    """
    How fast samples come.

    Parameters
    ----------
    now, samples
        The time in seconds, and how many samples there are at that time.
    """

    def __init__(self, now: float, samples: int) -> None:
        self._times, self._samples = [now], [samples]

    def note(self, now: float, samples: int) -> None:
        """Note how many samples there are now."""
        if len(self._samples) > 1 and samples - self._samples[0] < STEP * (self._samples[-2] - self._samples[0]) + 1:
            self._times[-1], self._samples[-1] = now, samples
        elif samples > self._samples[-1]:
            self._times.append(now)
            self._samples.append(samples)

    @property
    def seconds(self) -> float | None:
        """Seconds from one sample to the next; None before the first."""
        first, last = self._samples[0], self._samples[-1]
        if last == first:
            return None
        ends = np.linspace((first + last) / 2, last, PARTS + 1)
        times = np.interp(ends, self._samples, self._times)
        return float(np.median(np.diff(times))) / float(ends[1] - ends[0])


def by_arm(each: float, arms: Ints, seconds: Floats, places: int) -> Floats:
    """
    Return the seconds from one sample to the next if only one arm is sampled, in the arms' order.

    Parameters
    ----------
    each
        Seconds from one sample to the next lately.
    arms, seconds
        Of each sample, in the order of asking: the place of its arm, and how long it took; NaN where nobody knows.
    places
        The number of arms.
    """
    known = np.isfinite(seconds)
    arms, seconds = arms[known], seconds[known]
    lately = seconds[len(seconds) // 2 :]
    if not lately.sum() > 0:
        return np.full(places, each)
    counts = np.bincount(arms, minlength=places)
    own = np.bincount(arms, seconds, places) / np.maximum(counts, 1)
    return np.asarray(each * np.where(counts > 0, own / lately.mean(), 1.0))
