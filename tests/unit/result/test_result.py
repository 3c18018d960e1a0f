"""What a result says, against the same worked out from the raw samples."""

from __future__ import annotations

import inspect
import json
import math
import random
import re
import sys
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import equipoise as eq
from equipoise import report
from equipoise.base import tables
from equipoise.inference.arm_intervals import intervals
from equipoise.inference.errors import errors
from equipoise.inference.ranking import worst_first
from equipoise.inference.replay import adaptivity
from equipoise.ledger import Goal
from equipoise.ledger.goal import precision
from equipoise.result.summary import rows
from tests.unit.ledger.moments import of_populations, result_of_moments

SAMPLES: dict[Any, list[float]] = {"a": [1.0, 2.0, 3.0, 6.0], "b": [0.0, 10.0], "c": [5.0, 5.0, 5.0]}


def result_of(samples: dict[Any, list[float]]) -> eq.Result:
    study = eq.Study(samples)
    for arm, values in samples.items():
        for value in values:
            study.tell(arm=arm, value=value)
    return study.result()


def test_the_public_names_are_those_on_the_page() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "api" / "results.rst").read_text(encoding="utf-8")
    overview, _, below = page.partition("In full\n")
    public = {name for name in [*vars(eq.Result), *inspect.get_annotations(eq.Result)] if not name.startswith("_")}
    assert set(re.findall(r"\bResult\.(\w+)", overview)) == public
    assert ":exclude-members:" not in below.partition("Parts of a result\n")[0]


def test_every_public_name_is_described() -> None:
    described = re.findall(r"^([a-z][a-z_, ]*)\n    \S", inspect.getdoc(eq.Result) or "", re.MULTILINE)
    attributes = {name for line in described for name in line.split(", ")}
    methods = {name for name, value in vars(eq.Result).items() if inspect.isfunction(value) and name[0] != "_"}
    public = {name for name in [*vars(eq.Result), *inspect.get_annotations(eq.Result)] if not name.startswith("_")}
    assert public - methods == attributes
    assert all(inspect.getdoc(getattr(eq.Result, name)) for name in methods)


def asked_for(samples: dict[Any, list[float]], **options: Any) -> eq.Result:
    """The result of a study that asked for these samples."""
    study = eq.Study(samples, **options)
    places = np.repeat(np.arange(len(samples)), [len(values) for values in samples.values()])
    ids = study.ledger.latest(study.ledger.ask_for(places))
    study.ledger.tell(ids, np.concatenate([np.array(values) for values in samples.values()]))
    return study.result()


@pytest.fixture
def result() -> eq.Result:
    return result_of(SAMPLES)


def test_the_numbers(result: eq.Result) -> None:
    variances = {"a": 14 / 3, "b": 50.0, "c": 0.0}
    assert dict(result.counts) == {"a": 4, "b": 2, "c": 3}
    assert dict(result.means) == {"a": 3.0, "b": 5.0, "c": 5.0}
    assert dict(result.variances) == pytest.approx(variances)
    assert dict(result.losses) == pytest.approx({"a": 14 / 12, "b": 25.0, "c": 0.0})
    # The error of equal samples is not known.
    known = {"a": math.sqrt(14 / 12), "b": 5.0, "c": math.nan}
    assert dict(result.standard_errors) == pytest.approx(known, nan_ok=True)
    assert result.to_dict()["standard_errors"]["c"] is None
    assert result.samples == 9
    assert (result.worst, result.loss) == ("b", 25.0)
    assert result.oracle_loss == pytest.approx((14 / 3 + 50) / 9)
    assert result.regret == pytest.approx(25 - (14 / 3 + 50) / 9)
    # Spread evenly, 3 of each: the worst arm has 50/3.
    assert result.uniform_loss == pytest.approx(50 / 3)
    assert isinstance(result.counts["a"], int)


def test_differences(result: eq.Result) -> None:
    found = result.difference("b", "a")
    assert found.value == pytest.approx(2.0)
    assert found.error == pytest.approx(math.sqrt(25 + 14 / 12))
    assert result.difference("a", "b").value == pytest.approx(-2.0)
    same = result.difference("a", "a")
    assert (same.value, same.error, same.low, same.high) == (0.0, 0.0, 0.0, 0.0)
    assert found.value - found.low == pytest.approx(found.high - found.value)
    assert found.high - found.value > 5 * found.error  # of so few samples
    for call in (lambda: result.difference("a", "z"), lambda: result.compare(to="z")):
        with pytest.raises(ValueError, match="no arm 'z'"):
            call()


