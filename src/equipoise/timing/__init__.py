"""Benchmarks of commands: how long each takes, to a precision, and how many times faster one is than another."""

from equipoise.timing.measure import Bench, Stage
from equipoise.timing.timer import ProcessTimer, Run, Timer
from equipoise.timing.timings import Timing, Timings

__all__ = ["Bench", "ProcessTimer", "Run", "Stage", "Timer", "Timing", "Timings"]
