"""The headline, the table, the certificate, the page and the data name the same least precise arm: of all arms."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise import report
from equipoise.base import tables
from equipoise.base.inputs import named
from equipoise.inference.ranking import worst_first
from equipoise.ledger.goal import Goal, precision
from equipoise.result.summary import rows
from equipoise.run.progress import so_far

KINDS = ["binary", "range", "plain", "populations", "binary populations", "weights", "precision", "targets", "strata"]


@st.composite
def results(draw: st.DrawFn) -> tuple[eq.Study, eq.Result]:
    """A study of up to 45 arms of up to 40 samples each, some of them all equal; and its result."""
    return lived(draw(st.sampled_from(KINDS)), draw(st.integers(1, 45)), draw(st.integers(0, 10**9)))


def options_of(kind: str, arms: int, rng: random.Random) -> dict[str, Any]:
    weights = [10 ** rng.uniform(-2, 2) for _ in range(arms)]
    if kind == "populations":
        return {"populations": [rng.choice([40, 60, 1000]) for _ in range(arms)]}
    if kind == "binary populations":
        return {"support": "binary", "populations": [rng.choice([40, 60, 1000]) for _ in range(arms)]}
    if kind == "strata":
        return {"objective": eq.Stratified([weight / math.fsum(weights) for weight in weights])}
    others: dict[str, dict[str, Any]] = {
        "binary": {"support": "binary"},
        "range": {"support": (0, 1)},
        "plain": {},
        "weights": {"weights": [rng.choice([0, 1]), *weights][:arms] if arms > 1 else None},
        "precision": {"precision": 0.1},
        "targets": {"precision": [0.01 * (1 + weight) for weight in weights]},
    }
    return others[kind]


def lived(kind: str, arms: int, seed: int) -> tuple[eq.Study, eq.Result]:
    rng = random.Random(seed)
    options = options_of(kind, arms, rng)
    asked = options.pop("precision", None)
    few = rng.choice([2, 8, 25])
    study = eq.Study(arms, budget=60 * arms, strategy="uniform", **options)
    counts: dict[Any, int] = {arm: rng.randint(rng.choice([few, few, 0]), 40) for arm in range(arms)}
    scales: dict[Any, float] = {arm: rng.choice([0, 0.1, 1, rng.random()]) for arm in range(arms)}
    tickets, told = study.ask(40 * arms), []
    for ticket in tickets:
        if counts[ticket.arm] > 0:
            counts[ticket.arm] -= 1
            x = scales[ticket.arm] * rng.random()
            told.append((ticket, float(x > 0.4) if "binary" in kind else x))
    study.tell_many(told)
    wanted = None if asked is None else precision(asked, 0.95, study.arms)
    return study, study.result(goal=Goal(precision=wanted, by_precision=kind == "targets"))


def width(result: eq.Result) -> np.ndarray[Any, Any]:
    """How wide each arm's interval is, relative to its target or weighted."""
    margins = result.intervals().margins
    if result.known.by_target:
        return np.asarray(margins / result.known.targets)
    weight = result.objective.weight(len(result.arms))
    return np.asarray(np.where(weight > 0, np.sqrt(np.where(weight > 0, weight, 1.0)) * margins, 0.0))


def check(result: eq.Result) -> None:
    order, wide = worst_first(result.known), width(result)
    assert sorted(order) == list(range(len(result.arms)))
    unknown = np.isnan(result.known.weighted_losses)
    if result.objective.shares is not None:
        assert result.known.weighted_losses[order[0]] == result.known.weighted_losses.max() or unknown[order[0]]
    elif unknown.any():
        assert unknown[order[0]]
    else:
        # No arm, shown or not, has a wider interval than one before it.
        assert (wide[order][:-1] >= wide[order][1:]).all()
    shown = [int(row[0].removesuffix(" *")) for row in rows(result.known)[1:]]
    assert shown == (order[: tables.MOST_ROWS].tolist() if len(result.arms) > tables.MOST_ROWS else sorted(order))
    assert result.worst == result.arms[order[0]] == result.certificate.worst == result.to_dict()["worst"]
    assert result.certificate.margin == result.intervals().margins[order[0]]
    said = [result.verdict, *result.remarks(), *result.certificate.sentences()]
    for sentence in said:
        if found := re.match(r"Least precise( relative to its target| by weighted error)?: (arm \d+), ±", sentence):
            assert found[2] == named(result.worst)


@settings(max_examples=80)
@given(found=results())
def test_every_part_names_the_least_precise_of_all_arms(found: tuple[eq.Study, eq.Result]) -> None:
    study, result = found
    check(result)
    assert so_far(study, result, 1.0, 0.0).worst == result.worst


