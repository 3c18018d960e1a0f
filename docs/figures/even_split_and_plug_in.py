"""
Poll six products two thousand times by each of three strategies, and draw what becomes of the errors and the answers.

`python docs/figures/even_split_and_plug_in.py docs/figures` writes errors.svg and answers.svg there, and prints the
table of docs/explanation/even-split-and-plug-in.md. It takes a minute.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import numpy as np

import equipoise as eq
from equipoise.base.arrays import Floats
from equipoise.chart import files
from equipoise.chart.style import PRINT, config

LIKES: Final = {"coffee": 0.52, "crisps": 0.31, "sorbet": 0.90, "lemonade": 0.08, "liquorice": 0.04, "chocolate": 0.97}
VISITORS: Final = 1000
POLLS: Final = 2000
STRATEGIES: Final = {"even split": "uniform", "plug-in": "greedy", "auto": "auto"}
COLOURS: Final = {"even split": PRINT.faint, "plug-in": PRINT.warn, "auto": PRINT.accent}


def poll(strategy: str, seed: int) -> tuple[Floats, Floats]:
    """Return the answers counted and the share found for each product."""
    answers = np.random.default_rng(seed).random((len(LIKES), VISITORS)) < np.array([*LIKES.values()])[:, None]
    study = eq.Study(len(LIKES), budget=VISITORS, strategy=strategy, support="binary")
    taken = np.zeros(len(LIKES), dtype=int)
    while not study.done:
        ticket = study.ask()
        k = int(ticket.arm)  # type: ignore[call-overload]
        study.tell(ticket, answers[k, taken[k]])
        taken[k] += 1
    result = study.result()
    return np.asarray(result.counts), np.asarray(result.means)


def errors(rows: list[dict[str, Any]]) -> Any:
    """Draw the typical error of every product, a point for each strategy."""
    alt = files.altair()
    base = alt.Chart(alt.Data(values=rows))
    y = alt.Y("product:N", sort=[*LIKES], title=None, axis=alt.Axis(labelColor=PRINT.ink, labelFontSize=13))
    x = alt.X(
        "error:Q", title="root mean squared error, in percentage points", scale=alt.Scale(domain=[0, 14], nice=False)
    )
    colour = alt.Color(
        "strategy:N", scale=alt.Scale(domain=[*COLOURS], range=[*COLOURS.values()]), legend=alt.Legend(orient="top")
    )
    lines = base.mark_rule(strokeWidth=2, color=PRINT.line).encode(y=y, x=alt.X("min(error):Q"), x2="max(error):Q")
    points = base.mark_point(filled=True, size=130, opacity=1).encode(x=x, y=y, color=colour)
    return (lines + points).properties(width=460, height=200).configure(padding=14, **config(PRINT))


def answers(rows: list[dict[str, Any]]) -> Any:
    """Draw how many answers nine polls in ten get for every product, and how many would be best."""
    alt = files.altair()
    base = alt.Chart(alt.Data(values=[row for row in rows if row["strategy"] != "even split"]))
    y = alt.Y("product:N", sort=[*LIKES], title=None, axis=alt.Axis(labelColor=PRINT.ink, labelFontSize=13))
    axis = alt.Axis(values=[5, 20, 50, 100, 200, 500])
    scale = alt.Scale(type="log", domain=[4, 1000])
    colour = alt.Color("strategy:N", scale=alt.Scale(domain=[*COLOURS], range=[*COLOURS.values()]), legend=None)
    low = alt.X("low:Q", title="answers, of 1,000", scale=scale, axis=axis)
    ranges = base.mark_rule(strokeWidth=7, strokeCap="round", opacity=0.75).encode(
        y=y, x=low, x2="high:Q", color=colour
    )
    best = base.mark_tick(thickness=3, size=22, color=PRINT.ink).encode(y=y, x=alt.X("best:Q", scale=scale))
    title = alt.Header(title=None, labelFontSize=14, labelColor=PRINT.ink, labelAnchor="start")
    column = alt.Facet("strategy:N", sort=[*STRATEGIES], header=title)
    return (ranges + best).properties(width=300, height=200).facet(column).configure(padding=14, **config(PRINT))


def main(folder: Path) -> None:
    """Poll, draw and print."""
    truth = np.array([*LIKES.values()])
    best = eq.Problem([eq.Bernoulli(p) for p in truth]).optimal_counts(VISITORS)
    rows = []
    for name, strategy in STRATEGIES.items():
        counts, means = (np.array(each) for each in zip(*(poll(strategy, seed) for seed in range(POLLS)), strict=True))
        squares = 1e4 * (means - truth) ** 2
        error = np.sqrt(squares.mean(axis=0))
        doubt = squares.std(axis=0) / np.sqrt(POLLS) / (2 * error)
        low, high = np.quantile(counts, (0.05, 0.95), axis=0)
        starved = 100 * (counts < best / 2).mean(axis=0)
        for k, product in enumerate(LIKES):
            rows.append(
                {"strategy": name, "product": product, "error": error[k], "doubt": doubt[k], "best": float(best[k]),
                 "low": low[k], "high": high[k], "starved": starved[k]}
            )  # fmt: skip
    files.save(errors(rows), folder / "errors.svg")
    files.save(answers(rows), folder / "answers.svg")
    print(f"| product | best count | {' | '.join(STRATEGIES)} | starved by the plug-in | by auto |")
    print(f"|---|--:|{'--:|' * (len(STRATEGIES) + 2)}")
    for k, product in enumerate(LIKES):
        found = {row["strategy"]: row for row in rows if row["product"] == product}
        cells = [f"{row['error']:.1f} ({row['doubt']:.1f})" for row in found.values()]
        starving = [f"{found[name]['starved']:.0f}%" for name in ("plug-in", "auto")]
        print(f"| {product} | {best[k]} | {' | '.join([*cells, *starving])} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
