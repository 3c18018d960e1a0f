"""Contrasts of a result, and which arms differ."""

from __future__ import annotations

import math
import pickle
import random
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.inference import comparisons as contrasts
from equipoise.inference.sequence_bounds import bounds_of
from tests.unit.ledger.moments import result_of_moments

MEANS = {"a": 0.2, "b": 0.3, "c": 0.3, "d": 0.6, "e": 0.65}


def lived(support: Any, budget: int = 1500, names: Any = MEANS, **settings: Any) -> eq.Result:
    rng = random.Random(2)
    study = eq.Study(list(names), budget=budget, support=support, **settings)
    while not study.done:
        ticket = study.ask()
        p = names[ticket.arm]
        study.tell(ticket, float(rng.random() < p) if support == "binary" else rng.gauss(p, 0.4))
    return study.result()


@pytest.fixture(scope="module", params=["binary", None], ids=str)
def result(request: pytest.FixtureRequest) -> eq.Result:
    return lived(request.param)


def test_a_contrast_is_that_of_its_arms_alone(result: eq.Result) -> None:
    weights = {"a": 1, "b": -0.5, "d": 0, "c": -0.5}
    found = result.contrast(weights)
    means, errors = result.means, result.standard_errors
    assert found.value == pytest.approx(means["a"] - means["b"] / 2 - means["c"] / 2)
    assert found.error == pytest.approx(math.hypot(errors["a"], errors["b"] / 2, errors["c"] / 2))
    evidence = result.known.snapshot.evidence
    assert evidence is not None
    state = evidence.state(result.interval_kind)
    whole = result.known.sequences.contrast(state, {0: 1, 1: -0.5, 2: -0.5})
    assert (found.low, found.high) == pytest.approx(whole)
    assert (found.level, found.kind) == (0.95, result.interval_kind)
    assert found.weights == {"a": 1, "b": -0.5, "c": -0.5}
    assert result.contrast(weights, 0.5).half_width < found.half_width
    assert result.difference("d", "a") == result.contrast({"d": 1, "a": -1})
    assert result.contrast({"d": 1, "a": -1}).differs
    assert not result.difference("b", "c").differs


def test_narrower_than_the_box_of_two_intervals() -> None:
    for support in ("binary", None):
        result = lived(support, 1000, {"a": 0.4, "b": 0.5})
        ends, found = result.intervals(), result.difference("b", "a")
        assert found.half_width < 0.75 * ends.half_widths.sum()


def test_compare_is_simultaneous_and_sorted(result: eq.Result) -> None:
    found = result.compare()
    assert len(found) == len(list(found)) == 10
    assert found["e", "a"].low == pytest.approx(result.difference("e", "a", 1 - 0.05 / 10).low)
    assert found["a", "e"].high == -found["e", "a"].low
    assert found["a", "e"].weights == {"a": 1, "e": -1}
    assert found["a", "e"].value == -found["e", "a"].value
    assert (found.values >= 0).all()
    # Those that differ come first, and the interval says which they are.
    assert found.differing.tolist() == sorted(found.differing.tolist(), reverse=True)
    assert found.differing.tolist() == [each.differs for each in found]
    assert found["e", "a"].differs
    assert not found["c", "b"].differs
    distance = np.abs(found.low + found.high) / (found.high - found.low)
    assert (np.diff(distance) <= 1e-6).all()
    control = result.compare(to="a")
    assert control["e", "a"].low == pytest.approx(result.difference("e", "a", 1 - 0.05 / 4).low)
    assert set(control.second.tolist()) == {0}
    assert sorted(control.first.tolist()) == [1, 2, 3, 4]
    with pytest.raises(KeyError):
        control["b", "c"]
    assert result.compare(0.5).half_widths.max() < found.half_widths.min()


