"""The frozen result of a study."""

from equipoise.inference.contrasts import Contrast, Differences
from equipoise.inference.strata import Combined
from equipoise.result.by_arm import ByArm, IntervalsByArm
from equipoise.result.certificate import Certificate
from equipoise.result.result import Result

__all__ = ["ByArm", "Certificate", "Combined", "Contrast", "Differences", "IntervalsByArm", "Result"]
