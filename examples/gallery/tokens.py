"""
How good is a language model at ten kinds of tasks, if ten million tokens are all that can be spent?

An attempt at a proof takes thirty times as many tokens as a question of trivia, and what it took is known only
afterwards. equipoise buys attempts where the pass rate is still uncertain, and charges each with what it really cost,
until the tokens are gone.
"""

from random import Random

import altair as alt
import picture

import equipoise as eq

# Pass rate and mean tokens of an attempt, which the study does not know; a simulated model.
TASKS = {"trivia": (0.90, 200), "spelling": (0.985, 110), "translation": (0.86, 600), "summaries": (0.78, 1000),
         "arithmetic": (0.95, 380), "tables": (0.68, 1500), "code repair": (0.55, 2500), "planning": (0.38, 3000),
         "proofs": (0.12, 6000), "long recall": (0.97, 4000)}  # fmt: skip
BUDGET = 10_000_000


def attempt(rng: Random, task: str) -> tuple[bool, float]:
    """Return whether the model passed, and the tokens it took."""
    rate, tokens = TASKS[task]
    return rng.random() < rate, round(tokens * rng.lognormvariate(-0.125, 0.5))


def evaluate(strategy: str) -> eq.Result:
    study = eq.Study(TASKS, budget=BUDGET, strategy=strategy, support="binary", costs=dict.fromkeys(TASKS, 1500))
    models = {task: Random(f"{task} 7") for task in TASKS}
    while not study.done:
        ticket = study.ask()
        passed, tokens = attempt(models[ticket.arm], ticket.arm)
        study.tell(ticket, passed, cost=tokens)
    return study.result()


results = {"even split": evaluate("uniform"), "equipoise": evaluate("auto")}
widest = {name: 2 * max(result.intervals().half_widths) for name, result in results.items()}
print(results["equipoise"])
print(
    f"The widest interval: {100 * widest['equipoise']:.0f} points instead of {100 * widest['even split']:.0f} points."
)

result = results["equipoise"]
rows = [
    {"task": task, "rate": result.means[task], "tokens": result.costs[task], "attempts": int(result.counts[task]),
     "low": result.intervals()[task].low, "high": result.intervals()[task].high}
    for task in TASKS
]  # fmt: skip
base = alt.Chart(alt.Data(values=rows)).encode(
    x=alt.X("tokens:Q", scale=alt.Scale(type="log", domain=[80, 12000], nice=False), title="tokens of an attempt",
            axis=alt.Axis(values=[100, 300, 1000, 3000], grid=False, format=",")),
)  # fmt: skip
y = alt.Y("low:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%"), title="pass rate, with its 95% interval")
bars = base.mark_rule(strokeWidth=4, strokeCap="round", opacity=0.45).encode(
    y=y, y2="high:Q", color=alt.value(picture.BLUE)
)
bubbles = base.mark_circle(opacity=0.9, color=picture.BLUE).encode(
    y="rate:Q", size=alt.Size("attempts:Q", scale=alt.Scale(range=[30, 900]), legend=None)
)
words = base.encode(text="task:N", color=alt.value(picture.INK))
crowded = ["spelling", "trivia", "arithmetic"]  # so close that a name is above its interval, or below it
names = (
    words.transform_filter(alt.FieldOneOfPredicate("task", [task for task in TASKS if task not in crowded]))
    .mark_text(align="left", dx=18, fontSize=picture.LABEL)
    .encode(y="rate:Q")
)
above = (
    words.transform_filter(alt.FieldOneOfPredicate("task", ["spelling", "arithmetic"]))
    .mark_text(dy=-14, fontSize=picture.LABEL)
    .encode(y="high:Q")
)
below = words.transform_filter("datum.task == 'trivia'").mark_text(dy=16, fontSize=picture.LABEL).encode(y="low:Q")
picture.save(
    (bars + bubbles + names + above + below).properties(width=520, height=420),
    "tokens.svg",
    "Ten pass rates for ten million tokens",
    f"No interval is wider than {100 * widest['equipoise']:.0f} points. As many attempts at each task would have left "
    f"{100 * widest['even split']:.0f} points\nArea: attempts at a task",
)
