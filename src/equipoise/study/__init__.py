"""Ask which arm to sample next, tell what was seen."""

from equipoise.study.by_arm import ByArm, IntervalsByArm
from equipoise.study.certificate import Certificate
from equipoise.study.contrasts import Contrast, Differences
from equipoise.study.goal import Goal, Precision
from equipoise.study.result import Combined, Result
from equipoise.study.snapshot import Snapshot
from equipoise.study.study import Study
from equipoise.study.ticket import Ticket

__all__ = [
    "ByArm",
    "Certificate",
    "Combined",
    "Contrast",
    "Differences",
    "Goal",
    "IntervalsByArm",
    "Precision",
    "Result",
    "Snapshot",
    "Study",
    "Ticket",
]
