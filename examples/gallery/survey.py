"""
What is the mean rent in each of 19 districts, if interviewers can visit 1,500 of 21,000 households?

Some districts are large and some have fifty households, some are uniform and some mix palaces with cabins. No household
is visited twice, so that a small district is soon known well. equipoise sends the interviewers so that every mean rent
is known about equally well: to most households of the Dunes, and to one in a hundred of the East End.
"""

import altair as alt
import numpy as np
import picture

import equipoise as eq

# Row and column on the map, households, mean rent in euros, standard deviation of rents.
DISTRICTS = {
    "Harbour": (0, 2, 1400, 900, 420), "Old Mill": (0, 3, 380, 640, 90), "Northgate": (0, 4, 2100, 700, 160),
    "Dunes": (1, 1, 60, 1500, 500), "Fishmarket": (1, 2, 900, 760, 200), "Cathedral": (1, 3, 520, 1300, 620),
    "Orchard": (1, 4, 1700, 620, 110), "Quarry": (1, 5, 250, 520, 70),
    "West End": (2, 1, 2600, 1150, 380), "Arcades": (2, 2, 700, 1250, 480), "Market": (2, 3, 1100, 880, 260),
    "Station": (2, 4, 1900, 780, 210), "East End": (2, 5, 2300, 560, 100),
    "Meadows": (3, 1, 1300, 830, 180), "Hospital": (3, 2, 450, 690, 120), "University": (3, 3, 1600, 610, 240),
    "Gasworks": (3, 4, 800, 540, 130), "Islands": (4, 2, 50, 980, 450), "Southgate": (4, 3, 890, 720, 170),
}  # fmt: skip

rng = np.random.default_rng(3)
rents = {
    name: rng.gamma((mean / sd) ** 2, sd**2 / mean, households).round()
    for name, (_, _, households, mean, sd) in DISTRICTS.items()
}
households = sum(len(each) for each in rents.values())


def visit(strategy: str) -> eq.Result:
    return eq.estimate(lambda rent: rent, populations=rents, budget=1500, strategy=strategy, seed=1)


result, even = visit("auto"), visit("uniform")
widest = {name: float(each.intervals().margins.max()) for name, each in (("ours", result), ("even", even))}
print(result)
print(f"The least known mean rent: ±{widest['ours']:.0f} euros instead of ±{widest['even']:.0f}.")
print(
    f"Visited: {result.counts['Dunes'] / 60:.0%} of the Dunes, {result.counts['East End'] / 2300:.1%} of the East End."
)

margins = dict(zip(rents, result.intervals().margins, strict=True))
rows = [
    {"name": name, "row": row, "column": column + (0.5 if row % 2 else 0), "households": size,
     "visits": int(result.counts[name]), "rent": f"{result.means[name]:,.0f} ±{margins[name]:.0f}"}
    for name, (row, column, size, _, _) in DISTRICTS.items()
]  # fmt: skip
area = alt.Scale(domain=[0, 2600], range=[0, 5200])
base = alt.Chart(alt.Data(values=rows)).encode(
    x=alt.X("column:Q", axis=None, scale=alt.Scale(domain=[0.6, 5.9])),
    y=alt.Y("row:Q", axis=None, scale=alt.Scale(domain=[4.6, -0.35])),
)
outer = base.mark_circle(opacity=0.25, color=picture.BLUE).encode(
    size=alt.Size("households:Q", scale=area, legend=None)
)
inner = base.mark_circle(opacity=1, color=picture.BLUE).encode(size=alt.Size("visits:Q", scale=area, legend=None))
names = base.mark_text(dy=46, fontSize=14, fontWeight="bold", color=picture.INK).encode(text="name:N")
values = base.mark_text(dy=62, fontSize=14, color=picture.INK).encode(text="rent:N")
picture.save(
    (outer + inner + names + values).properties(width=560, height=600),
    "survey.svg",
    f"{households:,} households, 1,500 visits, 19 rents",
    f"All means are known to ±{widest['ours']:.0f} euros or better, instead of ±{widest['even']:.0f} with as many "
    "visits to each district\nOuter circle: households. Inner circle: visits",
)
