"""The figures, as Altair charts of the tables."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from equipoise import chart
from equipoise.lab.paper.design import ALPHA, AUTO, A, b_as, gafs_max
from equipoise.lab.paper.tables import Tables, matching

REGRET = "rescaled regret, n^(3/2) R"
PAPER_LINE = "one standard error of the paper's estimator, 50,000 runs"
LIMIT_LINE = "first order, 4A sqrt(Σ) (K - 1/λ_max)"


def draw(made: Tables) -> dict[str, Any]:
    """Return the figures by name, as Altair charts."""
    left = made["left"]
    main = [row for row in left if row["strategy"] in ("CH-AS", b_as(A), gafs_max(ALPHA), AUTO)]
    noise = [
        {
            "n": row["n"],
            "low": row["rescaled_regret"] - row["paper_error"],
            "high": row["rescaled_regret"] + row["paper_error"],
        }
        for row in matching(left, strategy=b_as(A))
    ]
    text = "Grey: one standard error of the paper's estimator (50,000 runs) on either side of B-AS"
    top = _ceiling(row["rescaled_regret"] for row in left)
    across, up = chart.X("n", "budget n"), chart.Y("rescaled_regret", REGRET, "rescaled_error", domain=(0.0, top))
    panels = [
        chart.lines(
            [row for row in left if row["strategy"].startswith(start)],
            x=across,
            y=up,
            title=title,
            width=250,
            height=210,
        )
        for start, title in (("B-AS", "B-AS: A is open"), ("GAFS", "GAFS-MAX: α is open"))
    ]
    title = f"N(0, 4) and N(0, 1): A = {A:g} and α = {ALPHA:g} are chosen here"
    first = chart.regret(main, title=title, noise=noise, noise_text=text, width=570, height=300)
    found = {"left": chart.beside([first, chart.beside(panels)], below=True)}
    found["right"] = _right_figure(made)
    found["remark3"] = _quiet_figure(made)
    found["open"] = _open_figure(made)
    return found


def _right_figure(made: Tables) -> Any:
    panels = []
    for exploration in (0.5, 1.0, 2.0):
        rows = []
        for partner in ("Gaussian", "Rademacher"):
            for row in matching(made["right"], partner=partner, strategy=b_as(exploration)):
                rows.append(row | {"line": f"N(0, σ²) and {'N(0, 1)' if partner == 'Gaussian' else 'Rademacher'}"})
        for row in matching(made["right"], partner="Gaussian", strategy=b_as(exploration)):
            rows.append({"ratio": row["ratio"], "rescaled_regret": row["paper_error"], "line": PAPER_LINE})
        for row in matching(made["right"], partner="Gaussian", strategy=b_as(exploration)):
            rows.append({"ratio": row["ratio"], "rescaled_regret": row["first_order"], "line": LIMIT_LINE})
        panels.append((exploration, rows))
    domain = _decades(row["rescaled_regret"] for _, rows in panels for row in rows)
    return chart.beside(
        [
            chart.lines(
                [row for row in rows if row["rescaled_regret"] > 0],
                x=chart.X("ratio", "1/λ_min"),
                y=chart.Y(
                    "rescaled_regret",
                    REGRET if exploration == 0.5 else "",
                    "rescaled_error",
                    log=True,
                    domain=domain,
                ),
                series=chart.Series("line", dashed=(PAPER_LINE, LIMIT_LINE)),
                title=f"B-AS, A = {exploration:g}",
                width=215,
                height=260,
            )
            for exploration, rows in panels
        ],
        one_legend=True,
    )


def _quiet_figure(made: Tables) -> Any:
    rows = []
    for row in made["remark3"]:
        rows.append({"n": row["n"], "pulls": row["pulls"], "line": row["strategy"]})
    lines = {"CH-AS": "balance of the two indices", gafs_max(ALPHA): "α sqrt(n) + 1"}
    for row in made["remark3"]:
        rows.append({"n": row["n"], "pulls": row["balance"], "line": lines[row["strategy"]]})
    ch = matching(made["remark3"], strategy="CH-AS")
    for row in ch:
        scale = ch[-1]["pulls"] / ch[-1]["n"] ** (2 / 3)
        rows.append({"n": row["n"], "pulls": scale * row["n"] ** (2 / 3), "line": "slope 2/3"})
    return chart.lines(
        rows,
        x=chart.X("n", "budget n"),
        y=chart.Y("pulls", "pulls of the constant arm", log=True),
        series=chart.Series("line", dashed=(*lines.values(), "slope 2/3"), joined=False),
        title="Bernoulli(0.5) and a constant arm",
        width=480,
        height=300,
    )


def _open_figure(made: Tables) -> Any:
    rows = [row for row in made["right"] if row["rescaled_regret"] > 0 and row["strategy"] in (b_as(1.0), AUTO)]
    domain = _decades(row["rescaled_regret"] for row in rows)
    return chart.beside(
        [
            chart.lines(
                matching(rows, strategy=name),
                x=chart.X("ratio", "1/λ_min"),
                y=chart.Y("rescaled_regret", REGRET, "rescaled_error", log=True, domain=domain),
                series=chart.Series("partner"),
                title=name,
                width=260,
                height=260,
            )
            for name in (b_as(1.0), AUTO)
        ],
        one_legend=True,
    )


def _decades(values: Iterable[float]) -> tuple[float, float]:
    """The ends of a logarithmic axis for the positive values: 1, 2 or 5 times a power of ten."""
    logs = [math.log10(value) for value in values if value > 0]
    steps = [math.log10(s) + e for e in range(-9, 12) for s in (1, 2, 5)]
    return 10 ** max(s for s in steps if s <= min(logs)), 10 ** min(s for s in steps if s >= max(logs))


def _ceiling(values: Iterable[float]) -> float:
    """The upper end of an axis from zero."""
    top = max(values)
    step = 10 ** math.floor(math.log10(top)) / 2
    return step * math.ceil(top / step)
