"""Rows of plain numbers from everything that was measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from equipoise import theory
from equipoise.lab.paper.design import ALPHA, BOUNDED, PAIR, PAPER_RUNS, A, Key, PaperDesign, b_as, gafs_max
from equipoise.problem import Problem
from equipoise.simulation.results import Curve, Simulation

Row = dict[str, Any]
Tables = dict[str, list[Row]]


def build(design: PaperDesign, results: Mapping[Key, Any]) -> Tables:
    """Return everything that was measured as rows of plain numbers."""
    made: Tables = {"left": [], "right": [], "long": [], "shape": [], "remark3": [], "lemma": [], "bounds": []}
    for key, result in results.items():
        match key:
            case ("left", name, _):
                made["left"] += [_regret_row(sim, strategy=name) for sim in result]
            case ("share", partner, ratio, name):
                row = _regret_row(result[0], partner=partner, ratio=ratio, strategy=name)
                exploration = getattr(result[0].strategy, "exploration", None)
                row["first_order"] = first_order(result[0].problem, exploration) if exploration else math.nan
                made["right"].append(row)
            case ("long", partner, ratio):
                made["long"] += [_long_row(sim, partner, ratio) for sim in result]
            case ("shape", partner, ratio, exploration):
                made["shape"].append({"partner": partner, "ratio": ratio, "exploration": exploration} | result)
            case ("quiet" | "far", name):
                made["remark3"] += [_quiet_row(sim, name, key[0] == "quiet") for sim in result]
    made["remark3"].sort(key=lambda row: (row["strategy"], row["n"]))
    for one, other in pairwise(made["remark3"]):
        if one["strategy"] == other["strategy"]:
            other["pulls_exponent"] = exponent(one, other, "pulls")
            other["regret_exponent"] = exponent(one, other, "regret")
    for name in (b_as(A), gafs_max(ALPHA)):
        made["lemma"] += _lemma_rows(name, results["lemma", name, "controls"], results["lemma", name, "gaussian"])
    for row in made["shape"]:
        if row["partner"] == "Rademacher":
            made["lemma"].append(_rademacher_row(design, row, results))
    made["bounds"] = _bound_rows(design, results)
    return made


def _regret_row(sim: Simulation, **keys: Any) -> Row:
    return keys | {
        "n": sim.budget,
        "runs": sim.runs,
        "rescaled_regret": sim.rescaled_regret,
        "rescaled_error": sim.rescaled_error,
        "regret": sim.regret,
        "regret_error": sim.regret_error,
        "excess_percent": sim.excess,
        "worst_arm": sim.worst + 1,
        "pulls_2": float(sim.mean_pulls[1]),
        "paper_error": paper_error(sim.problem.Sigma, sim.budget),
    }


def _long_row(sim: Simulation, partner: str, ratio: float) -> Row:
    scale = sim.budget**2 / sim.problem.Sigma
    return {
        "partner": partner,
        "ratio": ratio,
        "n": sim.budget,
        "runs": sim.runs,
        "best_pulls_2": sim.budget / ratio,
        "n2_regret_over_Sigma": scale * sim.regret,
        "error": scale * sim.regret_error,
        "excess_percent": sim.excess,
    }


def _quiet_row(sim: Simulation, name: str, with_regret: bool) -> Row:
    n = sim.budget
    chas = name == "CH-AS"
    return {
        "strategy": name,
        "n": n,
        "runs": sim.runs,
        "pulls": float(sim.mean_pulls[1]),
        "pulls_error": float(sim.pull_errors[1]),
        "balance": theory.remark3_pulls(n) if chas else theory.remark3_gafs_max_pulls(n, ALPHA),
        "leading": theory.remark3_leading(n) if chas else ALPHA * math.sqrt(n),
        "pulls_exponent": math.nan,
        "regret": sim.regret if with_regret else math.nan,
        "regret_error": sim.regret_error if with_regret else math.nan,
        "balance_regret": theory.remark3_regret(n) if chas else 0.25 / (n - ALPHA * math.sqrt(n) - 1) - 0.25 / n,
        "regret_exponent": math.nan,
    }


def exponent(one: Row, other: Row, name: str, of: str = "n") -> float:
    """Return the power of n, or of another column, between two rows."""
    if not (one[name] > 0 and other[name] > 0 and other[of] > one[of]):
        return math.nan
    return math.log(other[name] / one[name]) / math.log(other[of] / one[of])


def _lemma_rows(name: str, free: Curve, lemma: Curve) -> list[Row]:
    rows = []
    for one, other in zip(free, lemma, strict=True):
        difference = one - other
        for k in range(2):
            rows.append(
                {
                    "strategy": name,
                    "arm": f"N(0, {PAIR.variances[k]:g})",
                    "n": one.budget,
                    "loss": float(one.losses[k]),
                    "loss_error": float(one.loss_errors[k]),
                    "s2_mean_1_over_T": float(other.losses[k]),
                    "difference": float(difference.losses[k]),
                    # A single batch has no spread; the standard errors then add up.
                    "difference_error": float(difference.loss_errors[k])
                    if len(one.batches) > 1
                    else float(one.loss_errors[k] + other.loss_errors[k]),
                }
            )
    return rows


def _rademacher_row(design: PaperDesign, row: Row, results: Mapping[Key, Any]) -> Row:
    sim = results["share", "Rademacher", row["ratio"], b_as(row["exploration"])][0]
    loss, error = float(sim.losses[1]), float(sim.loss_errors[1])
    return {
        "strategy": b_as(row["exploration"]),
        "arm": f"Rademacher, 1/λ_min = {row['ratio']}",
        "n": design.n,
        "loss": loss,
        "loss_error": error,
        "s2_mean_1_over_T": row["s2 mean 1/T"],
        "difference": loss - row["s2 mean 1/T"],
        "difference_error": math.hypot(error, row["s2 mean 1/T error"]),
    }


def _bound_rows(design: PaperDesign, results: Mapping[Key, Any]) -> list[Row]:
    n = design.n
    hoeffding, bernstein = results["bound", "CH-AS"][0], results["bound", "B-AS"][0]
    of_ch, of_b = results["pulls", "CH-AS"], results["pulls", "B-AS"]
    c1, c2 = theory.gaussian_constants(PAIR.variances)
    ch = f"Bernoulli 0.5 and 0.2; n = {n}"
    b = f"N(0, 4), N(0, 1), c1 = {c1:g}, c2 = {c2:g}; n = {n}"
    low1, high1 = theory.lemma1_bounds(BOUNDED.variances, n, float(n) ** -2.5)
    low2, high2 = theory.lemma2_bounds(PAIR.variances, n, float(n) ** -3.5, c1, c2)
    least = theory.lemma2_least_pulls(PAIR.variances, n, float(n) ** -3.5, c1, c2)
    few = min(of_b["fewest 1"], of_b["fewest 2"])
    rows = [
        ("Lemma 1, fewest pulls of arm 1", ch, ">=", of_ch["fewest 1"], 0.0, low1[0]),
        ("Lemma 1, most pulls of arm 2", ch, "<=", of_ch["most 2"], 0.0, high1[1]),
        ("Theorem 1, regret of CH-AS", ch, "<=", *_regret(hoeffding), theory.theorem1(BOUNDED.variances, n)),
        ("Lemma 2, fewest pulls of arm 1", b, ">=", of_b["fewest 1"], 0.0, low2[0]),
        ("Lemma 2, most pulls of arm 2", b, "<=", of_b["most 2"], 0.0, high2[1]),
        ("Lemma 2, fewest pulls of any arm", b, ">=", few, 0.0, least),
        ("Theorem 2, regret of B-AS", b, "<=", *_regret(bernstein), theory.theorem2(PAIR.variances, n, c1, c2)),
        ("Theorem 3, regret of B-AS", b, "<=", *_regret(bernstein), theory.theorem3(PAIR.Sigma, n, 2)),
    ]
    return [
        {
            "statement": statement,
            "setting": setting,
            "runs": design.runs,
            "measured": measured,
            "error": error,
            "relation": relation,
            "stated": float(stated),
            "holds": bool(measured <= stated + 5 * error if relation == "<=" else measured >= stated - 5 * error),
        }
        for statement, setting, relation, measured, error, stated in rows
    ]


def _regret(sim: Simulation) -> tuple[float, float]:
    return sim.regret, sim.regret_error


def matching(rows: Iterable[Row], **keys: Any) -> list[Row]:
    """Return the rows that have these values."""
    return [row for row in rows if all(row[name] == value for name, value in keys.items())]


def first_order(problem: Problem, exploration: float) -> float:
    """
    Return the limit of the rescaled regret of B-AS with a fixed A, to first order: 4 A sqrt(Sigma) (K - 1/lambda_max).

    Its indices s²/T + 4As/T^{3/2} are equal when arm k has the loss Sigma/n + 4A sqrt(Sigma) (K - 1/lambda_k) n^{-3/2}.
    """
    return 4 * exploration * math.sqrt(problem.Sigma) * (len(problem) - 1 / float(problem.lambdas.max()))


def paper_error(Sigma: float, n: float) -> float:
    """Return the standard error of the paper's rescaled regret, an average of squared errors over its 50,000 runs."""
    return math.sqrt(2) * Sigma * math.sqrt(n / PAPER_RUNS)


def with_error(value: float, error: float) -> str:
    """Return a number and its standard error in words, to the first digit of the standard error."""
    number, error_text = rounded(value, error)
    return f"{number} (standard error {error_text})" if error_text else number


def rounded(value: float, error: float) -> tuple[str, str]:
    """Return a number and its standard error, to its first digit; an empty string where there is none."""
    if not (error > 0 and math.isfinite(error)):
        return f"{value:.6g}", ""
    if abs(value) < 1e-3:
        return f"{value:.3g}", f"{error:.1g}"
    digits = max(0, -math.floor(math.log10(error)))
    return f"{value:,.{digits}f}", f"{error:,.{digits}f}"