def test_an_arm_without_variance_may_have_the_widest_interval_of_many() -> None:
    """Its squared error is the smallest, and of 21 arms it was in no line: the headline was that of another."""

    def sample(arm: int, seed: int) -> float:
        return 0.0 if arm == 0 else random.Random(seed).random()

    result = eq.estimate(sample, arms=21, budget=525, support=(0, 1), seed=1)
    assert (result.worst, result.losses[0]) == (0, 0)
    assert result.verdict == f"525 samples. Least precise: arm 0, ±{result.intervals().margins[0]:.2f} (95%)."
    assert rows(result.known)[1][0] == "0"
    check(result)


@pytest.mark.parametrize("kind", ["binary", "range", "precision", "targets"])
def test_the_page_names_it_too(kind: str, tmp_path: Path) -> None:
    rng = random.Random(3)
    with eq.open(tmp_path / "study.db", arms=25, budget=1000, **options_of(kind, 25, rng)) as study:
        tickets = study.ask(1000)
        study.tell_many(
            [(ticket, 0 if ticket.arm in (3, 4) else float(rng.random() < 0.5)) for ticket in tickets[:700]]
        )
        result = study.result()
    page = report.view(report.read(tmp_path / "study.db"))
    label = "Widest interval" if kind == "precision" else "Least precise"
    assert (page["figures"][0]["label"], page["figures"][0]["note"].split(" · ")[0]) == (label, str(result.worst))
    assert page["table"]["rows"][0]["cells"][0] == page["arms"][0]["arm"] == str(result.worst)
    line = [row for row in page["charts"]["precision"] if row["kind"] == "widest interval"]
    assert line[-1]["width"] == pytest.approx(result.intervals().margins.max(), rel=1e-3)
    check(result)


def test_an_arm_that_has_no_interval_is_the_least_precise() -> None:
    study = eq.Study(["few", "wide", "narrow"], budget=200, strategy="uniform")
    tickets = study.ask(120)
    sizes = {"few": 5, "wide": 40, "narrow": 40}
    rng = random.Random(1)
    for arm, size in sizes.items():
        for ticket in [ticket for ticket in tickets if ticket.arm == arm][:size]:
            study.tell(ticket, rng.gauss(0, {"few": 0.1, "wide": 9, "narrow": 1}[arm]))
    result = study.result()
    assert [result.arms[k] for k in worst_first(result.known)] == ["few", "wide", "narrow"]
    error = f"{result.standard_errors['wide']:.3g}"
    said = "No 95% interval yet for few (it has 5 samples; intervals begin at 11 samples of an arm)."
    assert result.verdict == f"85 samples. {said} Largest standard error: wide, {error}."
    assert (result.certificate.worst, result.certificate.largest_error[0]) == ("few", "wide")
    assert str(result.certificate).startswith(f"{said} Largest standard error: wide, {error}.")


@settings(max_examples=40)
@given(seed=st.integers(0, 10**9))
def test_what_is_said_of_missing_intervals_is_what_decides(seed: int) -> None:
    """Counts that are said to be too few are fewer than intervals begin at."""
    rng = random.Random(seed)
    arms = rng.choice([1, 2, 3, 5])
    support = rng.choice(["plain", "zeros and ones"])
    study = eq.Study(arms, budget=400, strategy="uniform")
    scales = [rng.choice([0, 1]) for _ in range(arms)]

    def value(arm: int) -> float:
        return scales[arm] * (float(rng.random() < 0.5) if support != "plain" else rng.random())

    tickets = study.ask(30 * arms)
    for ticket in rng.sample(tickets, rng.randint(2, len(tickets))):
        study.tell(ticket, value(ticket.arm))  # type: ignore[arg-type]
    for _ in range(rng.choice([0, 20])):
        study.tell(arm=rng.randrange(arms), value=value(0))
    result = study.result()
    # The sentence, where there is one, of the arms that have none.
    said = " ".join(result.certificate.sentences())
    missing = np.flatnonzero(~np.isfinite(result.intervals().half_widths))
    begins = re.search(r"intervals begin at (\d+) samples of an arm", said)
    if not begins:
        return
    counted = result.known.state_of(result.interval_kind, missing.tolist())[:, 0]
    assert (counted < int(begins[1])).all() or ", unless all are equal" in said
    told = re.search(r"\((?:it has|they have) ([\d, and]+) samples?;", said)
    if told and ", unless all are equal" not in said:
        assert all(int(each) < int(begins[1]) for each in re.findall(r"\d+", told[1]))
