"""
Six ways to store a table, timed on a busy machine until each mean is known to two percent.

A program whose times hardly differ needs few runs, and one that is disturbed now and then needs many: equipoise runs
each as often as its own noise demands, and stops it when it is known well enough. The times are drawn from 400 recorded
runs of each (timings.csv), so that the picture is always the same; `equipoise bench` measures programs as they run.
"""

import csv
from pathlib import Path
from random import Random

import altair as alt
import picture

import equipoise as eq

with (Path(__file__).parent / "timings.csv").open(encoding="utf-8") as file:
    recorded = list(csv.DictReader(file))
times = {program: [float(run[program]) for run in recorded] for program in recorded[0]}


def run(program: str, seed: int) -> float:
    """Return the milliseconds of processor time of a recorded run."""
    return Random(seed).choice(times[program])


result = eq.estimate(run, arms=list(times), precision="2%", seed=3)
print(result)
even = len(times) * max(result.counts.values())
print(f"Runs: {result.samples:,} instead of {even:,.0f}, had every program run as often as the noisiest.")

order = sorted(times, key=lambda program: result.means[program])
rows = [
    {"program": program, "mean": result.means[program], "runs": f"{result.counts[program]:,.0f} runs",
     "low": result.intervals()[program].low, "high": result.intervals()[program].high}
    for program in order
]  # fmt: skip
dots = [{"program": program, "time": time} for program in order for time in times[program][:150]]
scale = alt.Scale(type="log", domain=[0.4, 13], nice=False)
y = alt.Y("program:N", sort=order, title=None, axis=picture.names(order))
rain = alt.Chart(alt.Data(values=dots)).mark_tick(thickness=1.5, size=24, opacity=0.28, color=picture.BLUE).encode(
    x=alt.X("time:Q", scale=scale, title="milliseconds of processor time", axis=alt.Axis(values=[0.5, 1, 2, 5, 10])),
    y=y,
)  # fmt: skip
base = alt.Chart(alt.Data(values=rows)).encode(y=y)
bars = base.mark_bar(height=34, color=picture.ORANGE, cornerRadius=3).encode(x=alt.X("low:Q", scale=scale), x2="high:Q")
runs = base.mark_text(align="right", fontSize=picture.LABEL).encode(
    x=alt.value(470), text="runs:N", color=alt.value(picture.INK)
)
picture.save(
    (rain + bars + runs).properties(width=390, height=330),
    "programs.svg",
    "Run each program as often as its noise demands",
    f"Every mean to ±2% (orange) after {result.samples:,} runs; running each as often as the noisiest "
    f"would have taken {even:,.0f}",
)
