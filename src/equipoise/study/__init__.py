"""Ask which arm to sample next, tell what was seen."""

from equipoise.study.finite import FiniteResult
from equipoise.study.result import ByArm, Combined, Difference, Result
from equipoise.study.study import Study
from equipoise.study.ticket import Ticket

__all__ = ["ByArm", "Combined", "Difference", "FiniteResult", "Result", "Study", "Ticket"]
