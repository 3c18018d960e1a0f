"""Which interval decides that an arm is known well enough."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.intervals import fixed_width
from equipoise.study import Goal, stopping
from equipoise.study.goal import Stopping, precision


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
    assert found.reached_by_arm.tolist() == intervals.fixed.tolist() == [True, False]
    assert intervals.kinds == ("fixed-width", "asymptotic")
    assert intervals.kind == "asymptotic"
    # The other has its sequence.
    anytime = told(both, 0.2, "anytime").intervals()
    assert anytime.kinds == ("asymptotic", "asymptotic")
    assert intervals.half_widths[1] == pytest.approx(anytime.half_widths[1])
    assert 0.6 < intervals.half_widths[0] / anytime.half_widths[0] < 0.75
    state = found.state_of("fixed-width", [0])[0]
    half = fixed_width.half_width(state, math.inf, fixed_width.quantile(0.025), False)
    assert intervals["a"] == pytest.approx((both["a"].mean() - half, both["a"].mean() + half))


def test_who_looks_at_another_level_has_sequences() -> None:
    found = told({"a": drawn(400)}, 0.2)
    assert found.intervals().kind == found.intervals(0.95).kind == "fixed-width"
    assert found.intervals(0.9).kind == found.intervals(kind="asymptotic").kind == "asymptotic"


def test_the_result_says_which_interval_it_is() -> None:
    found = told({"a": drawn(400), "b": drawn(400) * 3}, 0.2)
    sentence = "95% confidence intervals, simultaneous over arms, valid where width alone decides when to stop"
    others = "Other arms: confidence sequences, simultaneous over arms and valid at any time (asymptotic"
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
    widths = stopping.widths(plain)
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


def test_populations() -> None:
    values = {"a": drawn(60)}
    endless, finite = told(values, 0.2), told(values, 0.2, populations=[100])
    assert (endless.reached, finite.reached) == (False, True)
    assert finite.intervals().kind == "fixed-width"
    assert finite.intervals(kind="fixed-width").half_widths == pytest.approx(finite.intervals().half_widths)
    assert told(values, 1e-9, populations=[60]).reached is True


def test_what_is_left_goes_by_the_interval_that_decides() -> None:
    found = told({"a": drawn(400)}, 0.05)
    needed = (found.state_of("fixed-width", None)[0, 2] / 399) * (1.96 / 0.05) ** 2
    assert found.samples_left == pytest.approx(needed - 400, rel=0.02)
    assert told({"a": drawn(400)}, 0.2).samples_left == 0
    later = replace(found, goal=Goal(precision=precision(0.05, 0.95, found.arms, "anytime")))
    assert later.samples_left is not None
    assert later.samples_left > 2 * needed - 400


def test_moments_alone_have_fixed_n() -> None:
    study = eq.Study(["a"])
    study.tell_moments("a", 400, 0.0, 399.0)
    found = replace(study.result(), goal=Goal(precision=precision(0.2, 0.95, ["a"])))
    assert found.reached_by_arm.tolist() == [found.intervals().margins[0] <= 0.2]
