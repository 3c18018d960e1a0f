"""
A poll of six products: 3,000 customers are asked whether they like one product each.

Nearly everybody likes chilli chocolate and hardly anybody salted liquorice, so that a few answers settle them, while
opinion on cardamom coffee is divided. equipoise sends the customers where opinion is divided, and all six shares are
known about equally well.
"""

from random import Random

import altair as alt
import picture

import equipoise as eq

TASTE = {"chilli chocolate": 0.97, "oat ice cream": 0.90, "cardamom coffee": 0.52, "seaweed crisps": 0.31,
         "beet lemonade": 0.08, "salted liquorice": 0.04}  # fmt: skip


def likes(product: str, seed: int) -> bool:
    return Random(seed).random() < TASTE[product]


polls = {
    name: eq.estimate(likes, arms=list(TASTE), budget=3000, support="binary", strategy=strategy, seed=4)
    for name, strategy in (("even split", "uniform"), ("equipoise", "auto"))
}
widest = {name: 2 * max(poll.intervals().half_widths) for name, poll in polls.items()}
print(polls["equipoise"])
points = {name: f"{100 * width:.0f} points" for name, width in widest.items()}
print(f"The widest interval: {points['equipoise']} instead of {points['even split']}.")

rows = [
    {"product": product, "poll": name, "mean": poll.means[product], "count": int(poll.counts[product]),
     "low": poll.intervals()[product].low, "high": poll.intervals()[product].high}
    for name, poll in polls.items() for product in TASTE
]  # fmt: skip
colour = alt.Color("poll:N", scale=alt.Scale(domain=list(polls), range=[picture.ORANGE, picture.BLUE]))
base = alt.Chart(alt.Data(values=rows)).encode(
    y=alt.Y("product:N", sort=list(TASTE), title=None, axis=picture.names(TASTE)),
    yOffset=alt.YOffset("poll:N", sort=list(polls)),
    color=colour,
)
shares = base.encode(x=alt.X("low:Q", axis=alt.Axis(format="%", tickCount=3), title="share who like it: 95% intervals"))
intervals = shares.mark_bar(height=9, cornerRadius=5).encode(x2="high:Q")
ticks = shares.mark_tick(thickness=2, size=9, color=picture.CARD).encode(x="mean:Q", color=alt.value(picture.CARD))
bars = base.mark_bar(height=9, cornerRadiusEnd=5).encode(
    x=alt.X("count:Q", title="customers asked", axis=alt.Axis(tickCount=3)),
    y=alt.Y("product:N", sort=list(TASTE), axis=None),
)
picture.save(
    (intervals + ticks).properties(width=250, height=330) | bars.properties(width=130, height=330),
    "poll.svg",
    "Ask where opinion is divided",
    f"3,000 customers, six products: no interval is wider than {points['equipoise']}, instead of "
    f"{points['even split']} with as many customers for each",
)
