"""Benchmarks of commands: how long each takes, to a precision, and how many times faster one is than another."""

from equipoise.timing.measure import Bench, BenchStage
from equipoise.timing.options import BenchOptions
from equipoise.timing.timer import ProcessTimer, Run, Timer
from equipoise.timing.timings import Timing, Timings

__all__ = ["Bench", "BenchOptions", "BenchStage", "ProcessTimer", "Run", "Timer", "Timing", "Timings"]