def test_printed() -> None:
    result = lived("binary")
    lines = repr(result.compare()).splitlines()
    assert lines[0] == f"{result.compare().differing.sum()} of 10 pairs differ (95%)."
    assert lines[1].split() == ["pair", "difference", "95%", "interval", "std.", "error", "differ"]
    assert lines[2].startswith("e - a ")
    assert lines[2].endswith(" yes")
    assert lines[11].endswith(" —")
    assert lines[12:] == [
        "95% confidence sequences, simultaneous over pairs and valid at any time (betting; guaranteed for any number "
        "of samples)."
    ]
    control = result.compare(0.9, to="a")
    assert repr(control).startswith(f"{control.differing.sum()} of 4 arms differ from a (90%).\n")
    html = result.compare()._repr_html_()
    assert html.startswith(f"<p>{lines[0]}</p><table>")
    assert "e - a" in html
    found = result.contrast({"a": -1, "d": 1, "b": 0.25})
    low, high = f"{found.low:.2f}", f"{found.high:.2f}"
    assert repr(found) == (
        f"-a + d + 0.25 b: {found.value:.2f}, 95% interval {low} to {high}, standard error {found.error:.3f}"
    )


def test_one_pair_and_one_arm() -> None:
    pair = lived("binary", 400, {"a": 0.1, "b": 0.9})
    assert pair.compare().verdict == "1 of 1 pair differs (95%)."
    assert pair.compare(to="a").verdict == "1 of 1 arm differs from a (95%)."
    assert repr(eq.Study(["a"]).result().compare()).startswith("0 of 0 pairs differ (95%).\npair  ")
    assert len(eq.Study(["a"]).result().compare(to="a")) == 0


def test_before_any_interval() -> None:
    found = eq.Study(["a", "b"]).result().compare()
    assert repr(found).splitlines()[2].split() == ["a", "-", "b", "—", "—", "—", "—"]
    assert repr(next(iter(found))) == "a - b: —, no interval yet, standard error —"


def test_many_pairs_are_left_out_of_the_table() -> None:
    result = result_of_moments([50] * 12, [1.0] * 12, [float(k) for k in range(12)])
    lines = repr(result.compare()).splitlines()
    assert len(lines) == 2 + 20 + 2
    assert lines[22] == "Showing the 20 clearest of 66 pairs; 46 are left out."
    assert lines[2].startswith("arm 11 - arm 0 ")


def test_too_many_pairs_are_refused() -> None:
    result = eq.Study(1001).result()
    with pytest.raises(
        ValueError, match=r"at most 500,000 pairs, and 1,001 arms have 500,500; compare them to one arm"
    ):
        result.compare()
    assert len(result.compare(to=7)) == 1000
    assert contrasts.MOST_PAIRS == 500_000


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library: Any) -> None:
    pytest.importorskip(library)
    found = lived("binary").compare()
    frame = found.to_frame(library)
    assert list(frame.columns) == [
        "a",
        "b",
        "difference",
        "standard_error",
        "low",
        "high",
        "differ",
        "interval_kind",
        "interval_level",
    ]
    assert len(frame) == 10
    assert list(frame["low"]) == found.low.tolist()


def test_dicts() -> None:
    found = lived("binary").compare().to_dict()
    assert found["level"] == 0.95
    assert found["kind"] == "betting"
    assert found["differing"] == sum(each["differ"] for each in found["pairs"])
    assert set(found["pairs"][0]) == {
        "a",
        "b",
        "difference",
        "standard_error",
        "low",
        "high",
        "differ",
        "interval_kind",
    }
    unknown = eq.Study(["a", "b"]).result().compare().to_dict()["pairs"][0]
    assert (unknown["low"], unknown["difference"], unknown["differ"]) == (None, None, False)


def test_equal_samples_are_no_proof_that_an_arm_never_varies() -> None:
    study = eq.Study(["a", "b"], strategy="uniform")
    rng = random.Random(1)
    for _ in range(200):
        ticket = study.ask()
        study.tell(ticket, 1.0 if ticket.arm == "a" else rng.gauss(0, 1))
    result = study.result()
    spread = result.variances["b"] ** 0.5
    state = np.array([[100, 1.0, 99 * spread**2, 0.0], [100, result.means["b"], 99 * spread**2, 0.0]])
    alike = result.known.sequences.difference(state, 0, 1)
    found = result.difference("a", "b")
    assert (found.low, found.high) == pytest.approx(alike)


