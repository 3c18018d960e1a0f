"""What a turn writes, and what an interrupt leaves of it."""

from __future__ import annotations

import linecache
import math
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise import strategies
from equipoise.store import Event, Header, Log, Turn, differences, replay, snapshots
from equipoise.store.memory import Memory
from equipoise.strategies import Numbers, Strategy
from tests.unit.store.living import header

SOURCE = str(Path(eq.__file__).parent)


def test_an_answer_again_is_not_written_again(where: str) -> None:
    with Log(where, header()) as log:
        ids = np.array(log.turn(lambda turn: turn.ask(2)))
        for _ in range(3):
            log.turn(lambda turn: turn.tell_many(ids, np.array([1.0, 2.0]), np.zeros(2)))
            log.turn(lambda turn: turn.tell(0, 1.0, 0.0))
        with pytest.raises(ValueError, match=r"already answered with 2.0, got 3.0"):
            log.turn(lambda turn: turn.tell_many(ids, np.array([1.0, 3.0]), np.zeros(2)))
        with pytest.raises(ValueError, match=r"already answered with 2.0, got 3.0"):
            log.turn(lambda turn: turn.tell(1, 3.0, 0.0))
        assert [event.kind for event in log.events()] == ["ask", "ask", "tell", "tell"]
        assert log.replica.turns == 2


def test_an_answer_twice_in_one_call_is_written_once(where: str) -> None:
    with Log(where, header()) as log:
        log.turn(lambda turn: turn.ask(2))
        log.turn(lambda turn: turn.tell_many(np.array([1, 1, 0, 1]), np.array([2.0, 2.0, 1.0, 2.0]), np.zeros(4)))
        assert [event.ticket for event in log.events() if event.kind == "tell"] == [1, 0]
        assert differences(replay(where).study, log.study) == []


class Sour(Strategy):
    """A strategy whose variance is none from 5 samples on."""

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        return -1.0 if count >= 5 else 1.0


def test_a_sample_that_the_strategy_fails_at_is_kept(where: str) -> None:
    strategies.register("sour")(Sour)
    with Log(where, Header(("a",), Sour(), None, 100, 1)) as log:
        ids = np.array(log.turn(lambda turn: turn.ask(9)))
        log.turn(lambda turn: turn.tell_many(ids[:4], np.arange(4.0), np.zeros(4)))
        with pytest.raises(eq.EquipoiseError, match="the sample is kept"):
            log.turn(lambda turn: turn.tell(4, 7.5, 0.0))
        with pytest.raises(eq.EquipoiseError, match="the sample is kept"):
            log.turn(lambda turn: turn.tell_many(ids[5:], np.arange(4.0), np.zeros(4)))
        with pytest.raises(eq.EquipoiseError, match="the samples are kept"):
            log.turn(lambda turn: turn.moments("a", 2, 1.0, 0.5))
        assert differences(replay(where).study, log.study) == []
        assert replay(where).study.result().samples == 11


def test_what_a_log_says(where: str) -> None:
    def work(turn: Turn) -> None:
        turn.ask_for(np.array([2, 0]))
        turn.failed(0, "it rains")
        turn.tell(0, 4.5, 0.25)
        turn.forget(1, "lost")

    with Log(where, header()) as log:
        log.turn(work)
        log.turn(lambda turn: turn.retire(1, "enough"))
        log.turn(lambda turn: turn.set_budget(5000))
        assert log.header == header()
        assert [event.kind for event in log.events(after=1)] == ["retire", "budget"]
        found = [Event(event.turn, 0.0, *event[2:]) for event in log.events()]
    assert found == [
        (1, 0.0, "ask", 0, 2, None, None, None),
        (1, 0.0, "ask", 1, 0, None, None, None),
        (1, 0.0, "fail", 0, None, None, None, "it rains"),
        (1, 0.0, "tell", 0, None, 4.5, 0.25, None),
        (1, 0.0, "forget", 1, None, None, None, "lost"),
        (2, 0.0, "retire", None, 1, None, None, "enough"),
        (3, 0.0, "budget", None, None, None, None, "5000"),
    ]


@pytest.mark.parametrize("text", ["\x00", "a\x00b", "\ud800", "\udfff and \ud800", "x" * 1_000_000, ""])
def test_whatever_a_failure_says(where: str, text: str) -> None:
    """What was told in the same turn is saved, and the text comes back."""

    def work(turn: Turn) -> None:
        ids = turn.ask(2)
        turn.tell(ids[0], 1.0)
        turn.failed(ids[1], text)
        turn.forget(ids[1], text)

    with Log(where, header()) as log:
        log.turn(work)
        assert [event.text for event in log.events() if event.text is not None] == [text, text]
    assert replay(where).study.result().samples == 1


