"""The frozen result of a study."""

from equipoise.result.by_arm import ByArm, IntervalsByArm
from equipoise.result.certificate import Certificate
from equipoise.result.result import Combined, Result

__all__ = ["ByArm", "Certificate", "Combined", "IntervalsByArm", "Result"]