def test_finite_populations() -> None:
    rng = np.random.default_rng(1)
    for support in (None, "binary"):
        items: dict[Any, Any] = {
            k: rng.random(60) if support is None else (rng.random(60) < 0.5).astype(float) for k in "ab"
        }
        widths = []
        for budget in (80, 110, 118, 120):
            study = eq.Study(list(items), budget=budget, support=support, populations=[60, 60], strategy="uniform")
            drawn: dict[Any, int] = dict.fromkeys(items, 0)
            while not study.done:
                ticket = study.ask()
                study.tell(ticket, items[ticket.arm][drawn[ticket.arm]])
                drawn[ticket.arm] += 1
            found = study.result().difference("a", "b")
            widths.append(found.half_width)
            assert found.low - 1e-12 <= items["a"].mean() - items["b"].mean() <= found.high + 1e-12
        assert widths == sorted(widths, reverse=True)
        assert widths[-1] == pytest.approx(0, abs=1e-12)
        assert widths[0] < math.inf


def of_items(support: Any, arms: int = 6, size: int = 300, each: int = 60) -> eq.Result:
    """Return a study of zeros and ones, or of ratings from 0 to 4, that are drawn without replacement."""
    rng = np.random.default_rng(7)
    rates = np.linspace(0.2, 0.8, arms)
    items = {k: rng.binomial(1 if support in ("binary", None) else 4, rates[k], size) for k in range(arms)}
    return eq.estimate(
        lambda arm, item: float(items[arm][item]),
        populations=dict.fromkeys(items, size),
        budget=arms * each,
        support=support,
        strategy="uniform",
        seed=1,
    )


@pytest.mark.parametrize("support", ["binary", None, (0, 4)], ids=str)
def test_a_contrast_over_finite_populations_is_direct(support: Any) -> None:
    """Six arms: about four standard errors, and the box of the arms' intervals has eight and more."""
    result = of_items(support)
    weights = {k: (1 if k < 3 else -1) / 3 for k in range(6)}
    found = result.contrast(weights)
    assert (found.kind, result.known.recognised) == ("betting", support is None)
    low, high = bounds_of(result.known, result.known.sequences, None, 0.05 / 6)
    assert (high - low).sum() / 3 / 2 > 7.5 * found.error
    assert found.half_width < 4.3 * found.error
    assert found.low < found.value < found.high
    # All pairs at once, and a pair alone.
    pairs = result.compare()
    halves = result.intervals().half_widths
    assert (pairs.half_widths < halves[pairs.first] + halves[pairs.second]).all()
    assert result.difference(0, 5).half_width < pairs[0, 5].half_width
    # The samples may be gone.
    kept = pickle.loads(pickle.dumps(result))
    assert kept.contrast(weights) == found
    assert np.array_equal(kept.compare().low, pairs.low)


def test_a_contrast_of_one_arm_is_its_interval() -> None:
    for support in ("binary", (0, 4)):
        result = of_items(support, 2)
        one, [low, *_] = result.contrast({0: 2}), bounds_of(result.known, result.known.sequences, None, 0.05)[0]
        assert one.low == pytest.approx(2 * low)


@pytest.mark.parametrize("populations", [True, False])
@pytest.mark.parametrize("support", ["binary", None, (0, 4)], ids=str)
def test_the_kind_of_a_contrast(support: Any, populations: bool) -> None:
    if populations:
        result = of_items(support)
    else:
        rng = np.random.default_rng(8)
        numbers = {k: rng.normal(k, 1 + k, 60) for k in range(6)}
        whole = {k: rng.binomial(1 if support == "binary" else 4, 0.5, 60) for k in range(6)}
        result = eq.estimate(
            {k: x.tolist() for k, x in (numbers if support is None else whole).items()}, support=support
        )
    weights = {0: 1, 2: -0.5, 5: -0.5}
    planned = result.contrast(weights, kind="fixed-n")
    assert planned.kind == "fixed-n"
    assert (planned.low + planned.high) / 2 == pytest.approx(planned.value, abs=planned.error)
    assert 1.7 * planned.error < planned.half_width < 2.4 * planned.error
    assert "(fixed n)" in repr(planned)
    asymptotic, default = result.contrast(weights, kind="asymptotic"), result.contrast(weights)
    assert (asymptotic.kind, default.kind) == ("asymptotic", result.interval_kind)
    assert planned.half_width < min(asymptotic.half_width, default.half_width)
    assert result.contrast(weights, kind=result.interval_kind) == default
    assert result.contrast(weights, kind="fixed-width").half_width < 2.5 * planned.error
    assert result.difference(1, 4, kind="fixed-n") == result.contrast({1: 1, 4: -1}, kind="fixed-n")
    pairs = result.compare(kind="fixed-n")
    assert (pairs.kind, result.compare().kind) == ("fixed-n", result.interval_kind)
    assert pairs[1, 4].half_width > result.difference(1, 4, kind="fixed-n").half_width
    assert (pairs.half_widths < result.compare(kind="asymptotic").half_widths).all()
    # As `combine` has them, too: its shares are weights.
    shares = {0: 0.5, 2: 0.25, 5: 0.25}
    for kind in (result.interval_kind, "asymptotic"):
        mean, same = result.combine(shares, kind=kind), result.contrast(shares, kind=kind)
        assert (mean.low, mean.high) == (same.low, same.high)
    assert result.combine(shares, kind="fixed-n") == result.combine(shares)
    with pytest.raises(ValueError, match="kind must be"):
        result.contrast(weights, kind="exact")  # type: ignore[arg-type]


