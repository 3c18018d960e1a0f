"""A log makes the study it is the log of, to the bit; it goes on where it was; what cannot be is refused."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise import strategies
from equipoise.store import Event, Header, Journal, Store, differences, replay
from equipoise.strategies import BAS, Numbers, Strategy, resolve
from equipoise.study.state import IN_FLIGHT

ARMS = ("calm", 7, ("rough", 2.5))


def header(strategy: str | Strategy = "auto", budget: float | None = 4000, **more: Any) -> Header:
    return Header(ARMS, resolve(strategy), more.pop("support", None), budget, more.pop("seed", 1), **more)


def live(journal: Journal, steps: int, seed: int, value: Any = None) -> None:
    """All kinds of events, in an order that chance chooses."""
    rng = random.Random(seed)
    waiting: list[int] = []
    forgotten: list[int] = []
    for _ in range(steps):
        what = rng.random()
        if what < 0.45:
            ids = journal.ask(rng.choice([1, 1, 5, 40]))
            waiting += ids
        elif what < 0.85 and waiting:
            rng.shuffle(waiting)
            taken = [waiting.pop() for _ in range(min(len(waiting), rng.choice([1, 3, 30])))]
            values = np.array([value(rng) if value else rng.choice([-0.0, rng.gauss(0, 3)]) for _ in taken])
            if len(taken) == 1:
                journal.tell(taken[0], values.tolist()[0], 0.5)
            else:
                journal.tell(np.array(taken), values, np.full(len(taken), 0.5))
        elif what < 0.88 and waiting:
            forgotten.append(waiting.pop())
            journal.forget(forgotten[-1], "lost")
        elif what < 0.90 and forgotten:  # late
            ticket = forgotten.pop()
            journal.tell(np.array([ticket]), np.array([float(value(rng)) if value else 0.25]), np.zeros(1))
        elif what < 0.92:
            journal.set_budget(rng.choice([12_000, 13_000]))
        elif what < 0.94 and not value:
            journal.more(rng.choice(ARMS), 4, rng.gauss(0, 1), 2.0)
        elif what < 0.96:
            journal.retire(rng.randrange(2), "enough")
        elif what < 0.98:
            journal.reopen(rng.randrange(2))
        elif waiting:
            journal.failed(waiting[-1], 1, "no answer\nand a second line")
        if rng.random() < 0.1:
            journal.commit()
    journal.commit()


@pytest.mark.parametrize(
    "strategy", ["auto", "gafs-max", "two-stage", BAS(exploration=0.5), "ch-as", "uniform"], ids=str
)
def test_replayed_to_the_bit(where: str, strategy: str | Strategy) -> None:
    journal = Journal(header(strategy, support=(-50, 50)), where)
    live(journal, 600, seed=3)
    with Store(where) as store:
        assert differences(replay(store), journal.study) == []
    journal.close()
    assert journal.study.result().samples > 200


@pytest.mark.parametrize("strategy", ["auto", "gafs-max", "uniform"])
@pytest.mark.parametrize(
    "options",
    [
        {"costs": [0.1, 0.7, 3.3], "objective": 2, "weights": {7: 2, "calm": 1, ("rough", 2.5): 1}},
        {"objective": eq.Stratified([0.5, 0.25, 0.25]), "costs": [1, 2, 3.5]},
    ],
)
def test_replayed_to_the_bit_with_money(where: str, strategy: str, options: dict[str, Any]) -> None:
    """Options reach the study, and money is spent in the replay as it was; also where it comes to an end."""
    journal = Journal(header(strategy, budget=400, options=options), where)
    assert journal.study.objective == eq.Study(ARMS, **options).objective
    live(journal, 300, seed=3)
    journal.close()
    spent = journal.study.spent
    assert 0 < spent <= journal.study.budget * (1 + 1e-9)  # type: ignore[operator]
    with Store(where) as store:
        assert differences(replay(store), journal.study) == []
    journal = Journal(header(strategy, budget=spent + 5, options=options), where)
    for arm in range(2):
        journal.reopen(arm)
    while len(journal.ask(7)):
        pass
    journal.ask(1)
    assert journal.study.done
    journal.tell(
        ids := np.flatnonzero(journal.study.ledger.tickets["status"] == IN_FLIGHT),
        np.ones(len(ids)),
        np.zeros(len(ids)),
    )
    journal.commit()
    journal.close()
    with Store(where) as store:
        assert differences(replay(store), journal.study) == []


def test_replayed_to_the_bit_for_binary_arms(where: str) -> None:
    journal = Journal(header(support="binary"), where)
    live(journal, 300, seed=4, value=lambda rng: float(rng.random() < 0.3))
    journal.close()
    with Store(where) as store:
        assert differences(replay(store), journal.study) == []


def test_replayed_to_the_bit_with_weights_that_change(where: str) -> None:
    journal = Journal(header(options={"costs": [1, 2, 3.5]}), where)
    for step in range(1, 5):
        live(journal, 100, seed=step)
        journal.set_weights(np.array([0.1 * step, 1 / 3, 7.0**-step]))
    live(journal, 100, seed=9)
    journal.close()
    assert journal.study.objective.weights == (0.4, 1 / 3, 7.0**-4)
    with Store(where) as store:
        assert differences(replay(store), journal.study) == []
        assert sum(line.kind == "weights" for line in store.events()) == 4


def _nudge(means: Any) -> None:
    means[0] = np.nextafter(means[0], math.inf)


def test_a_difference_is_found() -> None:
    """The comparison sees one sample, one budget, one ticket, the sign of a mean, a closed arm."""

    def some() -> Journal:
        journal = Journal(header())
        live(journal, 100, seed=5)
        return journal

    assert differences(some().study, some().study) == []
    changes: list[Any] = [
        lambda j: j.ask(1),
        lambda j: j.more("calm", 1, 0.3, 0.0),
        lambda j: j.set_budget(9999),
        lambda j: j.retire(2, ""),
        lambda j: _nudge(j.study.ledger._state.arms["mean"]),
    ]
    for change in changes:
        journal = some()
        change(journal)
        assert differences(journal.study, some().study) != []


def test_a_beginning_is_what_is_left(where: str) -> None:
    """Of a journal that is dropped without a word, what was committed is there and nothing else."""
    journal = Journal(header(), where)
    live(journal, 200, seed=6)
    with Store(where) as store:
        acknowledged = list(store.events())
    ids = journal.ask(10)
    journal.tell(ids[:5], np.arange(5.0), np.zeros(5))
    journal.close()
    with Store(where) as store:
        assert list(store.events()) == acknowledged
        assert [line.event for line in acknowledged] == list(range(len(acknowledged)))


def test_it_goes_on(where: str) -> None:
    """Closed and opened at every step, a study does what it would have done in one go."""
    whole = Journal(header())
    rng = np.random.default_rng(8)
    values = rng.normal(size=40)
    for value in values:
        ids = whole.ask(1)
        whole.tell(ids, np.array([value]), np.zeros(1))
    for i, value in enumerate(values):
        journal = Journal(header(), where)
        ids = journal.ask(1)
        assert list(ids) == [i]
        journal.tell(ids, np.array([value]), np.zeros(1))
        journal.commit()
        journal.close()
    assert differences(journal.study, whole.study) == []


def test_tickets_are_known_after_a_restart(where: str) -> None:
    journal = Journal(header(), where)
    ids = journal.ask(2)
    study = journal.study
    tickets = [eq.Ticket((study.first_number + i, study.arms[study.ledger.arm_of[i]])) for i in ids]
    journal.commit()
    journal.close()
    journal = Journal(header(), where)
    journal.study.tell(tickets[1], 2.0)
    assert journal.study.in_flight == 1
    journal.close()


def test_a_larger_budget_is_an_event(where: str) -> None:
    Journal(header(budget=10), where).close()
    journal = Journal(header(budget=20), where)
    journal.commit()
    journal.close()
    with Store(where) as store:
        (line,) = store.events()
        assert (line.kind, line.text) == ("budget", "20")
        assert replay(store).budget == 20


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"strategy": "uniform"},
            r"strategy must be Auto\(\) to continue the study in the store, got Uniform\(\); change it back",
        ),
        ({"support": "binary"}, "support must be None to continue the study in the store, got 'binary'"),
        ({"seed": 2}, "seed must be 1 to continue the study in the store, got 2"),
        ({"populations": (5, 6, None)}, r"populations must be None to continue .* got \(5, 6, None\)"),
    ],
)
def test_another_study_is_refused(where: str, change: dict[str, Any], said: str) -> None:
    Journal(header(), where).close()
    with pytest.raises(ValueError, match=said):
        Journal(header(**change), where)
    Journal(header(), where).close()  # and the store is free again


def test_headers_come_back() -> None:
    given = Header(
        (None, "a", 3, 2.5, (1, ("b", -math.inf))),
        BAS(exploration=0.1),
        (0.0, 2.0),
        12.5,
        2**127,
        {"objective": math.inf, "costs": {"a": 1, 3: 2.5}, "other": eq.Stratified([0.25, 0.75])},
        (1, None, 3),
        77,
    )
    again = Header.from_json(given.to_json())
    assert again == given
    assert again.first_number == 77
    assert type(again.arms[4]) is tuple
    assert Header.from_json(Header(range(2, 9), resolve("auto"), None, None, 0).to_json()).arms == range(2, 9)


def test_names_that_cannot_be_kept_are_refused(where: str) -> None:
    with pytest.raises(
        TypeError, match=r"^a store can hold strings, numbers and tuples of them, got frozenset\(\{1\}\)$"
    ):
        Journal(Header((frozenset([1]), 2), resolve("auto"), None, 100, 1), where)


def test_a_strategy_that_has_no_name_is_refused(where: str) -> None:
    class Nameless(Strategy):
        @staticmethod
        def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
            return 1.0

    with pytest.raises(eq.EquipoiseError, match="must be registered"):
        Journal(header(Nameless()), where)


def test_an_answer_again_is_not_written_again(where: str) -> None:
    journal = Journal(header(), where)
    ids = journal.ask(2)
    for _ in range(3):
        journal.tell(ids, np.array([1.0, 2.0]), np.zeros(2))
        journal.tell(0, 1.0, 0.0)
    with pytest.raises(ValueError, match=r"already answered with 2.0, got 3.0"):
        journal.tell(ids, np.array([1.0, 3.0]), np.zeros(2))
    with pytest.raises(ValueError, match=r"already answered with 2.0, got 3.0"):
        journal.tell(1, 3.0, 0.0)
    journal.commit()
    journal.close()
    with Store(where) as store:
        assert [line.kind for line in store.events()] == ["ask", "ask", "tell", "tell"]


class Sour(Strategy):
    """A strategy whose variance is none from 5 samples on."""

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        return -1.0 if count >= 5 else 1.0


def test_a_sample_that_the_strategy_fails_at_is_kept(where: str) -> None:
    strategies.register("sour")(Sour)
    journal = Journal(Header(("a",), Sour(), None, 100, 1), where)
    ids = journal.ask(9)
    journal.tell(ids[:4], np.arange(4.0), np.zeros(4))
    with pytest.raises(eq.EquipoiseError, match="the sample is kept"):
        journal.tell(4, 7.5, 0.0)
    with pytest.raises(eq.EquipoiseError, match="the sample is kept"):
        journal.tell(ids[5:], np.arange(4.0), np.zeros(4))
    journal.commit()
    journal.close()
    with Store(where) as store:
        assert differences(replay(store), journal.study) == []
        assert replay(store).result().samples == 9


def test_what_a_log_says(where: str) -> None:
    journal = Journal(header(), where)
    ids = journal.ask(1)
    journal.failed(0, 1, "it rains")
    journal.tell(ids, np.array([4.5]), np.array([0.25]))
    journal.commit()
    journal.close()
    with Store(where) as store:
        assert store.header == header()
        lines = [Event(line.event, 0.0, *line[2:]) for line in store.events()]
        assert store.events(after=1).__next__().kind == "tell"
    assert lines == [
        (0, 0.0, "ask", 0, journal.study.ledger.arm_of[0], None, None, None),
        (1, 0.0, "fail", 0, None, 1.0, None, "it rains"),
        (2, 0.0, "tell", 0, None, 4.5, 0.25, None),
    ]
