"""A study in memory that is sampled to a precision: the decisions of `estimate`, by ask and tell."""

from __future__ import annotations

import copy
import pickle
import random
from typing import Any

import numpy as np
import pytest

import equipoise as eq

SPREADS = {"calm": 1.0, "rough": 4.0, "mild": 2.0}


class Samples:
    """Samples of arms by their arm and rank, so that two runs meet the same ones."""

    def __init__(self) -> None:
        self.taken = dict.fromkeys(SPREADS, 0)

    def next(self, arm: Any) -> float:
        self.taken[arm] += 1
        return random.Random(f"{arm} {self.taken[arm]}").gauss(10 * SPREADS[arm], SPREADS[arm])


def finish(study: eq.Study, samples: Samples) -> eq.Result:
    while not study.done:
        ticket = study.ask()
        study.tell(ticket, samples.next(ticket.arm))
    return study.result()


@pytest.mark.parametrize(
    "options",
    [
        {"precision": 0.5},
        {"precision": "2%"},
        {"precision": {"calm": 0.2, "rough": "5%", "mild": 1.0}, "level": 0.9},
        {"precision": 0.5, "interval": "anytime"},
        {"precision": eq.Contrasts(0.6), "budget": 5000},
        {"precision": 0.3, "objective": eq.Stratified({"calm": 0.25, "rough": 0.5, "mild": 0.25})},
        {"precision": "1%", "budget": 150},
    ],
    ids=str,
)
def test_ask_and_tell_make_the_decisions_of_estimate(options: Any) -> None:
    samples = Samples()
    own = finish(eq.Study(list(SPREADS), **options), Samples())
    other = eq.estimate({arm: (lambda arm=arm: samples.next(arm)) for arm in SPREADS}, **options)
    assert dict(own.counts) == dict(other.counts)
    assert dict(own.means) == dict(other.means)
    assert np.array_equal(own.intervals().half_widths, other.intervals().half_widths)
    assert own.reached == other.reached
    assert own.level == options.get("level", 0.95)


def test_a_study_is_done_once_the_precision_is_reached() -> None:
    study = eq.Study(list(SPREADS), precision=0.5)
    result = finish(study, Samples())
    assert set(study.retired) == set(SPREADS)
    assert max(result.intervals().half_widths) <= 0.5
    assert result.reached
    assert study.ask(3) == []
    with pytest.raises(eq.EquipoiseError, match="the precision is reached"):
        study.ask()


def test_answers_in_batches_out_of_order() -> None:
    """The arms' precision is reached whatever the order of answers; answers that come after that change nothing."""
    study, samples = eq.Study(list(SPREADS), precision=0.5), Samples()
    tickets = study.ask(6)
    while more := study.ask(16):
        study.tell_many([(ticket, samples.next(ticket.arm)) for ticket in reversed(tickets)])
        tickets = more
    assert study.in_flight == len(tickets)
    study.tell_many([(ticket, 1000.0) for ticket in tickets])
    assert study.done
    assert study.result().reached


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda study: pickle.loads(pickle.dumps(study))])
def test_a_copy_goes_on_to_the_same_precision(how: Any) -> None:
    study, samples = eq.Study(list(SPREADS), precision="2%"), Samples()
    for _ in range(40):
        ticket = study.ask()
        study.tell(ticket, samples.next(ticket.arm))
    other, again = how(study), copy.deepcopy(samples)
    assert dict(finish(study, samples).means) == dict(finish(other, again).means)


def test_arms_by_hand() -> None:
    """One that the user retires stays retired, and one that the user reopens is judged again."""
    study, samples = eq.Study(list(SPREADS), precision=0.5), Samples()
    study.retire("rough")
    result = finish(study, samples)
    assert result.counts["rough"] == 0
    study.reopen("rough")
    assert not study.done
    assert finish(study, samples).counts["rough"] > 2


def test_weights_of_the_user_are_kept() -> None:
    """They take the place of those that follow the precision."""
    study, samples = eq.Study(list(SPREADS), precision="2%"), Samples()
    for _ in range(30):
        ticket = study.ask()
        study.tell(ticket, samples.next(ticket.arm))
    assert study.objective.weights is not None
    study.set_weights([1, 2, 3])
    finish(study, samples)
    assert np.allclose(study.objective.weights, [1, 2, 3])


@pytest.mark.parametrize(
    ("options", "error"),
    [({"precision": 0}, "precision must"), ({"precision": 1, "level": 2}, "level"), ({"interval": "no"}, "interval")],
    ids=str,
)
def test_what_is_refused(options: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        eq.Study(2, **options)