def test_a_result_does_not_change_when_the_study_goes_on() -> None:
    study = eq.Study(["a"])
    study.tell(arm="a", value=1.0)
    before = study.result()
    study.tell(arm="a", value=3.0)
    assert before.counts["a"] == 1
    assert before.means["a"] == 1.0


def test_what_is_not_known_is_not_known() -> None:
    result = result_of({"a": [1.0, 2.0], "b": [3.0], "c": []})
    assert result.means["b"] == 3.0
    assert math.isnan(result.variances["b"])
    assert math.isnan(result.means["c"])
    assert math.isnan(result.loss)
    assert result.worst == "b"
    known = json.loads(result.to_json())
    assert known["means"] == {"a": 1.5, "b": 3.0, "c": None}
    assert known["loss"] is None
    assert result.verdict == (
        "3 samples. 2 of 3 arms have fewer than 2 samples; at least 2 are needed for a standard error."
    )
    one = result_of({"a": [1.0, 2.0], "ok": [3.0]})
    assert one.verdict == "3 samples. ok has 1 sample; at least 2 are needed for a standard error."
    assert str(one.certificate).startswith("ok has 1 sample; at least 2 are needed for a standard error.")
    assert "—" in repr(result)
    empty = result_of({"a": []})
    assert math.isnan(empty.oracle_loss)
    assert "0 samples" in repr(empty)


def test_nothing_varies() -> None:
    result = result_of({"a": [1.0, 1.0], "b": [2.0, 2.0]})
    assert result.loss == 0
    assert result.baseline is None
    assert "even split" not in repr(result)


def test_to_dict_is_ready_for_json(result: eq.Result) -> None:
    known = result.to_dict()
    assert json.loads(json.dumps(known)) == known
    assert {"means", "counts", "variances", "standard_errors", "losses", "worst", "regret"} <= known.keys()
    assert known["strategy"] == "auto"
    odd = result_of({("x", 1): [1.0, 2.0], 3: [1.0]})
    assert json.loads(odd.to_json())["counts"] == {"x/1": 2, "3": 1}


def test_names_stay_apart_in_json() -> None:
    known = json.loads(result_of({1: [1.0, 2.0], "1": [1.0, 5.0]}).to_json())
    assert known["counts"] == {"1": 2, "'1'": 2}
    assert known["worst"] == "'1'"

    class Twin:
        def __repr__(self) -> str:
            return "twin"

    with pytest.raises(ValueError, match="two arms have the same text"):
        result_of({Twin(): [1.0], Twin(): [2.0]}).to_json()


def test_numpys_names_are_written_as_pythons() -> None:
    result = result_of({np.int64(1): [1.0, 2.0], np.str_("x"): [1.0, 5.0], np.float64(0.5): []})
    assert json.loads(json.dumps(result.to_dict()))["counts"] == {"1": 2, "x": 2, "0.5": 0}
    assert type(result.to_dict()["worst"]) is float
    assert json.loads(result.to_json())["worst"] == "0.5"


def test_none_can_be_the_control() -> None:
    result = result_of({None: [1.0, 2.0], "b": [3.0, 5.0], "c": [0.0, 1.0]})
    found = result.compare(to=None)
    assert {tuple(each.weights) for each in found} == {("b", None), ("c", None)}
    assert len(result.compare()) == 3
    with pytest.raises(ValueError, match="no arm None"):
        result_of(SAMPLES).compare(to=None)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_to_frame(result: eq.Result, library: Any) -> None:
    frame = result.to_frame(library)
    assert list(frame.columns) == [
        "arm", "count", "declined", "mean", "corrected_mean", "bias", "variance", "standard_error", "plain_error",
        "loss", "low", "high", "interval_kind", "interval_level",
    ]  # fmt: skip
    assert list(frame["arm"]) == ["a", "b", "c"]
    assert list(frame["mean"]) == [3.0, 5.0, 5.0]
    assert type(frame).__module__.startswith(library)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(
    ("support", "kind", "widest"), [(None, "asymptotic", (-math.inf, math.inf)), ("binary", "betting", (0, 1))]
)
def test_to_frame_has_the_intervals(library: Any, support: Any, kind: str, widest: tuple[float, float]) -> None:
    study = eq.Study(["a", "b"], budget=100, support=support)
    while not study.done:
        study.tell(study.ask(), (study.remaining % 3 == 0) * (2 if support is None else 1))
    result = study.result(goal=Goal(0.9))
    frame = result.to_frame(library)
    ends = list(zip(frame["low"], frame["high"], strict=True))
    assert ends == list(result.intervals(0.9).values()) != list(result.intervals(0.95).values())
    assert list(frame["interval_kind"]) == [kind] * 2
    assert list(frame["interval_level"]) == [0.9] * 2
    # Of an arm of which nothing is known, anything is possible that the support allows.
    nothing = eq.Study(["a"], support=support).result().to_frame(library)
    assert (nothing["low"][0], nothing["high"][0]) == widest


