"""
Confidence sequences for means, and fixed-n intervals for comparison.

A confidence sequence stays valid whatever the strategy did and whenever one looks. `Intervals` offers four kinds:
betting and empirical Bernstein for arms with a bounded support, both guaranteed; an asymptotic kind for all other arms;
and fixed-n intervals, which are not valid under adaptive stopping. docs/intervals.md says which one to use and how
often each of them was measured to miss.
"""

from equipoise.intervals.sequences import (
    KINDS,
    PROMISES,
    Interval,
    Intervals,
    Kernel,
    Kind,
    default_kind,
    describe,
    simultaneous,
)

__all__ = [
    "KINDS",
    "PROMISES",
    "Interval",
    "Intervals",
    "Kernel",
    "Kind",
    "default_kind",
    "describe",
    "simultaneous",
]
