"""The log of a study in SQLite or PostgreSQL, and the study that follows from it."""

from equipoise.store.fold import differences, fold, replay
from equipoise.store.journal import Journal
from equipoise.store.log import FORMAT, Event, Header, Store

__all__ = ["FORMAT", "Event", "Header", "Journal", "Store", "differences", "fold", "replay"]