def test_to_frame_of_what_is_not_there(result: eq.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="library must be one of 'pandas', 'polars', got 'arrow'"):
        result.to_frame("arrow")  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ModuleNotFoundError, match=r"to_frame needs polars, which is not installed; .*\.\[tables\]"):
        result.to_frame("polars")


def test_arms_without_an_interval_are_named() -> None:
    """Whatever their errors are: the largest is that of another arm."""
    for counts, sentence in [
        ({"a": 9, "b": 30}, "No 95% interval yet for a (it has 9 samples; intervals begin at 10 samples of an arm)."),
        (
            {"a": 7, "b": 9, "c": 30},
            "No 95% interval yet for a and b (they have 7 and 9 samples; intervals begin at 11 samples of an arm).",
        ),
        (
            dict.fromkeys("abcd", 5) | {"e": 30},
            "No 95% interval yet for 4 of 5 arms (intervals begin at 11 samples of an arm).",
        ),
        ({"a": 5, "b": 5}, "No 95% interval yet for any arm (intervals begin at 10 samples of an arm)."),
    ]:
        # The later the arm, the more it varies.
        samples = {arm: [k * (i % 3) * (1 + i % 2) for i in range(counts[arm])] for k, arm in enumerate(counts, 1)}
        found = eq.estimate(samples, progress=False)
        worst = max(found.standard_errors, key=found.standard_errors.__getitem__)
        error = f"Largest standard error: {worst}, {found.standard_errors[worst]:.3g}."
        assert found.verdict == f"{found.samples} samples. {sentence} {error}"
        assert str(found.certificate).startswith(f"{sentence} {error} Ignoring adaptive sampling, the largest ")


def test_an_unknown_error_is_not_stated_as_zero() -> None:
    never = eq.estimate({"a": [0] * 40, "b": [0] * 40, "c": [0, 1]}, support="binary", progress=False)
    assert "All samples of a and b are equal, so no standard error can be estimated." in str(never.certificate)
    never = eq.estimate({"a": [0] * 40, "b": [0] * 40}, support="binary", progress=False)
    said = str(never.certificate)
    assert re.fullmatch(
        r"Least precise: a, ±0\.[0-9]+ \(95%\)\. 95% confidence sequences, [^.]*\. "
        r"All samples of a and b are equal, so no standard error can be estimated\.",
        said,
    )


def test_many_arms_of_another_kind_of_interval_are_marked() -> None:
    """Up to three are named."""
    samples = {arm: [(-1.0) ** i * (9 if arm in "bcde" else 1) for i in range(400)] for arm in "abcde"}
    for arms in ("abcd", "abcde"):
        found = eq.estimate({arm: samples[arm] for arm in arms}, precision=0.2, strategy="uniform", progress=False)
        assert found.intervals().kinds == ("fixed-width", *["asymptotic"] * (len(arms) - 1))
        marked = [row[0].endswith(" *") for row in rows(found.known)[1:]]
        assert marked == [len(arms) == 5 and arm != "a" for arm in arms]
        whose = "Arms marked *" if len(arms) == 5 else "b, c and d"
        assert f" {whose}: confidence sequences, simultaneous over arms and valid at any time" in repr(found)


def test_skewed_arms_are_named() -> None:
    """Where the interval is approximate and rests on few samples: not where there are many, or none is skewed."""
    rng = np.random.default_rng(1)
    for skewed, size, named in ((True, 76, True), (True, 3000, False), (False, 76, False)):
        values = rng.exponential(1, size) if skewed else rng.uniform(0, 1, size)
        found = eq.estimate({"a": values.tolist(), "b": rng.normal(0, 1, size).tolist()}, progress=False)
        assert ("The samples of a are skewed, and its interval may be too narrow." in found.remarks()) == named