def test_fixed_n_over_finite_populations_has_their_correction() -> None:
    """Half as wide with three quarters drawn: Welch's interval to the digit, the exact one of zeros and ones nearly."""
    for support in ("binary", (0, 4)):
        result = of_items(support, 2, 400, 300)
        found = result.difference(0, 1, kind="fixed-n")
        plain = float(np.sqrt((result.variances.array / 300).sum()))
        assert found.half_width / plain == pytest.approx(1.96 / 2, rel=0.03 if support == "binary" else 0.005)
        used_up = of_items(support, 2, 50, 50).difference(0, 1, kind="fixed-n")
        assert used_up.low == used_up.high == pytest.approx(used_up.value)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda r: r.contrast({"a": 0}), "weights must be finite and not all zero, got {'a': 0}"),
        (lambda r: r.contrast({"a": math.nan}), "weights must be finite and not all zero"),
        (lambda r: r.contrast({"z": 1}), "there is no arm 'z'"),
        (lambda r: r.contrast([1, -1]), r"weights must be a mapping from arms to numbers, got \[1, -1\]"),
        (lambda r: r.contrast({"a": "x"}), "a weight must be a number, got 'x'"),
        (lambda r: r.compare(95), "level must be strictly between 0 and 1, got 95"),
        (lambda r: r.difference("a", "a", 2), "level must be strictly between 0 and 1, got 2"),
    ],
)
def test_wrong_arguments(call: Any, sentence: str) -> None:
    with pytest.raises((ValueError, TypeError), match=sentence):
        call(eq.Study(["a", "b"]).result())


def test_zeros_and_ones_are_not_taken_for_binary_before_they_are_enough() -> None:
    """As the intervals of arms: other values may follow as long as few samples were seen."""

    def zeros_and_ones(each: int, support: Any = None) -> eq.Result:
        samples = {"a": [i % 2 for i in range(each)], "b": [1] * each}
        return eq.estimate(samples, budget=2 * each, strategy="uniform", support=support, seed=1)

    few, enough = zeros_and_ones(8), zeros_and_ones(30)
    assert few.difference("b", "a").half_width == math.inf
    assert not few.compare().differing.any()
    assert np.isfinite(zeros_and_ones(8, "binary").difference("b", "a").half_width)
    declared, undeclared = (found.difference("b", "a") for found in (zeros_and_ones(30, "binary"), enough))
    assert (undeclared.low, undeclared.high) == (declared.low, declared.high)
    assert "assume that no other value can occur" in repr(enough.compare())
    assert "assume that no other value can occur" not in repr(few.compare())
    assert "assume that no other value can occur" not in repr(zeros_and_ones(30, "binary").compare())


def test_a_difference_of_a_coin_and_a_rare_large_value_is_not_guaranteed() -> None:
    """None of 300 studies that have seen no large value yet has an interval that misses the true difference."""
    missed = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        coin, rare = (rng.random(8) < 0.5).astype(float), 20.0 * (rng.random(8) < 0.05)
        found = eq.estimate({"a": coin.tolist(), "b": rare.tolist()}, budget=16, strategy="uniform", seed=seed)
        if found.known.recognised:
            contrast = found.difference("b", "a")
            missed += not contrast.low <= 0.5 <= contrast.high
    assert missed == 0
