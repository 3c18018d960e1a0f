"""Which interval decides that an arm is known well enough."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.inference import arm_intervals
from equipoise.inference.arm_intervals import reached_by_arm
from equipoise.intervals import fixed_width
from equipoise.ledger import Goal
from equipoise.ledger.goal import Stopping, precision


def told(samples: dict[str, Any], half: Any, interval: Stopping = "fixed-width", **options: Any) -> eq.Result:
    """Return the result of a study that was asked for a precision."""
    study = eq.Study(list(samples), strategy="uniform", **options)
    queues = {arm: iter(values) for arm, values in samples.items()}
    for _ in range(sum(map(len, samples.values()))):
        ticket = study.ask()
        study.tell(ticket, next(queues[str(ticket.arm)]))
    return study.result(goal=Goal(precision=precision(half, 0.95, study.arms, interval)))


def drawn(count: int, skewed: bool = False) -> Any:
    rng = np.random.default_rng(7)
    return rng.exponential(1, count) if skewed else rng.normal(0, 1, count)


def test_an_arm_that_is_narrow_enough_has_a_fixed_width_interval() -> None:
    both = {"a": drawn(400), "b": drawn(400) * 3}
    found = told(both, 0.2)
    intervals = found.intervals()
    assert reached_by_arm(found.known).tolist() == intervals.fixed.tolist() == [True, False]
    assert intervals.kinds == ("fixed-width", "asymptotic")
    assert intervals.kind == "asymptotic"
    # The other has its sequence.
    anytime = told(both, 0.2, "anytime").intervals()
    assert anytime.kinds == ("asymptotic", "asymptotic")
    assert intervals.half_widths[1] == pytest.approx(anytime.half_widths[1])
    assert 0.6 < intervals.half_widths[0] / anytime.half_widths[0] < 0.75
    state = found.known.state_of("fixed-width", [0])[0]
    half = fixed_width.half_width(state, math.inf, fixed_width.quantile(0.025), False)
    assert intervals["a"] == pytest.approx((both["a"].mean() - half, both["a"].mean() + half))


def test_fixed_widths_at_another_level() -> None:
    """What decided was the level of the study; at a lower one the interval is narrower, and around the same mean."""
    found = told({"a": drawn(400)}, 0.2)
    levels = [found.intervals(level) for level in (0.8, 0.9, 0.95, 0.99)]
    assert [each.kind for each in (found.intervals(), *levels)] == ["fixed-width"] * 5
    assert found.intervals(kind="asymptotic").kind == "asymptotic"
    widths = [float(each.half_widths[0]) for each in levels]
    assert widths == sorted(widths)
    assert widths[2] == found.intervals().half_widths[0]
    assert widths[3] / widths[2] == pytest.approx(2.576 / 1.96, rel=0.02)
    assert {round(float(each.low[0] + each.high[0]), 9) for each in levels} == {round(2 * found.means["a"], 9)}


def test_the_result_says_which_interval_it_is() -> None:
    found = told({"a": drawn(400), "b": drawn(400) * 3}, 0.2)
    sentence = "95% confidence intervals, simultaneous over arms, valid where width alone decides when to stop"
    others = "b: confidence sequences, simultaneous over arms and valid at any time (asymptotic"
    assert sentence in repr(found)
    assert others in repr(found)
    assert found.to_dict()["interval_kinds"] == {"a": "fixed-width", "b": "asymptotic"}
    assert list(found.to_frame()["interval_kind"]) == ["fixed-width", "asymptotic"]
    whole = told({"a": drawn(400)}, 0.2)
    assert sentence in repr(whole)
    assert "sequences" not in repr(whole)
    assert sentence in str(whole.certificate)
    assert whole.to_dict()["interval_kind"] == "fixed-width"


def test_where_it_cannot_be_trusted_a_sequence_decides_with_caution() -> None:
    skewed = {"a": drawn(150, skewed=True)}
    plain, anytime = told(skewed, 0.2), told(skewed, 0.2, "anytime")
    widths = arm_intervals.widths(plain.known)
    assert widths.half[0] == math.inf > 0.2 > widths.plain[0]
    assert plain.reached is False
    assert plain.intervals().half_widths == pytest.approx(anytime.intervals().half_widths)
    enough = told(skewed, 1.01 * plain.intervals().margins[0])
    assert enough.reached is True
    assert enough.intervals().kind == "asymptotic"
    # Of fewer than 30 samples, the sequence is taken with caution.
    few = {"a": drawn(20)}
    care = told(few, 0.2).intervals().half_widths / told(few, 0.2, "anytime").intervals().half_widths
    assert care == pytest.approx([math.sqrt(30 / 20)])


def test_a_support_needs_no_caution() -> None:
    rare = {"a": np.r_[np.zeros(120), np.ones(2)]}
    for support in ("binary", (0, 1)):
        found = told(rare, 0.2, support=support)
        assert found.reached is True
        assert found.intervals().kind == "betting"
        assert found.intervals().half_widths == pytest.approx(found.intervals(kind="betting").half_widths)


def test_a_large_share_of_a_mean_near_zero_is_not_known_by_fixed_width() -> None:
    """To ±80% of its mean, an arm must be sqrt(1.96² + 12) = 3.98 standard errors from 0."""
    centred = drawn(400) - drawn(400).mean()
    error = centred.std(ddof=1) / 20
    for errors, known in ((3.0, False), (4.3, True)):
        found = told({"a": centred + errors * error}, "80%")
        half = fixed_width.half_width(found.known.state_of("fixed-width", [0])[0], math.inf, 1.96, False)
        assert half < 0.8 * found.means["a"]
        assert reached_by_arm(found.known).tolist() == found.intervals().fixed.tolist() == [known]
        assert (found.samples_left == 0) == known
    # A share that is small enough decides alone.
    assert reached_by_arm(told({"a": centred + 20 * error}, "20%").known).tolist() == [True]
    assert fixed_width.largest_share(0.05) == pytest.approx(1.959964 / math.sqrt(1.959964**2 + 12))


def test_a_large_share_of_a_combined_mean_near_zero_is_not_known_by_fixed_width() -> None:
    """Means of 0 are soon 2.5 standard errors from 0, where the half-width is 80% of them."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        draws = {arm: rng.normal(size=300) for arm in "ab"}
        found = eq.estimate(draws, precision="80%", objective=eq.Stratified([0.5, 0.5]), budget=300)
        whole = found.combine()
        assert not found.reached or abs(whole.value) > 3.5 * whole.error


