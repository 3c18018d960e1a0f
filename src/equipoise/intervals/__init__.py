"""
Confidence sequences for means, and intervals for those who do not look and decide.

A confidence sequence stays valid whatever the strategy did and whenever one looks. `Intervals` offers two kinds:
betting for arms with a bounded support, guaranteed, and an asymptotic kind for all other arms. Fixed-width intervals
are for arms that are stopped by the width of their intervals alone, and fixed-n intervals for numbers of samples that
were fixed beforehand. docs/explanation/intervals.md says which one to use and how often each of them was measured to
miss.
"""

from equipoise.intervals.sequences import (
    KINDS,
    PROMISES,
    Interval,
    Intervals,
    Kind,
    KindFunctions,
    default_kind,
    describe,
    describe_each,
    simultaneous,
)

__all__ = [
    "KINDS",
    "PROMISES",
    "Interval",
    "Intervals",
    "Kind",
    "KindFunctions",
    "default_kind",
    "describe",
    "describe_each",
    "simultaneous",
]
