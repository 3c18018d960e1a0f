"""Benchmarks of commands: how long each takes, to a precision, and how many times faster one is than another."""

from equipoise.run.bench.measure import Bench, Stage
from equipoise.run.bench.timer import ProcessTimer, Run, Timer
from equipoise.run.bench.timings import Timing, Timings

__all__ = ["Bench", "ProcessTimer", "Run", "Stage", "Timer", "Timing", "Timings"]