def test_populations() -> None:
    values = {"a": drawn(60)}
    endless, finite = told(values, 0.2), told(values, 0.2, populations=[100])
    assert (endless.reached, finite.reached) == (False, True)
    assert finite.intervals().kind == "fixed-width"
    assert finite.intervals(kind="fixed-width").half_widths == pytest.approx(finite.intervals().half_widths)
    assert told(values, 1e-9, populations=[60]).reached is True


def test_what_is_left_goes_by_the_interval_that_decides() -> None:
    found = told({"a": drawn(400)}, 0.05)
    needed = (found.known.state_of("fixed-width", None)[0, 2] / 399) * (1.96 / 0.05) ** 2
    assert found.samples_left == pytest.approx(needed - 400, rel=0.02)
    assert told({"a": drawn(400)}, 0.2).samples_left == 0
    later = eq.Result(replace(found.known, goal=Goal(precision=precision(0.05, 0.95, found.arms, "anytime"))))
    assert later.samples_left is not None
    assert later.samples_left > 2 * needed - 400


def test_moments_alone_have_fixed_n() -> None:
    study = eq.Study(["a"])
    study.tell_moments("a", 400, 0.0, 399.0)
    found = eq.Result(replace(study.result().known, goal=Goal(precision=precision(0.2, 0.95, ["a"]))))
    assert reached_by_arm(found.known).tolist() == [found.intervals().margins[0] <= 0.2]


def test_zeros_and_ones_are_replayed_as_such_whether_declared_or_not() -> None:
    """What stopping did to errors and means is the same for samples that are only recognised as binary."""
    values = (np.random.default_rng(3).random(2000) < 0.3).astype(float)
    found = [eq.estimate({"a": values.copy()}, precision=0.06, support=support) for support in (None, "binary")]
    assert found[0].known.recognised
    assert found[0].samples == found[1].samples
    for name in ("standard_errors", "corrected_means"):
        assert getattr(found[0], name).array == pytest.approx(getattr(found[1], name).array)
    assert found[0].standard_errors["a"] < 1.5 * found[0].plain_errors["a"]
