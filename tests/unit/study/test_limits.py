"""Numbers of arms, tickets and answers that no study can hold are refused before any memory is taken."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

import equipoise as eq


@pytest.mark.parametrize("count", [10_000_001, 2**32, 10**18, 10**30])
def test_too_many_tickets_at_once(count: int) -> None:
    study = eq.Study(["a", "b"])
    with pytest.raises(ValueError, match="asked for at once must be at most 10,000,000, got"):
        study.ask(count)
    assert study.in_flight == 0
    assert len(eq.Study(["a", "b"], budget=4).ask(count)) == 4


@pytest.mark.parametrize("arms", [10**10, range(10**18), range(5, 10**8)])
def test_too_many_arms(arms: Any) -> None:
    with pytest.raises(ValueError, match="arms must be at most 10,000,000, got"):
        eq.Study(arms)


def test_arms_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equipoise.base.inputs.MOST_ARMS", 1000)
    with pytest.raises(ValueError, match=r"arms must be at most 1,000, got count\(1001\)"):
        eq.Study(itertools.count())


@pytest.mark.parametrize("answers", [[range(10**18)], range(10**18), [(1, 2, 3, 4)], [3], 3])
def test_answers_that_are_not_pairs(answers: Any, tmp_path: Path) -> None:
    with eq.open(tmp_path / "study.db", arms=["a"]) as shared:
        for study in (eq.Study(["a"]), shared):
            with pytest.raises(TypeError, match=r"tell_many takes pairs \(ticket, value\) or triples"):
                study.tell_many(answers)


def test_a_cost_that_is_not_a_number(tmp_path: Path) -> None:
    with eq.open(tmp_path / "study.db", arms=["a"], costs=[2.0]) as shared:
        for study in (eq.Study(["a"], costs=[2.0]), shared):
            with pytest.raises(ValueError, match=r"cost must be a number between 0 and 1e\+100, got nan"):
                study.tell_many([(study.ask(), 1.0, float("nan"))])
            assert not study.result().counts["a"]
