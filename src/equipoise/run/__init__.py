"""Drive a study with samplers: here, in threads, on an event loop, on executors and clusters."""

from equipoise.run.estimate import estimate
from equipoise.run.progress import Progress

__all__ = ["Progress", "estimate"]
