"""
A fairness audit: in which of twelve groups does a model reject loans that should have been granted more often?

Experts must read a file to find out whether a decision was wrong. What is wanted are the differences between each group
and the largest one, so that equipoise is asked for these, to three points, and has the largest group read most. All
intervals hold at once: one may point at the worst group afterwards.
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
largest = "26 to 40, city"

wanted = eq.Contrasts(0.03, to=largest)
result = eq.estimate(lambda wrong: wrong, populations=files, precision=wanted, support="binary", seed=2)
print(result)
differences = result.compare(to=largest)
print(differences)
others = [group for group in groups if group != largest]
higher = [group for group in others if differences[group, largest].low > 0]
print(f"Higher than {largest}: {' and '.join(higher)}. Files read: {result.samples:,} instead of {sum(FILES):,}.")

rows = [
    {"group": group, "difference": 100 * found.value, "low": 100 * found.low, "high": 100 * found.high,
     "files": f"{result.counts[group]:,.0f} files", "higher": group in higher}
    for group in others for found in [differences[group, largest]]
]  # fmt: skip
base = alt.Chart(alt.Data(values=rows)).encode(
    y=alt.Y("group:N", sort=others, title=None, axis=picture.names(others)),
    color=alt.condition("datum.higher", alt.value(picture.ORANGE), alt.value(picture.BLUE)),
)
title = ["percentage points above", f"{largest} ({result.counts[largest]:,.0f} files), with 95% intervals"]
x = alt.X("low:Q", title=title, axis=alt.Axis(grid=False, tickCount=4))
zero = alt.Chart(alt.Data(values=[{"zero": 0}])).mark_rule(strokeWidth=2, color=picture.SOFT).encode(x="zero:Q")
bars = base.mark_bar(height=8, cornerRadius=4).encode(x=x, x2="high:Q")
points = base.mark_point(filled=True, size=110, opacity=1, stroke=picture.CARD, strokeWidth=2).encode(x="difference:Q")
counts = base.mark_text(align="right", fontSize=picture.SMALL).encode(
    x=alt.value(400), text="files:N", color=alt.value(picture.SOFT)
)
picture.save(
    (zero + bars + points + counts).properties(width=320, height=380),
    "audit.svg",
    f"In {len(higher)} of 11 groups, wrong rejections are clearly more common",
    f"Every difference is known to three points after {result.samples:,} of {sum(FILES):,} files",
)
