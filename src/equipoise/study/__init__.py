"""Ask which arm to sample next, tell what was seen."""

from equipoise.study.finite import FiniteResult
from equipoise.study.result import ByArm, Difference, Result
from equipoise.study.study import Study
from equipoise.study.ticket import Ticket

__all__ = ["ByArm", "Difference", "FiniteResult", "Result", "Study", "Ticket"]
