"""A log makes the study it is the log of, to the bit; and what cannot be in a log is refused in one sentence."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise import report
from equipoise.store import Log, differences, events, replay
from equipoise.store.events import Draft
from equipoise.store.memory import Memory
from equipoise.strategies import BAS, Strategy
from tests.unit.store.living import ARMS, by_hand, header, live, rewrite, rows_of


@pytest.mark.parametrize(
    "strategy", ["auto", "gafs-max", "two-stage", BAS(exploration=0.5), "ch-as", "uniform"], ids=str
)
def test_replayed_to_the_bit(where: str, strategy: str | Strategy) -> None:
    with Log(where, header(strategy, support=(-50, 50))) as log:
        live(log, 600, seed=3)
        assert differences(replay(where).study, log.study) == []
        assert log.study.result().samples > 200


@pytest.mark.parametrize(("seconds", "told"), [(math.nan, 0), (0.5, 4)])
def test_bytes_of_a_ticket(tmp_path: Path, seconds: float, told: int) -> None:
    """16 for its record, 4 for its seconds where somebody tells them, and 8 where it has a turn of its own."""
    with Log(tmp_path / "study.db", header()) as log:
        before = _bytes(log)
        for _ in range(100):
            ticket = log.turn(lambda turn: turn.ask(1))[0]
            log.turn(lambda turn, ticket=ticket: turn.tell(ticket, 1.0, seconds))  # type: ignore[misc]
        assert _bytes(log) == before + 100 * (16 + told + 8)
        numbers = [ticket.number for ticket in log.turn(lambda turn: turn.tickets(range(100)))]
        assert [log.replica.id_of(number) for number in numbers] == list(range(100))


def test_what_samples_took_is_replayed(where: str) -> None:
    """Told here or folded from the log, at once or before other tickets are asked for."""
    with Log(where, header()) as log:
        first, _ = log.turn(lambda turn: turn.ask(2))
        log.turn(lambda turn: turn.tell(first, 1.0, 0.25))
    with Log(where) as log:
        log.turn(lambda turn: turn.ask(3))
        kept = log.replica.arrays()["seconds"]
        np.testing.assert_array_equal(kept, replay(where).arrays()["seconds"])
        np.testing.assert_array_equal(kept, [0.25] + [math.nan] * 4)


def _bytes(log: Log) -> int:
    arrays = {**log.study.ledger.arrays(), **log.replica.arrays()}
    return sum(array.nbytes for array in arrays.values() if isinstance(array, np.ndarray))


@pytest.mark.parametrize("strategy", ["auto", "gafs-max", "uniform"])
@pytest.mark.parametrize(
    "options",
    [
        {"costs": [0.1, 0.7, 3.3], "objective": 2, "weights": {7: 2, "calm": 1, ("rough", 2.5): 1}},
        {"objective": eq.Stratified([0.5, 0.25, 0.25]), "costs": [1, 2, 3.5]},
    ],
    ids=["weights", "strata"],
)
def test_replayed_to_the_bit_with_money(where: str, strategy: str, options: dict[str, Any]) -> None:
    """Options reach the study, and money is spent in the replay as it was; also where it comes to an end."""
    with Log(where, header(strategy, budget=400, options=options)) as log:
        assert log.study.objective == eq.Study(ARMS, **options).objective
        live(log, 300, seed=3)
        spent = log.study.spent
        assert 0 < spent <= log.study.budget * (1 + 1e-9)  # type: ignore[operator]
        assert differences(replay(where).study, log.study) == []
    with Log(where, header(strategy, budget=spent + 5, options=options)) as log:
        for arm in range(2):
            log.turn(lambda turn, arm=arm: turn.reopen(arm))  # type: ignore[misc]
        while log.turn(lambda turn: turn.ask(7)):
            pass
        assert log.study.done
        ids = log.study.ledger.in_flight_ids()
        log.turn(lambda turn: turn.tell_many(ids, np.ones(len(ids)), np.zeros(len(ids))))
        assert differences(replay(where).study, log.study) == []


def test_replayed_to_the_bit_for_binary_arms(where: str) -> None:
    with Log(where, header(support="binary")) as log:
        live(log, 300, seed=4, value=lambda rng: float(rng.random() < 0.3))
        assert differences(replay(where).study, log.study) == []


def test_replayed_to_the_bit_with_populations(where: str) -> None:
    with Log(where, header(populations=(40, None, 300))) as log:
        live(log, 300, seed=4, value=lambda rng: rng.gauss(0, 1))
        assert differences(replay(where).study, log.study) == []


def test_replayed_to_the_bit_with_weights_that_change(where: str) -> None:
    with Log(where, header(options={"costs": [1, 2, 3.5]})) as log:
        for step in range(1, 5):
            live(log, 100, seed=step)
            log.turn(lambda turn, step=step: turn.set_weights([0.1 * step, 1 / 3, 7.0**-step]))  # type: ignore[misc]
        live(log, 100, seed=9)
        assert log.study.objective.weights == (0.4, 1 / 3, 7.0**-4)
        found = replay(where)
        assert differences(found.study, log.study) == []
        assert found.counts["weights"] == 4


def _nudge(study: eq.Study) -> None:
    means = study.ledger._state.arms["mean"]
    means[0] = np.nextafter(means[0], math.inf)


def test_a_difference_is_found() -> None:
    """The comparison sees one sample, one budget, one ticket, the last bit of a mean, a retired arm."""

    def some() -> Memory:
        memory = Memory(header())
        live(memory, 100, seed=5)
        return memory

    assert differences(some().study, some().study) == []
    changes: list[Callable[[Memory], Any]] = [
        lambda memory: memory.turn(lambda turn: turn.ask(1)),
        lambda memory: memory.turn(lambda turn: turn.moments("calm", 1, 0.3, 0.0)),
        lambda memory: memory.turn(lambda turn: turn.set_budget(9999)),
        lambda memory: memory.turn(lambda turn: turn.retire(2, "")),
        lambda memory: _nudge(memory.study),
    ]
    for change in changes:
        memory = some()
        change(memory)
        assert differences(memory.study, some().study) != []


# ---- rows that were edited by hand


def kept(where: str, turns: int = 20) -> None:
    """A study of so many turns, each of which asks for two samples and answers one."""
    with Log(where, header(arms=("a", "b"), budget=100_000, support=(-1000.0, 1000.0))) as log:
        for _ in range(turns):

            def work(turn: Any) -> None:
                ids = turn.ask(2)
                turn.tell(ids[0], float(ids[0]), 0.5)

            log.turn(work)


def looks(where: str) -> list[Callable[[], Any]]:
    """All ways to look at a store."""
    return [
        lambda: Log(where, write=False),
        lambda: Log(where),
        lambda: replay(where),
        lambda: eq.open(where),
        lambda: report.read(where),
        lambda: eq.estimate(lambda arm: 1.0, 100_000, arms=["a", "b"], support=(-1000, 1000), seed=1, store=where),
    ]


@pytest.mark.parametrize(
    ("which", "said"),
    [
        ("turn = 1", "turn 1 is missing"),
        ("turn = 17", "turn 17 is missing"),
        ("turn in (19, 12)", "turn 12 is missing"),
        ("turn = 20", "it had 20 turns, and 19 are left"),
        ("turn > 5", "it had 20 turns, and 5 are left"),
        ("turn >= 1", "it had 20 turns, and 0 are left"),
    ],
)
def test_a_turn_that_is_missing_is_noticed(where: str, which: str, said: str) -> None:
    kept(where)
    by_hand(where, f"delete from equipoise_turn where {which} and study = ?")
    for look in looks(where):
        with pytest.raises(
            eq.EquipoiseError, match=rf"^the log in .* is damaged: {said}; restore a copy of it or use another store$"
        ):
            look()


@pytest.mark.parametrize("page", [3, 7])
def test_a_gap_on_a_later_page(where: str, page: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equipoise.store.database._PAGE", page)
    kept(where)
    with Log(where) as log:
        assert [event.turn for event in log.events(after=4)] == [n for n in range(5, 21) for _ in range(3)]
        assert [event.ticket for event in log.events(after=4) if event.kind == "ask"] == list(range(8, 40))
    by_hand(where, "delete from equipoise_turn where turn = 17 and study = ?")
    with pytest.raises(eq.EquipoiseError, match="turn 17 is missing"):
        Log(where)


def body(*adds: tuple[int, int, str | None], told: tuple[tuple[int, float], ...] = (), asked: int = 0) -> bytes:
    draft = Draft()
    draft.asked([0] * asked)
    for kind, place, text in adds:
        draft.add(kind, place, text)
    for ticket, value in told:
        draft.told(ticket, value, 0.5)
    return draft.pack()


def unknown_kind() -> bytes:
    changed = bytearray(body(asked=1))
    changed[4] = 77
    return bytes(changed)


def arm_out_of_range(place: int) -> bytes:
    changed = bytearray(body(asked=1))
    changed[5:9] = struct.pack("<I", place)
    return bytes(changed)


EDITS = [
    (arm_out_of_range(10_000_000), "there is no arm 10000000"),
    (arm_out_of_range(2**32 - 1), "there is no arm 4294967295"),
    (arm_out_of_range(2), "there is no arm 2"),
    (body(told=((1_000_000, 1.0),)), "ticket 1000000 was not handed out"),
    (body(told=((8, 1.0),)), "ticket 8 was not handed out"),
    (body((events.FORGET, 2**31, "lost")), "ticket 2147483648 was not handed out"),
    (body((events.FAIL, 99, "why")), "ticket 99 was not handed out"),
    (body(told=((0, 5.0),)), "ticket 0 is answered or declined twice"),
    (body(told=((1, 5.0), (1, 5.0))), "ticket 1 is answered or declined twice"),
    (body(told=((1, math.nan),)), "a sample cannot be nan"),
    (body(told=((1, math.inf),)), "a sample cannot be inf"),
    (body(told=((1, 1000.5),)), r"a sample cannot be 1000\.5"),
    (body(told=((1, -1e300),)), r"a sample cannot be -1e\+300"),
    (unknown_kind(), "turn 5: it has an event of the unknown kind 77"),
    (b"\x07", "turn 5: it is too short"),
    (body((events.FORGET, 0, "lost")), "an event 'forget' cannot be: cannot forget ticket 0 of arm .*"),
    (body((events.RETIRE, 9, "why")), "there is no arm 9"),
    (body((events.BUDGET, 0, "1")), "an event 'budget' cannot be: .*"),
    (body((events.BUDGET, 0, '"much"')), "an event 'budget' cannot be: .*"),
    (body((events.BUDGET, 0, "[" * 100_000)), "an event 'budget' cannot be: it is nested too deeply"),
    (body((events.WEIGHTS, 0, "[1, 2]")), "an event 'weights' cannot be: .*"),
    (body((events.WEIGHTS, 0, "null")), "an event 'weights' cannot be: .*"),
    (body((events.GOAL, 0, "{}")), "an event 'goal' cannot be: .*"),
    (body((events.MOMENTS, 0, "[0, 1, 1]")), "an event 'moments' cannot be: .*"),
    (body((events.MOMENTS, 0, "[2, 1, 1e400]")), "an event 'moments' cannot be: .*"),
    (body((events.MOMENTS, 0, "7")), "an event 'moments' cannot be: .*"),
    (body((events.MOMENTS, 0, json.dumps([10**30, 1, 1]))), "an event 'moments' cannot be: .*"),
]


@pytest.mark.parametrize(("changed", "said"), EDITS, ids=range(len(EDITS)))
def test_a_row_whose_checksum_was_made_to_fit(tmp_path: Any, changed: bytes, said: str) -> None:
    """What a row says is checked before compiled code sees it, whatever its checksum says."""
    where = str(tmp_path / "study.db")
    kept(where, 4)
    with Log(where) as log:
        log.turn(lambda turn: turn.set_goal(0.5, 0.9, "anytime"))
        log.turn(lambda turn: turn.set_goal(0.25, 0.9, "anytime"))
    rewrite(where, 5, changed)
    for look in looks(where):
        with pytest.raises(
            eq.EquipoiseError, match=rf"^the log in .* is damaged: {said}; restore a copy of it or use another store$"
        ):
            look()


@pytest.mark.parametrize(("changed", "said"), EDITS[::3])
def test_a_row_that_was_edited(where: str, changed: bytes, said: str) -> None:
    """Nobody can change a row without a checksum that fits."""
    kept(where, 6)
    by_hand(where, "update equipoise_turn set body = ? where turn = 5 and study = ?", values=(changed,))
    for look in looks(where):
        with pytest.raises(eq.EquipoiseError, match=r"is damaged: turn 5 does not match its checksum; restore a copy"):
            look()


def test_rows_that_were_swapped(where: str) -> None:
    kept(where, 6)
    one, two = rows_of(where)[2:4]
    for row, at in ((one, 3), (two, 2)):
        sql = "update equipoise_turn set id = ?, at = ?, body = ?, chain = ? where turn = ? and study = ?"
        by_hand(where, sql, values=(row.id, row.at, row.body, row.chain, at))
    with pytest.raises(eq.EquipoiseError, match="is damaged: turn 2 does not match its checksum"):
        Log(where)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("turns = 3", "the last turn does not match the checksum of the study"),
        ("turns = 7", "it had 7 turns, and 6 are left"),
        ("turns = 1000000", "it had 1,000,000 turns, and 6 are left"),
        ("turns = -5", "it had 0 turns, and -5 are left"),
    ],
)
def test_a_count_that_was_edited(where: str, change: str, said: str) -> None:
    kept(where, 6)
    by_hand(where, f"update equipoise_study set {change} where study = ?")
    with pytest.raises(eq.EquipoiseError, match=f"is damaged: {said}; restore a copy"):
        Log(where)


@pytest.mark.parametrize(
    ("column", "value"), [("body", "a text"), ("body", 7), ("id", "x"), ("at", "today"), ("chain", 3), ("turn", "two")]
)
def test_other_types_in_a_file(tmp_path: Any, column: str, value: Any) -> None:
    """SQLite keeps whatever it is given in any column."""
    where = str(tmp_path / "study.db")
    kept(where, 3)
    by_hand(where, f"update equipoise_turn set {column} = ? where turn = 2 and study = ?", values=(value,))
    with pytest.raises(eq.EquipoiseError, match=r"is damaged: .*turn"):
        Log(where)


def test_a_log_that_becomes_shorter_while_it_is_followed(where: str) -> None:
    kept(where, 6)
    chain = rows_of(where)[3].chain
    with Log(where) as log:
        by_hand(where, "delete from equipoise_turn where turn > 3 and study = ?")
        by_hand(where, "update equipoise_study set turns = 3, chain = ? where study = ?", values=(chain,))
        with pytest.raises(eq.EquipoiseError, match="is damaged: it had 6 turns, and 3 are left"):
            log.turn(lambda turn: turn.ask(1))