def test_a_person_can_read_it(result: eq.Result) -> None:
    assert repr(result).splitlines() == [
        "9 samples. No 95% interval yet for any arm (intervals begin at 11 samples of an arm). Largest standard error: "
        "b, 5.",
        "arm  count  mean  95% interval  std. error",
        "a        4     3             —         1.1",
        "b        2     5             —         5.0",
        # All of its samples are equal, which says nothing about its error.
        "c        3     5             —           —",
    ]


def test_the_error_of_a_population_that_is_used_up_is_0() -> None:
    result = asked_for({"whole": [2.0, 2.0], "part": [1.0, 1.0]}, populations={"whole": 2, "part": 9})
    assert [line.split()[-1] for line in repr(result).splitlines()[2:4]] == ["0", "—"]


def test_a_person_is_told_that_nothing_varies() -> None:
    same = asked_for({"a": [1.0] * 30, "b": [2.0] * 30})
    assert same.verdict == "60 samples. All samples of each arm are equal."
    assert str(same.certificate) == "All samples of each arm are equal."
    exact = of_populations(result_of({"a": [1.0, 2.0], "b": [3.0] * 4}), [2.0, 4.0])
    assert exact.verdict == "6 samples. Every mean is known exactly."


def test_names_in_sentences() -> None:
    for name, said in (("x y", "'x y'"), (3, "arm 3"), ("3", "'3'"), ("gpt-4", "gpt-4"), (("a", 1), "a/1")):
        result = asked_for({name: [0.0, 1.0] * 30})
        assert result.verdict.startswith(f"60 samples. Least precise: {said}, ±")


def asked(given: Any, found: eq.Result, follow: bool = False) -> eq.Result:
    """Return the same result, had this precision been asked for."""
    return eq.Result(replace(found.known, goal=Goal(found.level, precision(given, found.level, found.arms), follow)))


def test_the_verdict_on_a_precision() -> None:
    found = result_of_moments([100, 200], [1.0, 4.0], [10.0, 50.0])
    narrow, wide = found.intervals().margins.tolist()
    assert found.samples_left is None
    assert found.reached is None
    done = asked([narrow, wide], found)
    assert (done.reached, done.samples_left) == (True, 0)
    assert done.verdict == "✓ Every mean is known to the precision asked for (300 samples)."
    assert asked(1, found).verdict == "✓ Every mean is known to ±1 (300 samples)."
    assert asked(3000, found).verdict == "✓ Every mean is known to ±3,000 (300 samples)."
    assert asked("5%", found).verdict == "✓ Every mean is known to ±5% (300 samples)."
    both = asked([narrow / 2, wide / 2], found)
    assert both.samples_left == math.inf  # of moments alone, nobody knows how certain a variance is
    assert both.verdict == "✗ 2 of 2 arms are still wider than asked for."
    one = asked(narrow, found)
    assert one.verdict == f"✗ 1 of 2 arms is still wider than ±{narrow:g}."
    assert one.remarks()[1] == f"Least precise: 'arm 1', ±{wide:.2f} (95%)."
    assert len(one.remarks()) == 2
    relative = asked("0.1%", found, follow=True)
    assert relative.remarks()[1] == f"Least precise relative to its target: 'arm 0', ±{narrow:.2f} (target ±0.010)."
    unknown = asked(0.1, result_of_moments([100, 1], [1.0, 0.0]))
    assert unknown.samples_left == math.inf
    assert unknown.verdict == "✗ 2 of 2 arms are still wider than ±0.1."
    assert unknown.remarks()[1] == "'arm 1' has 1 sample; at least 2 are needed for a standard error."


def test_a_precision_is_reached_when_the_interval_lies_within_it() -> None:
    """Of zeros alone, the interval begins at the mean: all of its width is on one side."""
    study = eq.Study(1, budget=300, support="binary")
    for ticket in study.ask(300):
        study.tell(ticket, 0)
    (found,) = study.result().intervals().values()
    assert found.low == 0
    assert study.result().intervals().margins.tolist() == [found.high]
    assert study.result().intervals().half_widths.tolist() == [found.high / 2]
    assert study.result().certificate.margin == found.high
    for times, reached in ((1.01, True), (0.99, False)):
        asked = study.result(goal=Goal(precision=precision(times * found.high, 0.95, study.arms)))
        assert asked.reached is reached
        assert (asked.samples_left == 0) is reached
    assert eq.Study(1, support=(0, 4)).result().intervals().margins.tolist() == [4]
    assert eq.Study(1).result().intervals().margins.tolist() == [math.inf]


