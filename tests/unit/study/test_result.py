"""What a result says, against the same worked out from the raw samples."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import numpy as np
import pytest

import equipoise as eq

SAMPLES: dict[Any, list[float]] = {"a": [1.0, 2.0, 3.0, 6.0], "b": [0.0, 10.0], "c": [5.0, 5.0, 5.0]}


def result_of(samples: dict[Any, list[float]]) -> eq.Result:
    study = eq.Study(samples)
    for arm, values in samples.items():
        for value in values:
            study.tell(arm=arm, value=value)
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
    assert dict(result.standard_errors) == pytest.approx({"a": math.sqrt(14 / 12), "b": 5.0, "c": 0.0})
    assert result.samples == 9
    assert (result.worst, result.loss) == ("b", 25.0)
    assert result.oracle_loss == pytest.approx((14 / 3 + 50) / 9)
    assert result.regret == pytest.approx(25 - (14 / 3 + 50) / 9)
    # Spread evenly, 3 of each: the worst arm has 50/3. To have 25 there, 2 of each are enough.
    assert result.uniform_loss == pytest.approx(50 / 3)
    assert result.uniform_samples == pytest.approx(6)
    assert isinstance(result.counts["a"], int)


def test_differences(result: eq.Result) -> None:
    value, error, low, high = result.difference("b", "a")
    assert value == pytest.approx(2.0)
    assert error == pytest.approx(math.sqrt(25 + 14 / 12))
    assert result.difference("a", "b").value == pytest.approx(-2.0)
    assert result.difference("a", "a") == (0.0, 0.0, 0.0, 0.0)
    assert (value - low) == pytest.approx(high - value)
    assert high - value > 5 * error  # of so few samples
    assert set(result.differences()) == {("b", "a"), ("c", "a"), ("c", "b")}
    assert result.differences()["b", "a"] == result.difference("b", "a")
    assert set(result.differences(control="c")) == {"a", "b"}
    assert result.differences(control="c")["a"] == result.difference("a", "c")
    for call in (lambda: result.difference("a", "z"), lambda: result.differences("z")):
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
    assert "2 of 3 arms have fewer than 2" in repr(result)
    assert "—" in repr(result)
    empty = result_of({"a": []})
    assert math.isnan(empty.oracle_loss)
    assert "0 samples" in repr(empty)


def test_nothing_varies() -> None:
    result = result_of({"a": [1.0, 1.0], "b": [2.0, 2.0]})
    assert result.loss == 0
    assert math.isnan(result.uniform_samples)
    assert "Uniform" not in repr(result)


def test_to_dict_is_ready_for_json(result: eq.Result) -> None:
    known = result.to_dict()
    assert json.loads(json.dumps(known)) == known
    assert {"means", "counts", "variances", "standard_errors", "losses", "worst", "regret"} <= known.keys()
    assert known["strategy"] == "auto"
    odd = result_of({("x", 1): [1.0, 2.0], 3: [1.0]})
    assert json.loads(odd.to_json())["counts"] == {"('x', 1)": 2, "3": 1}


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
    assert set(result.differences(control=None)) == {"b", "c"}
    assert result.differences(None)["b"] == result.difference("b", None)
    assert len(result.differences()) == 3
    with pytest.raises(ValueError, match="no arm None"):
        result_of(SAMPLES).differences(None)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_to_frame(result: eq.Result, library: Any) -> None:
    frame = result.to_frame(library)
    assert list(frame.columns) == [
        "arm", "count", "mean", "variance", "standard_error", "loss", "low", "high", "interval_kind", "interval_level"
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
        study.tell(study.ask(), study.remaining % 3 == 0)
    result = study.result()
    result.level = 0.9
    frame = result.to_frame(library)
    ends = list(zip(frame["low"], frame["high"], strict=True))
    assert ends == list(result.intervals(0.9).values()) != list(result.intervals(0.95).values())
    assert list(frame["interval_kind"]) == [kind] * 2
    assert list(frame["interval_level"]) == [0.9] * 2
    # Of an arm of which nothing is known, anything is possible that the support allows.
    nothing = eq.Study(["a"], support=support).result().to_frame(library)
    assert (nothing["low"][0], nothing["high"][0]) == widest


def test_to_frame_of_what_is_not_there(result: eq.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="library='arrow'"):
        result.to_frame("arrow")  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ModuleNotFoundError, match="pip install polars"):
        result.to_frame("polars")


def test_a_person_can_read_it(result: eq.Result) -> None:
    assert repr(result).splitlines() == [
        "arm  count  mean  95% interval  std. error  variance",
        "a        4     3             —        1.08     4.667",
        "b        2     5             —           5        50",
        "c        3     5             —           0         0",
        "Intervals: all arms at once; asymptotic: at all times at once for many samples, not guaranteed for few.",
        "9 samples; the worst-known mean is that of 'b', with a standard error of 5. "
        "Uniform sampling would have needed about 6 samples for this worst arm.",
    ]


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
    assert len(shown) == 1 + 20 + 1 + 1 + 1
    assert shown[1].split()[0] == str(result.worst)
    assert "80 arms that are known better" in shown[-3]
    assert "100 numbers by arm" in repr(result.means)
    assert result.means.array.shape == (100,)
    with pytest.raises(KeyError):
        result.means["nope"]
