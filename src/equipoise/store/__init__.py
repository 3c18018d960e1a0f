"""The log of a study in SQLite or PostgreSQL, and the replicas that follow from it."""

from equipoise.store.database import STORE_FORMAT
from equipoise.store.events import Event
from equipoise.store.header import Header
from equipoise.store.log import Log, replay
from equipoise.store.replica import Replica, differences
from equipoise.store.turn import Turn

__all__ = ["STORE_FORMAT", "Event", "Header", "Log", "Replica", "Turn", "differences", "replay"]
