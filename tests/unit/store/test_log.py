"""A study goes on where it was, in whatever process; and a log that is shared by threads and forked children."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.base.patience import Patience
from equipoise.store import Log, Turn, differences, replay
from equipoise.store.database import Head
from equipoise.store.memory import Memory
from tests.unit.store.living import header, live


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_beginning_is_what_is_left(where: str) -> None:
    """Of a turn in which its process ended, nothing is there; of those before it, all."""
    with Log(where, header()) as log:
        live(log, 200, seed=6)
        acknowledged = list(map(repr, log.events()))

    def end_in_a_turn() -> None:
        def work(turn: Turn) -> None:
            ids = turn.ask(10)
            turn.tell(ids[0], 1.0)
            os._exit(5)

        Log(where).turn(work)

    assert in_a_child(end_in_a_turn) == 5
    with Log(where) as log:
        assert list(map(repr, log.events())) == acknowledged
        assert {event.turn for event in log.events()} <= set(range(1, log.replica.turns + 1))
        log.turn(lambda turn: turn.ask(1))


def test_it_goes_on(where: str) -> None:
    """Closed and opened at every step, a study does what it would have done in one go."""

    def work(turn: Turn, value: float) -> range:
        ids = turn.ask(1)
        turn.tell(ids[0], value, 0.0)
        return ids

    whole = Memory(header())
    values = np.random.default_rng(8).normal(size=40).tolist()
    for value in values:
        whole.turn(lambda turn, value=value: work(turn, value))  # type: ignore[misc]
    for i, value in enumerate(values):
        with Log(where, header()) as log:
            assert list(log.turn(lambda turn, value=value: work(turn, value))) == [i]  # type: ignore[misc]
    assert differences(log.study, whole.study) == []


def test_tickets_are_known_after_a_restart(where: str) -> None:
    with eq.open(where, arms=["a", "b"], budget=100) as study:
        tickets = [*study.ask(2), study.ask()]
    with eq.open(where) as study:
        study.tell(tickets[1], 2.0)
        study.tell(tickets[2], 3.0)
        assert study.in_flight == 1
        stranger = eq.Ticket((tickets[0].number ^ (1 << 40), tickets[0].arm))
        with pytest.raises(ValueError, match="was not handed out by this study: it belongs to another one"):
            study.tell(stranger, 1.0)


def test_a_larger_budget_is_an_event(where: str) -> None:
    Log(where, header(budget=10)).close()
    with Log(where, header(budget=20)) as log:
        (event,) = log.events()
        assert (event.kind, event.text) == ("budget", "20")
    Log(where, header(budget=20)).close()
    assert (replay(where).study.budget, replay(where).turns) == (20, 1)


def test_another_precision_is_an_event(where: str) -> None:
    wanted = {"calm": 0.25, 7: 0.5, ("rough", 2.5): 0.5}
    Log(where, header(precision=0.5)).close()
    with Log(where, header(precision=wanted, level=0.9)) as log:
        (event,) = log.events()
        assert event.kind == "goal"
        assert (log.replica.precision, log.replica.level) == (wanted, 0.9)
    with Log(where) as log:
        assert (log.replica.precision, log.replica.level) == (wanted, 0.9)
        assert log.header.precision == 0.5


def test_a_refused_budget_leaves_no_file(tmp_path: Path) -> None:
    for budget in (0, -5, 3, "much"):
        with pytest.raises((ValueError, TypeError)):
            Log(tmp_path / "study.db", header(budget=budget))  # type: ignore[arg-type]
        with pytest.raises((ValueError, TypeError)):
            eq.open(tmp_path / "study.db", arms=["a", "b"], budget=budget)  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        eq.open(tmp_path / "study.db", arms=["a", "b"], budget=100, weights=[1, -1])
    assert list(tmp_path.iterdir()) == []


def test_a_refused_budget_leaves_a_study_as_it_was(where: str) -> None:
    with Log(where, header()) as log:
        log.turn(lambda turn: turn.ask(100))
    with pytest.raises(ValueError, match="budget must be at least the 100 spent so far, got 50"):
        Log(where, header(budget=50))
    with Log(where, header()) as log:
        assert (log.replica.turns, log.study.budget) == (1, 4000)


def test_a_log_that_is_closed(where: str) -> None:
    """It can be closed again, and takes no turns."""
    with Log(where, header()) as log:
        log.turn(lambda turn: turn.ask(1))
        log.close()
        for use in (lambda: log.turn(lambda turn: turn.ask(1)), lambda: log.look(lambda replica: 1)):
            with pytest.raises(eq.EquipoiseError, match=r"^the store .* is closed$"):
                use()
    assert replay(where).study.in_flight == 1


def test_no_such_study(where: str) -> None:
    with pytest.raises(ValueError, match=r"there is no (study|store)"):
        Log(where)
    Log(where, header()).close()
    place = where.partition("#")[0]
    with pytest.raises(ValueError, match=r"there is no study 'nobody' in .*; it holds '"):
        Log(f"{place}#nobody")


def test_the_study_is_gone(where: str) -> None:
    with Log(where, header()) as log:
        log._database.execute("delete from equipoise_study where study = ?", (log._database._study,))
        with pytest.raises(eq.EquipoiseError, match=r"the study .* is no longer in"):
            log.turn(lambda turn: turn.ask(1))


def test_studies_in_one_file(tmp_path: Path) -> None:
    where = tmp_path / "study.db"
    for name in ("", "#two", "#study with a ' and ; and ä", f"#{'x' * 200}"):
        with Log(f"{where}{name}", header(arms=(name[:50], "b"))) as log:
            log.turn(lambda turn: turn.ask(3))
    for name in ("", "#two", "#study with a ' and ; and ä", f"#{'x' * 200}"):
        assert replay(f"{where}{name}").study.arms[0] == name[:50]
    assert replay(f"{where}#study").study.arms[0] == ""


# ---- threads


def test_threads_of_one_shared_study(where: str) -> None:
    """No ticket twice, the budget exactly, and a log without a gap."""
    got: list[eq.Ticket] = []
    failures: list[BaseException] = []
    with eq.open(where, arms=["a", "b", "c"], budget=150) as study:

        def visit() -> None:
            try:
                while tickets := study.ask(2):
                    got.extend(tickets)
                    study.tell_many([(ticket, float(ticket.id)) for ticket in tickets])
                    assert study.in_flight >= 0
            except BaseException as failure:
                failures.append(failure)

        threads = [threading.Thread(target=visit) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert sorted(ticket.id for ticket in got) == list(range(150))
        assert len({ticket.number for ticket in got}) == 150
        assert study.remaining == study.in_flight == 0
    found = replay(where)
    assert found.study.result().samples == 150
    assert found.turns == 150


def test_what_came_in_a_long_time_is_folded_before_the_lock_is_taken(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that it is held for a short time; soon after another turn, that is not worth a look of its own."""
    now = 0.0
    with Log(where, header(), patience=Patience(clock=lambda: now)) as log, Log(where) as other:
        log.turn(lambda turn: turn.ask(1))
        looks: list[bool] = []
        right = log._database.head

        def head() -> Head:
            looks.append(log._replica is not None and log._replica.turns == other.replica.turns)
            return right()

        monkeypatch.setattr(log._database, "head", head)
        for seconds in (0.05, 5.0):
            other.turn(lambda turn: turn.ask(1))
            now += seconds
            assert log.turn(lambda turn: turn.first) == other.study.ledger.issued
        if where.startswith("postgres"):
            assert looks == [False]  # its lock returns the head
        else:
            assert looks == [False, False, True]


