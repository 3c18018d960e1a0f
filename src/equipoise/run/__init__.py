"""Drive a study with samplers: here, in threads, on an event loop, on executors; or by hand, in a store."""

from equipoise.run.estimate import estimate
from equipoise.run.progress import Progress
from equipoise.run.shared import SharedStudy, open_study

__all__ = ["Progress", "SharedStudy", "estimate", "open_study"]
