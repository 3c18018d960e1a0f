"""Write what `equipoise paper` leaves in its folder: figures, tables, and one page that explains all of it."""

from __future__ import annotations

import base64
import csv
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from equipoise import chart
from equipoise.base.tables import amount
from equipoise.lab.paper.claims import Claim
from equipoise.lab.paper.design import ALPHA, PAPER_RUNS, A, PaperDesign
from equipoise.lab.paper.tables import Row, Tables, rounded
from equipoise.report.page import environment, static

TEMPLATES: Final = Path(__file__).parent / "templates"

TEXTS: dict[str, tuple[str, str]] = {
    "left": (
        "Left figure: rescaled regret against the budget",
        f"""Two arms, N(0, 4) and N(0, 1). The paper names neither B-AS's exploration A nor GAFS-MAX's α, nor the
δ of CH-AS on arms that are not bounded. Here CH-AS runs as for samples in [0, 1], with δ = n^(-5/2); the main
panel has A = {A:g} and α = {ALPHA:g}, and the two panels below it show the other values. GAFS-MAX is the rule as
recalled from Antos, Grover and Szepesvári, whose text was not available. The grey band is one standard error, on
either side, of an average of squared errors over {PAPER_RUNS:,} runs, sqrt(2) Σ sqrt(n/runs): this is how the
paper measured. Coloured bands are the standard errors here.""",
    ),
    "right": (
        "Right figure: rescaled regret of B-AS against 1/λ_min",
        """N(0, 1/λ_min - 1) and an arm of variance 1, at one budget. Both axes are logarithmic. Below the dashed
line the paper's estimator, with 50,000 runs, could see nothing but noise. The dotted line is the limit of the
regret with a fixed A, to first order: B-AS equates (s + 2A/sqrt(T))²/T, which gives arm k the loss
Σ/n + 4A sqrt(Σ) (K - 1/λ_k) n^(-3/2). At 1/λ_min = 2 the arms are equal and the limit is 0.""",
    ),
    "shape": (
        "Why the Rademacher arm does badly: starvation, rather than the paper's mechanism",
        """For values -1 and 1 the sample variance is T/(T-1) (1 - mean²), so that given T a small sample
variance goes with a large error. The paper takes this to be the cause: the arm is pulled more when its mean is
already accurate. It is the cause only in its extreme form. A run is called starved here if all samples of the
arm are equal at the end: its sample variance was 0 from the start, and B-AS does not pull the arm again before T
is about 2A sqrt(n/Σ). The gap, loss - s²/T, would be 0 on average by the Gaussian lemma; it is split into starved
runs and the others, in which only the paper's mechanism is left. Numbers are rescaled, times n^(3/2).""",
    ),
    "remark3": (
        "Remark 3: an arm of zero variance",
        """Bernoulli(0.5) and a constant. The points are measured; the dashed line is the T at which the two
indices of CH-AS are equal if each variance is known exactly, the dotted one α sqrt(n) + 1. The measured pulls are
within one of both. Up to a million samples the exponent is still well above 2/3, as CH-AS spends a good part of
the budget on the constant arm; the balance of the indices gives its limit.""",
    ),
    "lemma": (
        "The Gaussian lemma",
        """The loss of an arm, estimated without the lemma (controls), and s² E[1/T]. They agree on Gaussian arms
under rules that use variances alone, such as B-AS and GAFS-MAX. On a Rademacher arm they do not agree, and the
loss is the larger of the two.""",
    ),
    "bounds": (
        "Theorems and lemmas",
        """Every bound holds by a wide margin: bounds say how quantities scale, not how large they are. Pulls are
extremes over all runs. docs/explanation/bounds.md has more of them.""",
    ),
    "open": (
        "The paper's open questions",
        """Can the result on Gaussian arms be extended to others? Second arms of variance 1 with other laws,
under B-AS with A = 1 and under auto, the default here. With A large enough that no arm is starved, the laws give
nearly the same regret: B-AS loses what it spends on its bonus. Is there a lower bound with 1/λ_min? The table has
n² R/Σ of auto. On Gaussian, uniform and Rademacher arms it falls toward a small constant that depends on the law
and not on 1/λ_min: at 1/λ_min = 5 and 20 it is nearly the same at the longest budget, at 100 it is still falling.
So there is no sign of a factor 1/λ_min in the limit, nor of the rate n^(-3/2); what remains is a cost of learning
while n λ_min is small. On an exponential arm it stays large: the variance of few samples is far too small too
often, and no rule here uses more than the variance. These are measurements, not proofs.""",
    ),
}

# The figure and the table of each section, in the order of the page.
SECTIONS: tuple[tuple[str, str, str], ...] = (
    ("left", "left", "left"),
    ("right", "right", "right"),
    ("shape", "", "shape"),
    ("remark3", "remark3", "remark3"),
    ("lemma", "", "lemma"),
    ("bounds", "", "bounds"),
    ("open", "open", "long"),
)


def write(
    folder: Path, design: PaperDesign, made: Tables, judged: Sequence[Claim], drawn: Mapping[str, Any]
) -> list[Path]:
    """Write figures as PNG and SVG, tables and claims as CSV, and index.html; return the paths, the page first."""
    with ThreadPoolExecutor() as pool:
        saved = [
            pool.submit(chart.save_all, figure, [folder / f"{name}{suffix}" for suffix in (".png", ".svg")])
            for name, figure in drawn.items()
        ]
    files = [path for each in saved for path in each.result()]
    for name, rows in (made | {"claims": [claim.to_dict() for claim in judged]}).items():
        path = folder / f"{name}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        files.append(path)
    index = folder / "index.html"
    index.write_text(page(folder, design, made, judged), encoding="utf-8")
    return [index, *files]


