"""
A fairness audit: how often does a model reject loans that should have been granted, in each of twelve groups?

Experts must read a file to find out whether a decision was wrong, and files are expensive to read. equipoise asks for
more files where errors are frequent, until every group's error rate is known to two points, and then says which
groups differ from the largest one.
"""

from itertools import product

import altair as alt
import numpy as np
import picture

import equipoise as eq

AGES, PLACES = ("18 to 25", "26 to 40", "41 to 60", "over 60"), ("city", "suburb", "country")
FILES = (1800, 1300, 900, 3000, 2400, 1500, 2800, 2500, 2000, 1700, 1400, 1200)
WRONG = (0.07, 0.06, 0.13, 0.05, 0.04, 0.05, 0.04, 0.05, 0.04, 0.05, 0.06, 0.11)

rng = np.random.default_rng(11)
groups = [f"{age}, {place}" for age, place in product(AGES, PLACES)]
files = {
    group: (rng.permutation(size) < wrong * size).astype(float)
    for group, size, wrong in zip(groups, FILES, WRONG, strict=True)
}

result = eq.estimate(lambda wrong: wrong, populations=files, precision=0.02, support="binary", seed=5)
print(result)
reference = "26 to 40, city"
gaps = {group: result.difference(group, reference) for group in groups if group != reference}
higher = [group for group, gap in gaps.items() if gap.low > 0]
print(f"Read {result.samples:,} of {sum(FILES):,} files. Error rates above that of {reference}: {', '.join(higher)}.")

rows = [
    {"group": group, "rate": result.means[group], "low": result.intervals()[group].low, "files": result.counts[group],
     "high": result.intervals()[group].high, "verdict": "higher" if group in higher else "no difference found"}
    for group in groups
]  # fmt: skip
base = alt.Chart(alt.Data(values=rows)).encode(
    y=alt.Y("group:N", sort=groups, title=None, axis=alt.Axis(labelColor=picture.INK, labelFontSize=13, grid=True)),
    color=alt.Color("verdict:N", legend=None, scale=alt.Scale(range=[picture.ORANGE, picture.BLUE])),
)
x = alt.X(
    "low:Q",
    scale=alt.Scale(domain=[0, 0.17], nice=False),
    axis=alt.Axis(format="%", grid=False, tickCount=6),
    title="loans wrongly rejected, with 95% intervals",
)
line = alt.Chart(alt.Data(values=[r for r in rows if r["group"] == reference])).mark_rect(opacity=0.15)
band = line.encode(x="low:Q", x2="high:Q", color=alt.value(picture.BLUE))
bars = base.mark_bar(height=8, cornerRadius=4).encode(x=x, x2="high:Q")
points = base.mark_point(filled=True, size=110, opacity=1, stroke=picture.CARD, strokeWidth=2).encode(x="rate:Q")
counts = base.mark_text(align="right", fontSize=12).encode(
    x=alt.value(676), text=alt.Text("files:Q", format=","), color=alt.value(picture.SOFT)
)
picture.save(
    (band + bars + points + counts).properties(width=640, height=360),
    "audit.svg",
    f"{len(higher)} of 12 groups are wrongly rejected more often",
    f"than {reference} (shaded). Every rate is known to two points after {result.samples:,} of {sum(FILES):,} files",
)
