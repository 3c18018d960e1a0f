"""What is known: plain functions of what a study saw."""

from equipoise.inference.contrasts import Contrast, Differences
from equipoise.inference.known import Known

__all__ = ["Contrast", "Differences", "Known"]
