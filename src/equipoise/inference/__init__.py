"""What is known: plain functions of what a study saw."""

from equipoise.inference.comparisons import Contrast, Differences

__all__ = ["Contrast", "Differences"]