def test_a_result_is_frozen(result: eq.Result) -> None:
    for name in ("level", "goal", "means", "precision"):
        with pytest.raises((FrozenInstanceError, AttributeError)):
            setattr(result, name, 0.5)
    with pytest.raises(ValueError, match="read-only"):
        result.means.array[0] = 7.0


def test_results_by_arm_are_mappings_and_arrays(result: eq.Result) -> None:
    assert np.asarray(result.means).tolist() == [3.0, 5.0, 5.0]
    assert np.asarray(result.counts).dtype == np.int64
    assert np.asarray(result.counts, dtype=float).dtype == float
    assert np.array(result.means, copy=True).flags.writeable
    assert np.sqrt(result.losses).tolist() == pytest.approx(errors(result.known).tolist())
    series = pandas.Series(result.means)
    assert list(series.index) == ["a", "b", "c"]
    assert series.dtype == float
    assert series["b"] == 5.0
    ends = result_of_moments([100, 100], [1.0, 4.0]).intervals()
    assert np.asarray(ends).tolist() == [list(pair) for pair in ends.values()]
    assert repr(result_of({np.int64(7): [1.0, 2.0], np.str_("x"): []}).means) == "{7: 1.5, 'x': nan}"


def test_equal_samples_are_not_taken_for_certainty() -> None:
    """The intervals that are printed and those that a precision is compared with are the same."""
    found = result_of_moments([16, 100], [0.0, 4.0])
    ends = found.intervals()
    half = ends.half_widths
    assert half[0] == pytest.approx(half[1] * math.sqrt(100 / 16))
    assert ends["arm 0"] == pytest.approx((1 - half[0], 1 + half[0]))
    assert intervals(found.known, [0]).low[0] == pytest.approx(ends["arm 0"].low)
    assert result_of_moments([400, 100], [0.0, 4.0]).intervals().half_widths[0] == pytest.approx(half[1] / 2)
    # A kind that is asked for by name is given as it is; of nothing but equal samples there is nothing to go by.
    assert found.intervals(kind="fixed-n")["arm 0"] == (1.0, 1.0)
    assert result_of_moments([16, 16], [0.0, 0.0]).intervals().half_widths.tolist() == [0.0, 0.0]
    study = eq.Study(["still", "rough"], budget=200)
    rng = np.random.default_rng(1)
    while not study.done:
        ticket = study.ask()
        study.tell(ticket, 5.0 if ticket.arm == "still" else rng.normal())
    wide = study.result().intervals()
    target = float(wide.half_widths[0])
    assert wide["still"].low < 5 < wide["still"].high
    assert f"{wide['still'].low:.2f} to {wide['still'].high:.2f}" in repr(study.result())
    for times, reached in ((1.001, True), (0.999, False)):
        goal = Goal(precision=precision([target * times, 99], 0.95, study.arms))
        assert study.result(goal=goal).reached is reached
    assert study.result().intervals(kind="asymptotic")["still"] == (5.0, 5.0)
    few = result_of_moments([3, 50], [0.0, 4.0], populations=[3, 100])
    assert few.intervals().half_widths[0] == 0  # all of its population


def test_half_widths() -> None:
    """Student's quantile at 1 - 0.05/2/2 with 99 degrees of freedom, from tables: 2.276."""
    found = result_of_moments([100, 25], [4.0, 1.0]).intervals().half_widths
    assert found[0] == pytest.approx(2.276 * 0.2, rel=1e-4)
    study = eq.Study(2)
    for i in range(18):
        study.tell(study.ask(), float(i % 3))
    assert study.result().intervals().half_widths.tolist() == [math.inf, math.inf]
    assert result_of_moments([0, 1], [0.0, 0.0]).intervals().half_widths.tolist() == [math.inf, math.inf]


def test_half_widths_of_finite_populations() -> None:
    whole = result_of_moments([20, 50], [4.0, 4.0]).intervals().half_widths
    found = result_of_moments([20, 50], [4.0, 4.0], populations=[20, 100]).intervals().half_widths
    assert found == pytest.approx([0.0, whole[1] * math.sqrt(0.5)])
    # A small population that is used up is known.
    assert result_of_moments([3], [4.0], populations=[3]).intervals().half_widths.tolist() == [0.0]
    assert result_of_moments([1], [4.0], populations=[3]).intervals().half_widths.tolist() == [math.inf]


