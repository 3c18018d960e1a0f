"""Ask which arm to sample next, tell what was seen."""

from equipoise.study.certificate import Certificate
from equipoise.study.finite import FiniteResult
from equipoise.study.result import ByArm, Combined, Difference, IntervalsByArm, Result
from equipoise.study.study import Study
from equipoise.study.ticket import Ticket

__all__ = [
    "ByArm",
    "Certificate",
    "Combined",
    "Difference",
    "FiniteResult",
    "IntervalsByArm",
    "Result",
    "Study",
    "Ticket",
]
