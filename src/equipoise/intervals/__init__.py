"""
Intervals for means that stay valid whatever the strategy did and whenever one looks, and the plain ones beside them.

`Intervals` holds the kinds: betting and empirical Bernstein for arms with a bounded support, at all times at once and
guaranteed; the asymptotic kind for others, called so; and the fixed-n kind of textbooks, which is not valid when one
looks and decides. `InOrder` brings samples that arrive in any order into the order of asking, which the first three
need. docs/intervals.md says which to use and what was measured.
"""

from equipoise.intervals.order import InOrder
from equipoise.intervals.sequences import (
    KINDS,
    PROMISES,
    Interval,
    Intervals,
    Kernel,
    Kind,
    default_kind,
    simultaneous,
)

__all__ = ["KINDS", "PROMISES", "InOrder", "Interval", "Intervals", "Kernel", "Kind", "default_kind", "simultaneous"]
