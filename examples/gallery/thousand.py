"""
A thousand sensors, some ten times noisier than others, and 400,000 readings in all.

With as many readings of each, a mean is as good as its sensor: the noisiest are known ten times worse than the
quietest. equipoise finds out how noisy each one is on the way, and reads the noisy ones more often: no mean is much
worse than the others.
"""

from functools import partial

import altair as alt
import numpy as np
import picture

import equipoise as eq

noise = np.geomspace(0.4, 4, 1000)  # which nobody knows beforehand


def study(strategy: str) -> eq.Result:
    rng = np.random.default_rng(2)
    sensors = {k: partial(rng.normal, 20.0, sd) for k, sd in enumerate(noise)}  # called with the number of readings
    return eq.estimate(sensors, budget=400_000, strategy=strategy)


results = {"even split": study("uniform"), "equipoise": study("auto")}
errors = {name: noise / np.sqrt(np.asarray(result.counts)) for name, result in results.items()}
worst = {name: float(each.max()) for name, each in errors.items()}
best = float(np.sqrt((noise**2).sum() / 400_000))
print(f"Standard error of the least known sensor: {worst['equipoise']:.3f} instead of {worst['even split']:.3f}.")
print(f"With all noise known beforehand it would be {best:.3f}.")

rows = [
    {"noise": round(sd, 3), "error": round(error, 4), "split": name}
    for name, each in errors.items()
    for sd, error in zip(noise, each, strict=True)
]
base = alt.Chart(alt.Data(values=rows)).encode(
    x=alt.X("noise:Q", scale=alt.Scale(type="log", nice=False, padding=8), title="standard deviation of a reading",
            axis=alt.Axis(values=[0.5, 1, 2, 4], grid=False)),
    y=alt.Y("error:Q", scale=alt.Scale(type="log", nice=False, padding=8), title="standard error of a sensor's mean",
            axis=alt.Axis(values=[0.02, 0.05, 0.1, 0.2])),
    color=alt.Color("split:N", scale=alt.Scale(domain=list(results), range=[picture.ORANGE, picture.BLUE])),
)  # fmt: skip
line = base.transform_filter("datum.split == 'even split'").mark_line(strokeWidth=5, strokeCap="round")
dots = base.transform_filter("datum.split == 'equipoise'").mark_circle(size=26, opacity=0.55)
picture.save(
    (line + dots).properties(width=520, height=360),
    "thousand.svg",
    "A thousand sensors: more readings where there is more noise",
    f"400,000 readings of 1,000 sensors: the largest standard error is {worst['equipoise']:.3f} instead of "
    f"{worst['even split']:.3f}",
)
