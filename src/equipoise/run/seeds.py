"""
The seed of an arm's i-th sample: a pure function of (seed, arm, i).

The seed of the study and the arm's name are hashed to a 64-bit number, the base. The i-th seed is the i-th output of
SplitMix64 [1]_ from that base, which needs no state: a multiple of a constant, mixed. So it does not depend on where,
when or in what order samples are taken.

References
----------
.. [1] G. L. Steele, D. Lea, C. H. Flood (2014), Fast splittable pseudorandom number generators. OOPSLA '14.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.base.arrays import Ints
from equipoise.store.plain import dumps

Seeds = npt.NDArray[np.uint64]

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_64 = (1 << 64) - 1
_27, _30, _31 = np.uint64(27), np.uint64(30), np.uint64(31)


def base(seed: int, arm: Any) -> int:
    """Return the base of an arm's seeds. A name that cannot be saved in a store counts by its repr."""
    try:
        name = dumps(arm)
    except TypeError:
        name = repr(arm)
    return int.from_bytes(hashlib.blake2b(f"{seed}:{name}".encode(), digest_size=8).digest(), "little")


def seeds(base: int, indices: Ints) -> Seeds:
    """Return the seeds of the samples i of an arm with this base: integers below 2^64."""
    with np.errstate(over="ignore"):
        z = np.uint64(base) + (indices.astype(np.uint64) + np.uint64(1)) * _GAMMA
        z = (z ^ (z >> _30)) * _M1
        z = (z ^ (z >> _27)) * _M2
        return np.asarray(z ^ (z >> _31))


def seed(base: int, index: int) -> int:
    """Return the seed of one sample; plain integers are faster here than arrays of one."""
    z = (base + (index + 1) * 0x9E3779B97F4A7C15) & _64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _64
    return z ^ (z >> 31)


def order(base: int, size: int) -> Ints:
    """Return the numbers 0 to size - 1 in a random order that the base decides."""
    # A base other than that of the samples' seeds, so that an item's place says nothing about them.
    return np.argsort(seeds(base ^ 0x5DEECE66D, np.arange(size)), kind="stable")


def ranks(places: Ints) -> Ints:
    """Return, for each ticket by its arm, how many tickets of that arm come before it."""
    by_arm = np.argsort(places, kind="stable")
    ordered = places[by_arm]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(places) else np.zeros(0, np.int64)
    found = np.empty(len(places), np.int64)
    found[by_arm] = np.arange(len(places)) - np.repeat(starts, np.diff(np.r_[starts, len(places)]))
    return found