def test_a_thread_in_its_turn_is_refused_another(where: str) -> None:
    with Log(where, header()) as log:
        for inner in (lambda turn: log.look(lambda replica: 1), lambda turn: log.turn(lambda turn: 1)):
            with pytest.raises(eq.EquipoiseError, match=r"a turn of .* cannot begin within another one"):
                log.turn(inner)
        log.turn(lambda turn: turn.ask(1))


def test_a_turn_of_another_log_within_a_turn(tmp_path: Path) -> None:
    """In one thread, two logs of one file would wait for each other for ever."""
    where = tmp_path / "study.db"
    with Log(where, header()) as one, Log(where) as two:
        with pytest.raises(eq.EquipoiseError, match="cannot begin within another one"):
            one.turn(lambda turn: two.turn(lambda other: other.ask(1)))
        two.turn(lambda turn: turn.ask(1))
        one.turn(lambda turn: turn.ask(1))
        assert two.look(lambda replica: replica.study.in_flight) == 2


# ---- children


def in_a_child(what: Callable[[], Any]) -> int:
    """Do something in a forked child, which ends as a program does; return its exit code."""
    child = os.fork()
    if child == 0:
        try:
            what()
            sys.exit(3)
        except SystemExit as end:
            os._exit(int(end.code or 0))
        except BaseException:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_is_refused(where: str) -> None:
    with Log(where, header()) as log:
        log.turn(lambda turn: turn.ask(2))

        def try_all() -> None:
            for attempt in (lambda: log.turn(lambda turn: turn.ask(1)), lambda: log.look(lambda replica: 1)):
                try:
                    attempt()
                except eq.EquipoiseError as error:
                    assert "was opened by the parent of this process; open it again here" in str(error)  # noqa: PT017
                else:
                    os._exit(98)
            log.close()

        assert in_a_child(try_all) == 3
        log.turn(lambda turn: turn.ask(1))
        assert replay(where).study.in_flight == 3


FORKER = """
import os, sys
import equipoise as eq
from equipoise.store import Log
from tests.unit.store.living import header
log = Log(sys.argv[1], header())

def work(turn):
    turn.ask(5)
    child = os.fork()
    if child == 0:
        sys.exit(3)  # with all that Python does at the end of a program
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    with eq.store.Log(sys.argv[1], write=False) as reader:
        print(reader.study.in_flight, flush=True)
    turn.ask(2)

log.turn(lambda turn: turn.ask(1))
log.turn(work)
log.turn(lambda turn: turn.ask(1))
print(log.study.in_flight)
"""


def test_a_child_that_exits_within_a_turn(where: str) -> None:
    """It commits nothing, ends no lock, and removes no file; the turn of its parent goes on."""
    words = [sys.executable, "-W", "ignore", "-c", FORKER, where]
    found = subprocess.run(words, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3])
    assert (found.stdout, found.returncode) == ("1\n9\n", 0), found.stderr
    assert replay(where).study.in_flight == 9
    assert replay(where).turns == 3


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_opens_the_store_for_itself(where: str) -> None:
    """Gates and connections of the parent are not the child's."""
    with Log(where, header()) as log:
        log.turn(lambda turn: turn.ask(1))

        def write() -> None:
            with Log(where) as own:
                own.turn(lambda turn: turn.ask(1))

        for _ in range(3):
            assert in_a_child(write) == 3
            log.turn(lambda turn: turn.ask(1))
        assert replay(where).study.in_flight == 7
