"""What a page shows of a study."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise import chart, report
from equipoise.base import tables
from equipoise.base.inputs import texts
from equipoise.base.tables import SHARES
from equipoise.chart.arms import EACH, EVEN, TARGET, WIDEST
from equipoise.inference.baseline import Baseline
from equipoise.report import series
from equipoise.report.charts import HEADINGS, charts, png, specs
from equipoise.report.history import Moment
from equipoise.result.summary import remarks

RATES = {"rare": 0.05, "even": 0.5, "often": 0.9}


@pytest.fixture(scope="module")
def poll(tmp_path_factory: pytest.TempPathFactory) -> report.Report:
    where = tmp_path_factory.mktemp("view") / "poll.db"

    def ask(arm: str, seed: int) -> float:
        return float(random.Random(seed).random() < RATES[arm])

    eq.estimate(ask, 500, arms=list(RATES), seed=1, precision=0.2, support="binary", store=where)
    return report.read(where)


@pytest.fixture(scope="module")
def view(poll: report.Report) -> dict[str, Any]:
    return report.view(poll)


def test_shares_are_in_percent(poll: report.Report, view: dict[str, Any]) -> None:
    json.dumps(view, allow_nan=False)
    result = poll.result
    assert view["verdict"] == f"✓ Every mean is known to ±20 points ({result.samples} samples)."
    assert view["account"][0].startswith(f"Least precise: {result.arms[_widest(result)]}, ±20.0 points (95%), standard")
    widest, samples, rate, _ = view["figures"]
    k = _widest(result)
    assert widest["value"] == f"±{100 * result.intervals().margins[k]:.0f}"
    assert (widest["unit"], widest["note"]) == ("points", f"{result.arms[k]} · target ±20")
    assert (samples["value"], samples["share"]) == (str(result.samples), result.samples / 500)
    assert rate["note"] == "100% of tickets answered"
    table = view["table"]
    assert table["target"] == "±20"
    for line, arm in zip(table["rows"], RATES, strict=True):
        cells = dict(zip(table["titles"], line["cells"], strict=True))
        assert cells["Arm"] == arm
        assert cells["Mean"].endswith("%")
        assert cells["Samples"] == str(result.counts[arm])
        assert (line["status"], line["tone"]) == ("✓ reached", "good")
    assert view["shape"]["percent"]
    assert view["shape"]["factor"] == 100
    assert [row["wide"] for row in view["charts"]["estimates"]] == [False] * 3
    assert view["account"] == result.certificate.sentences(SHARES)
    assert set(remarks(result.known, SHARES)) <= set(view["remarks"])


def test_numbers_of_arms(poll: report.Report, view: dict[str, Any]) -> None:
    result = poll.result
    for k, arm in enumerate(view["arms"]):
        assert arm["arm"] == arm["title"] == result.arms[k]
        assert arm["count"] == result.counts.array[k]
        assert arm["mean"] == result.means.array[k]
        assert (arm["low"], arm["high"]) == (result.intervals().low[k], result.intervals().high[k])
        assert arm["half_width"] == result.intervals().margins[k]
        assert arm["standard_error"] == tables.json_ready(result.standard_errors.array[k])  # None where it is not known
        assert arm["reached"]


def test_states(poll: report.Report, tmp_path: Path) -> None:
    for status, words in ((None, "Precision reached"), ("paused", "Paused"), ("archived", "Archived")):
        assert report.view(poll, status=status)["study"]["words"] == words
    eq.estimate({"a": [1, 2, 3]}, store=tmp_path / "all.db")
    assert report.view(report.read(tmp_path / "all.db"))["study"]["status"] == "done"
    study = eq.open(tmp_path / "open.db", arms=["a", "b"], budget=4)
    *first, last = study.ask(4)
    study.tell_many([(ticket, 1.0) for ticket in first])
    begun = report.view(report.read(tmp_path / "open.db"))
    assert begun["study"]["status"] == "spent"  # nothing more is asked for
    assert begun["figures"][1]["note"] == "of 4 · 1 in flight"
    assert begun["figures"][0]["value"] == "—"
    study.forget(last)
    assert report.view(report.read(tmp_path / "open.db"))["study"]["status"] == "collecting"
    study.close()


def _widest(result: eq.Result) -> int:
    return int((result.intervals().margins / result.known.targets).argmax())


def test_all_parts_call_the_same_arm_the_least_precise(tmp_path: Path) -> None:
    """Of eight zeros the variance is 0 and the interval wide; of a hundred zeros and ones it is the other way round."""
    with eq.open(tmp_path / "poll.db", arms=["even", "zeros"], support="binary", precision=0.1) as study:
        tickets = study.ask(200)
        study.tell_many([(ticket, ticket.id // 2 % 2) for ticket in tickets if ticket.arm == "even"])
        study.tell_many([(ticket, 0) for ticket in tickets if ticket.arm == "zeros"][:8])
    found = report.read(tmp_path / "poll.db")
    shown = report.view(found)
    assert found.result.worst == "zeros"
    assert (shown["figures"][0]["label"], shown["figures"][0]["note"]) == ("Widest interval", "zeros · target ±10")
    assert shown["remarks"][1].startswith("Least precise: zeros, ±49 points (95%)")
    assert shown["account"][0].startswith("Least precise: zeros, ±48.6 points (95%)")


def test_an_even_split_is_mentioned_where_it_needs_clearly_more(poll: report.Report, tmp_path: Path) -> None:
    n = poll.account.samples
    for low, label in ((1.6 * n, "An even split needs"), (n, "Time")):
        baseline = Baseline(1.9 * n, low, 2.2 * n, 1.9 * n)
        said = "An even split would have needed more." if low > n else ""
        certificate = replace(poll.account.certificate, baseline=baseline, even_split=said)
        shown = report.view(replace(poll, account=replace(poll.account, certificate=certificate)))["figures"][3]
        assert shown["label"] == label
        if label != "Time":
            assert (shown["value"], shown["note"]) == ("1.9×", "the samples (1.6× to 2.2×)")
    # In money where samples have costs, as in the certificate.
    draws = {arm: np.random.default_rng(1).normal(0, sd, 3000) for arm, sd in (("cheap", 1), ("dear", 5))}
    for unit, noted in (("", "the cost ("), ("tokens", "the tokens (")):
        store, about = tmp_path / f"{unit}.db", {"cost_unit": unit} if unit else None
        result = eq.estimate(draws, budget=3000, costs={"cheap": 1, "dear": 10}, store=store, about=about)
        read = report.read(store)
        figures = report.view(read)["figures"]
        assert result.baseline is not None
        assert figures[3]["note"].startswith(noted)
        assert figures[3]["value"] == f"{result.baseline.spent / result.known.price:.1f}×"
        spent = f"{result.spent:,.0f} spent of 3,000 {unit}".rstrip()
        assert figures[1]["note"] == f"{spent} · 0 in flight"
        assert f" {'tokens ' if unit else ''}spent, 0 in flight." in report.facts(read)[1]
        assert f"(cost {result.spent:,.0f}{' tokens' if unit else ''})." in result.verdict
        assert result.to_dict()["cost_unit"] == (unit or None)


def test_titles_stand_for_names(poll: report.Report) -> None:
    shown = report.view(poll, titles={"rare": "Rarely", "even": "Now and then"})
    assert [row["arm"] for row in shown["charts"]["allocation"]] == ["Rarely", "Now and then", "often"]
    assert (shown["arms"][0]["arm"], shown["arms"][0]["title"]) == ("rare", "Rarely")
    same = report.view(poll, titles={"rare": "often"})
    assert [row["arm"] for row in same["charts"]["allocation"]] == list(RATES)


def test_the_best_split_follows_the_variances() -> None:
    """By hand: variances 1 and 9 call for one and nine tenths of the samples; with p = 1, for 1 to 3."""
    data = {"a": [9, 11] * 50, "b": [7, 13] * 50}
    assert series.best_split(eq.estimate(data)).tolist() == pytest.approx([20, 180])
    summed = eq.estimate(data, objective=1)
    assert series.best_split(summed).tolist() == pytest.approx([50, 150])
    assert np.isnan(series.best_split(eq.estimate({"a": [1, 2], "b": [3]}))).all()


def test_the_line_of_an_even_split_is_where_an_even_split_is(tmp_path: Path) -> None:
    """
    Of arms that were sampled in turn, the dashed line ends where the widest interval does; in percent of the means too.

    With weights that follow the means, these arms are nearly sampled in turn. `uniform` itself has no such line.
    """

    def measure(arm: int, seed: int) -> float:
        return float(np.random.default_rng(seed).normal(10**arm, 10**arm))

    for wanted, strategy in ((0.01, "uniform"), ("3%", "auto")):
        where = tmp_path / f"{strategy}.db"
        eq.estimate(measure, 600, arms=3, strategy=strategy, precision=wanted, seed=1, store=where)
        read = report.read(where)
        rows = series.precision(read, texts(read.result.arms))
        ends = {row["series"]: row["width"] for row in rows}
        assert ends[TARGET] == (3 if wanted == "3%" else 0.01)
        of_arm = read.result.intervals().margins[1] * (100 / read.result.means[1] if wanted == "3%" else 1)
        assert ends["1"] == pytest.approx(of_arm, rel=1e-3)
        assert ends[WIDEST] == pytest.approx(max(ends[str(k)] for k in range(3)), rel=1e-3)
        assert (EVEN in ends) is (strategy == "auto")
        if strategy == "auto":
            assert ends[EVEN] == pytest.approx(ends[WIDEST], rel=0.2)
        assert {row["kind"] for row in rows} <= {WIDEST, EVEN, TARGET, EACH}
        assert min(row["samples"] for row in rows) >= 30  # before, there is little to see


def test_an_even_split_is_compared_with_intervals_of_the_same_kind(tmp_path: Path) -> None:
    """Those of arms that are known well enough promise less and are narrower: the even split has the same ones."""
    chance = {"even": 0.5, "rare": 0.02}
    rng = random.Random(1)
    eq.estimate(
        lambda arm: float(rng.random() < chance[arm]),
        arms=list(chance),
        support="binary",
        precision=0.06,
        store=tmp_path / "poll.db",
    )
    rows = report.view(report.read(tmp_path / "poll.db"))["charts"]["precision"]
    widest, even = ({row["samples"]: row["width"] for row in rows if row["kind"] == kind} for kind in (WIDEST, EVEN))
    assert len(even) > 10
    last = max(even)
    assert even[last] > 1.05 * widest[last]


def test_an_even_split_is_drawn_as_wide_as_it_would_be(tmp_path: Path) -> None:
    """An arm of few samples may have the widest interval of a study, and would have more samples in an even split."""
    chance = {"coffee": 0.52, "crisps": 0.31, "chocolate": 0.97}

    def like(arm: str, seed: int) -> float:
        return float(random.Random(seed).random() < chance[arm])

    options: dict[str, Any] = {"arms": list(chance), "budget": 2000, "support": "binary", "seed": 1}
    eq.estimate(like, store=tmp_path / "poll.db", **options)
    rows = report.view(report.read(tmp_path / "poll.db"))["charts"]["precision"]
    drawn = [row["width"] for row in rows if row["kind"] == EVEN][-1]
    true = eq.estimate(like, strategy="uniform", **options).intervals().margins.max()
    assert drawn == pytest.approx(true, rel=0.05)


@pytest.mark.parametrize("moments", [0, 1, 39, 40, 41, 200])
def test_a_line_has_some_points_and_the_last(moments: int) -> None:
    history = [Moment(n, 1.0, None) for n in range(1, moments + 1)]
    found = series.thinned(history)
    assert len(found) <= series.POINTS
    assert len(found) >= min(moments, series.POINTS // 2)
    assert [moment.samples for moment in found[-1:]] == [moments][: len(found)]


@pytest.mark.parametrize(
    ("about", "mean", "half"),
    [
        ({"measure": "seconds"}, "mean seconds, with its 99.9% interval", "± in seconds"),
        ({"measure": "exit"}, "share that passes, with its 99.9% interval", "± of the share"),
        ({"table": "a.csv", "value": "visits"}, "mean visits, with its 99.9% interval", "± in visits"),
        ({"measure": "stdout"}, "mean, with its 99.9% interval", "±"),
    ],
)
def test_axes_say_what_is_measured(tmp_path: Path, about: dict[str, Any], mean: str, half: str) -> None:
    where = tmp_path / "study.db"

    def sample(arm: str, seed: int) -> float:
        return random.Random(seed).gauss(10, 4 if arm == "b" else 1)

    eq.estimate(sample, 200, arms=["a", "b"], seed=1, level=0.999, store=where, about=about)
    shown = report.view(report.read(where))
    assert (shown["shape"]["mean"], shown["shape"]["half"]) == (mean, half)
    assert shown["table"]["titles"][3] == "99.9% interval"
    drawn = charts(shown)
    assert f'"{mean}"' in drawn["estimates"].to_json()
    assert f'"{half}"' in drawn["precision"].to_json()


def test_charts_without_rows_are_drawn_with_those_of_a_later_view(view: dict[str, Any]) -> None:
    found = specs(view)
    assert set(found) == {"estimates", "allocation", "precision"} < set(HEADINGS)
    for name, spec in found.items():
        assert spec["data"] == {"name": name}
        assert spec["width"] == "container"
        text = json.dumps(spec)
        # The page's colours: they change with the reader's preference.
        assert "var(--" in text
        assert "http" not in text.replace("https://vega.github.io/schema", "")


def test_colours_of_charts_are_those_of_the_page() -> None:
    style = (Path(report.__file__).parent / "static" / "style.css").read_text()
    for name in ("ink", "soft", "faint", "line", "card", "accent", "warn", "good"):
        assert f"--{name}: {getattr(chart.PRINT, name)};" in style
        assert style.count(f"--{name}: ") == 2  # in the light and in the dark


def test_a_picture(view: dict[str, Any], tmp_path: Path) -> None:
    assert png(view, tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match=r"must end in \.png, got 'a\.jpg'"):
        png(view, Path("a.jpg"))


def test_short(view: dict[str, Any]) -> None:
    found = report.short(view)
    assert found["verdict"] == view["verdict"]
    assert found["line"][-1] == pytest.approx(max(arm["half_width"] for arm in view["arms"]), rel=1e-3)