def test_a_turn_without_a_log() -> None:
    """It has the same face, and keeps no leases, calls or events."""
    memory = Memory(header())
    turn = Turn(memory.replica)
    ids = turn.ask(3)
    turn.own(5, 1.0)
    turn.tell(ids[0], 1.0, 0.5)
    assert turn.tickets(ids)[2].id == 2
    assert turn.leases() == []
    assert turn.called([b"x"]) == {}
    assert not turn.wrote
    assert memory.replica.seconds[0] == 0.5
    assert math.isnan(memory.replica.seconds[1])


# ---- interrupts


class Interrupt:
    """Ctrl-C at the nth line that is run of the store and the study."""

    def __init__(self, nth: int) -> None:
        self.left = nth

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith((f"{SOURCE}/store", f"{SOURCE}/study")):
            return None
        # Python looks for signals after calls, not at the beginning of a block, nor where a lock is given back.
        line = linecache.getline(name, frame.f_lineno).strip()
        if event == "line" and not line.startswith(("try:", "with ", "self._thread = 0")):
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self


def interrupted(log: Log, work: Any, nth: int) -> bool:
    """Whether a turn was interrupted at its nth line, or had come to its end before."""
    before = sys.gettrace()
    sys.settrace(Interrupt(nth))
    try:
        log.turn(work)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize("snapshot", [False, True], ids=["turn", "snapshot"])
def test_an_interrupt_at_any_line(tmp_path: Path, snapshot: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Wherever Ctrl-C comes, the next turn is taken, all or nothing of the interrupted one is in the log, and once.

    Each time it comes twice in a row.
    """

    def work(turn: Turn) -> None:
        ids = turn.ask(2)
        turn.tell(ids[0], float(ids[0]), 0.1)
        turn.own(0, 100.0)
        turn.retire(0, "x")
        turn.reopen(0)
        turn.set_weights([1.0, 2.0, 3.0 + ids[0]])
        waiting = turn.ledger.in_flight_ids()[:2]
        turn.tell_many(waiting, waiting.astype(float), np.zeros(len(waiting)))

    if snapshot:
        monkeypatch.setattr(snapshots, "due", lambda tail, replica: tail > 0)
    where = tmp_path / "study.db"
    with Log(where, header(budget=100_000)) as log, Log(where, write=False) as other:
        log._database.execute("pragma synchronous = off")  # which takes most of the time
        log.turn(work)
        done, nth = 1, 1
        while interrupted(log, work, nth) | interrupted(log, work, nth + 1):
            log.turn(lambda turn: turn.moments("calm", 1, 1.0, 0.0))
            turns = log.replica.turns
            assert done + 1 <= turns <= done + 3
            done = turns
            truth = other.look(lambda replica: replica)
            assert differences(truth.study, log.study) == []
            assert (truth.turns, truth.chain, truth.counts) == (turns, log.replica.chain, log.replica.counts)
            # Where snapshots are written too, most lines are the same.
            nth += 16 if snapshot else 2
        assert nth > 200
        assert differences(replay(where).study, log.study) == []


@pytest.mark.parametrize("point", ["work", "begin", "append", "commit", "after the commit"])
def test_repeated_interrupts(where: str, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three times in a row at the same point, also on a server: the next turn works, and nothing is there twice."""
    with Log(where, header()) as log:
        log.turn(lambda turn: turn.ask(4))
        for nth in range(3):

            def stop(*given: Any) -> None:
                raise KeyboardInterrupt

            def work(turn: Turn, nth: int = nth) -> None:
                turn.tell(nth, 1.0)
                if point == "work":
                    raise KeyboardInterrupt

            with monkeypatch.context() as patch:
                commit = log._database.commit
                if point == "after the commit":
                    patch.setattr(log._database, "commit", lambda commit=commit: stop(commit()))
                elif point != "work":
                    patch.setattr(log._database, point, stop)
                with pytest.raises(KeyboardInterrupt):
                    log.turn(work)
            kept = nth + 1 if point in ("work", "after the commit") else 0
            assert replay(where).study.result().samples == kept
        log.turn(lambda turn: turn.tell_many(np.arange(4), np.ones(4), np.zeros(4)))
        assert [event.ticket for event in log.events() if event.kind == "tell"] == [0, 1, 2, 3]
        assert differences(replay(where).study, log.study) == []