def test_a_chart(result: eq.Result) -> None:
    drawn = result_of_moments([100, 25, 0], [4.0, 1.0, 0.0]).plot(title="Means", width=200).to_dict()
    assert drawn["title"]["text"] == "Means"
    assert [(row["arm"], row["mean"] is None) for row in drawn["data"]["values"]] == [
        ("arm 0", False),
        ("arm 1", False),
        ("arm 2", True),
    ]
    assert "mean, with its 95% interval" in json.dumps(drawn)
    assert [row["mean"] for row in result.plot().to_dict()["data"]["values"]] == [3, 5, 5]


def test_report_and_result_show_the_same_arms() -> None:
    rng = np.random.default_rng(2)
    study = eq.Study(50, weights=[(k + 1.0) ** 2 for k in range(50)])
    for k in range(50):
        for value in rng.normal(0, 1 / (k % 7 + 1), 30):
            study.tell(arm=k, value=value)
    result = study.result()
    assert result.worst == worst_first(result.known)[0]
    assert [row[0] for row in report.rows(result)[1:]] == [str(k) for k in worst_first(result.known)[:20]]
    assert [row[:-1] for row in report.rows(result)] == rows(result.known)


@pytest.mark.parametrize(
    ("mean", "half", "shown"), [(0.7551, 0.054, "0.755"), (1234567, 890, "1,234,567"), (5, 0, "5")]
)
def test_numbers_have_the_digits_they_deserve(mean: float, half: float, shown: str) -> None:
    assert tables.rounded(mean, half) == shown


def test_the_html_is_escaped_and_whole() -> None:
    html = result_of({"<b>&": [1.0, 2.0], "x": [1.0, 3.0]})._repr_html_()
    assert "&lt;b&gt;&amp;" in html
    assert "<b>" not in html
    assert html.count("<tr>") == 3


def test_many_arms_show_the_worst_known() -> None:
    rng = np.random.default_rng(1)
    samples: dict[Any, list[float]] = {k: rng.normal(0, k + 1, 5).tolist() for k in range(100)}
    result = result_of(samples)
    shown = repr(result).splitlines()
    assert len(shown) == 1 + 1 + 20 + 1
    assert shown[2].split()[0] == str(result.worst)
    assert shown[-1] == "Showing the 20 least precise of 100 arms."
    assert "100 numbers by arm" in repr(result.means)
    assert result.means.array.shape == (100,)
    with pytest.raises(KeyError):
        result.means["nope"]


@pytest.mark.parametrize("scale", [1e-110, 1e-82, 1e77, 1e140])
@pytest.mark.filterwarnings("error")
def test_values_whose_fourth_powers_a_float_cannot_hold(scale: float) -> None:
    def lived(scale: float) -> eq.Result:
        rng = np.random.default_rng(1)
        study = eq.Study(["a", "b"], 60)
        while not study.done:
            ticket = study.ask()
            study.tell(ticket, scale * (3.0 if ticket.arm == "b" else 1.0) * rng.standard_normal())
        return study.result()

    found, plain = lived(scale), lived(1.0)
    assert adaptivity(found.known).how == "formula"
    assert found.counts == plain.counts
    assert np.asarray(found.standard_errors) / scale == pytest.approx(np.asarray(plain.standard_errors), rel=0.2)
    assert str(found.certificate)


def test_tuples_are_printed_as_their_parts() -> None:
    rng = random.Random(1)
    samples = {
        ("big", "law"): [rng.gauss(0, 3) for _ in range(40)],
        ("small", "law"): [rng.random() for _ in range(40)],
    }
    result = eq.estimate(samples)
    plan = eq.plan({arm: result.variances[arm] for arm in samples}, budget=50)
    printed = [
        repr(result),
        str(result.certificate),
        repr(result.compare()),
        repr(result.difference(("big", "law"), ("small", "law"))),
    ]
    printed += [repr(plan), repr(eq.plan(plan.variances, 10, precision=0.1)), result.to_json(), plan.to_json()]
    for text in printed:
        assert "big/law" in text
        assert "('" not in text
    assert result.to_dict()["worst"] == ("big", "law")
