"""Drawn problems: the same ones for a seed, now and later."""

from __future__ import annotations

import hashlib
from collections import Counter

import pytest

from equipoise.lab.random_problems import FAMILIES, drawn


def test_a_seed_draws_what_it_always_drew() -> None:
    """Names, budgets, supports and moments of the 200 problems of seed 2026, to six digits."""
    cases = drawn(2026)
    lines = []
    for case in cases:
        laws = (f"{type(law).__name__} {law.mean:.6g} {law.variance:.6g} {law.fourth:.6g}" for law in case.problem.arms)
        lines.append(f"{case.name} {case.budget} {case.support} {' '.join(laws)}")
    found = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    assert found == "0a9a97d318815f354d32e189f31396d195a9011911278c71c7f71ac0a5442d4e"
    kinds = Counter(
        "binary" if case.kind == "binary" else "rare" if case.tails == "rare" else "plain" for case in cases
    )
    assert kinds == {"plain": 95, "rare": 59, "binary": 46}


def test_fewer_are_the_first_ones_and_another_seed_draws_others() -> None:
    assert drawn(2026, 5) == drawn(2026, 8)[:5]
    assert not {case.name for case in drawn(2027, 8)} & {case.name for case in drawn(2026, 8)}


def test_they_cover_what_they_say() -> None:
    cases = drawn(1, 200)
    assert len({case.name for case in cases}) == 200
    assert min(len(case.problem) for case in cases) == 2
    assert 90 < max(len(case.problem) for case in cases) <= 100
    assert all(14.9 < case.per_arm < 1000.1 and case.budget <= 20_000 for case in cases)
    assert all(any(family in case.name for case in cases) for family in (*FAMILIES, "binary"))
    assert 20 < sum(case.kind == "binary" for case in cases) < 80
    hidden = [case for case in cases if any(family in case.name for family in ("rare", "spikes", "claims"))]
    assert [case for case in cases if case.tails == "rare"] == hidden


def test_wrong_input() -> None:
    with pytest.raises(ValueError, match="seed must be a non-negative integer, got -1"):
        drawn(-1)
    with pytest.raises(ValueError, match="problems must be a positive integer, got 0"):
        drawn(1, 0)
