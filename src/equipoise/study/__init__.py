"""Ask which arm to sample next, tell what was seen."""

from equipoise.study.protocol import StudyLike, TicketLike
from equipoise.study.study import Study

__all__ = ["Study", "StudyLike", "TicketLike"]