def page(folder: Path, design: PaperDesign, made: Tables, judged: Sequence[Claim]) -> str:
    """Return the page, with the SVG files of the folder in it."""
    sections = [
        {
            "key": key,
            "title": TEXTS[key][0],
            "text": TEXTS[key][1],
            "image": _image(folder / f"{figure}.svg") if figure else "",
            "file": f"{table}.csv",
            "rows": _cells(SHOWN[table](made[table], design)),
        }
        for key, figure, table in SECTIONS
    ]
    template = environment(TEMPLATES).get_template("paper.html")
    return template.render(style=static("style.css"), design=design, claims=judged, sections=sections)


def _image(path: Path) -> str:
    """Return an SVG file as an address, for an image of its own: the ids inside two drawings on a page would clash."""
    return f"data:image/svg+xml;base64,{base64.b64encode(path.read_bytes()).decode()}"


def _left(rows: Sequence[Row], design: PaperDesign) -> list[Row]:
    """A row for each n, a column for each strategy."""
    wide: dict[int, Row] = {}
    for row in rows:
        wide.setdefault(row["n"], {"n": row["n"]})[row["strategy"]] = _with_error(
            row["rescaled_regret"], row["rescaled_error"]
        )
    return list(wide.values())


def _right(rows: Sequence[Row], design: PaperDesign) -> list[Row]:
    wide: dict[tuple[str, str], Row] = {}
    for row in sorted(rows, key=lambda row: row["strategy"]):
        line = wide.setdefault(
            (row["strategy"], row["partner"]), {"strategy": row["strategy"], "second arm": row["partner"]}
        )
        line[f"1/λ_min = {row['ratio']}"] = _with_error(row["rescaled_regret"], row["rescaled_error"])
    return list(wide.values())


def _shape(rows: Sequence[Row], design: PaperDesign) -> list[Row]:
    scale = design.n**1.5
    return [
        {
            "second arm": row["partner"],
            "1/λ_min": row["ratio"],
            "A": row["exploration"],
            "starved runs": f"{100 * row['starved']:.2f}%",
            "pulls in starved runs": "" if math.isnan(row["starved pulls"]) else f"{row['starved pulls']:.1f}",
            "gap": _with_error(scale * row["gap"], scale * row["gap error"]),
            "gap, not starved": _with_error(scale * row["gap others"], scale * row["gap others error"]),
            "correlation of error² and sample variance given T": f"{row['correlation given T']:.3f}",
            "correlation of T and error², not starved": f"{row['correlation of T and loss']:.3f}",
        }
        for row in rows
    ]


def _remark3(rows: Sequence[Row], design: PaperDesign) -> list[Row]:
    return [
        {
            "strategy": row["strategy"],
            "n": row["n"],
            "runs": row["runs"],
            "pulls": _with_error(row["pulls"], row["pulls_error"]),
            "predicted": f"{row['balance']:.1f}",
            "exponent of the pulls": "" if math.isnan(row["pulls_exponent"]) else f"{row['pulls_exponent']:.3f}",
            "regret": "" if math.isnan(row["regret"]) else f"{row['regret']:.4g}",
            "predicted regret": f"{row['balance_regret']:.4g}",
            "exponent of the regret": "" if math.isnan(row["regret_exponent"]) else f"{row['regret_exponent']:.3f}",
        }
        for row in rows
    ]


def _lemma(rows: Sequence[Row], design: PaperDesign) -> list[Row]:
    return [
        {
            "strategy": row["strategy"],
            "arm": row["arm"],
            "n": row["n"],
            "loss": f"{row['loss']:.5g}",
            "s² E[1/T]": f"{row['s2_mean_1_over_T']:.5g}",
            "difference": f"{row['difference']:.2g} ({row['difference_error']:.1g})",
            "in standard errors": f"{row['difference'] / row['difference_error']:.1f}"
            if row["difference_error"]
            else "",
        }
        for row in rows
    ]


def _bounds(rows: Sequence[Row], design: PaperDesign) -> list[Row]:
    return [
        {
            "statement": row["statement"],
            "setting": row["setting"],
            "measured": amount(row["measured"]),
            "": {"<=": "≤", ">=": "≥"}[row["relation"]],
            "stated": amount(row["stated"]),
            "holds": "yes" if row["holds"] else "no",
        }
        for row in rows
    ]


def _long(rows: Sequence[Row], design: PaperDesign) -> list[Row]:
    wide: dict[tuple[str, int], Row] = {}
    for row in rows:
        line = wide.setdefault((row["partner"], row["ratio"]), {"second arm": row["partner"], "1/λ_min": row["ratio"]})
        line[f"n² R/Σ at n = {row['n']:,}"] = _with_error(row["n2_regret_over_Sigma"], row["error"])
    return list(wide.values())


SHOWN = {
    "left": _left,
    "right": _right,
    "shape": _shape,
    "remark3": _remark3,
    "lemma": _lemma,
    "bounds": _bounds,
    "long": _long,
}


def _cells(rows: Sequence[Row]) -> list[list[str]]:
    """Return a table as texts; the first row holds the titles."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return [names, *([_text(row.get(name, "")) for name in names] for row in rows)]


def _text(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else amount(value) if isinstance(value, float) else str(value)


def _with_error(value: float, error: float) -> str:
    """A number with its standard error in parentheses."""
    number, error_text = rounded(value, error)
    return f"{number} ({error_text})" if error_text else number
