"""The laws that every store keeps."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np

from equipoise.base.errors import EquipoiseError
from equipoise.base.patience import Patience
from equipoise.store import Header, Log, Turn, differences, replay, snapshots
from equipoise.store.database import NOBODY, VISITOR, Database, Lease, Lost, link
from equipoise.store.leases import sweep
from equipoise.store.log import connect
from equipoise.strategies import resolve
from equipoise.testing.refusals import refused

# No pauses between attempts to connect.
_AT_ONCE = Patience(60.0, clock=lambda: 0.0, pause=lambda seconds: None)
_LONG = 1000.0


class StoreLaws:
    """
    The laws of stores: inherit this class and define the pytest fixture `where`.

    `where` must give the path or the URL of a study that does not exist yet, another one for each law. With a URL of
    your own, the laws tell whether a server, or a proxy before it, is fit to hold studies.

    Attributes
    ----------
    writers, turns
        How many writers there are where several write at the same time, and how many turns each of them takes.
    """

    writers: int = 2
    turns: int = 20

    # ---- parts of the laws

    def header(self, **changes: Any) -> Header:
        """Return the header of the studies."""
        return replace(Header(("calm", "rough"), resolve("auto"), None, 10_000, 1), **changes)

    def sample(self, turn: Turn, m: int = 3) -> range:
        """Ask for m samples, and answer all but the last."""
        ids = turn.ask(m)
        answered = np.array(ids[:-1])
        turn.tell_many(answered, np.sin(1.0 + answered), np.full(len(answered), 0.25))
        return ids

    def ask_as(self, turn: Turn, owner: int, seconds: float, m: int) -> range:
        """Ask for m samples, for which an owner is waited for."""
        turn.own(owner, seconds)
        return turn.ask(m)

    def live(self, turn: Turn) -> None:
        """Do something of every kind."""
        ids = self.sample(turn, 5)
        turn.tell(ids[-1], -0.0, 0.5)
        given_back = turn.ask(1)[0]
        turn.failed(given_back, "no answer\nand a second line, \x00 and \ud800")
        turn.forget(given_back, "lost")
        turn.moments("rough", 4, 0.1, 2.0)
        turn.retire(0, "enough")
        turn.reopen(0)
        turn.set_budget(20_000 + turn.ledger.issued)
        turn.set_weights([1.0, 1.0 / (1 + turn.ledger.issued)])
        turn.set_goal(0.5 / (1 + turn.ledger.issued), 0.9, "anytime")

    def agree(self, where: Any, *logs: Log) -> None:
        """Check that all replicas are what the log says, to the bit."""
        truth = replay(where)
        for log in logs:
            found = log.look(lambda replica: replica)
            assert differences(found.study, truth.study) == []
            assert (found.turns, found.chain, found.counts) == (truth.turns, truth.chain, truth.counts)
            asked = [(each.precision, each.level, each.interval) for each in (found, truth)]
            assert asked[0] == asked[1]
            retired = [(each.judged.tolist(), each.settled.tolist()) for each in (found, truth)]
            assert retired[0] == retired[1]
            issued = truth.study.ledger.issued
            assert np.array_equal(found.seconds[:issued], truth.seconds[:issued], equal_nan=True)
            assert np.array_equal(found.numbers(np.arange(issued)), truth.numbers(np.arange(issued)))

    @contextmanager
    def directly(self, where: Any) -> Iterator[Database]:
        """Give the database itself."""
        with closing(connect(where)) as database:
            assert database.find()
            yield database

    def change(self, where: Any, sql: str, *values: Any) -> None:
        """Change the database of one study by hand: its number is the last parameter."""
        with self.directly(where) as database:
            database.execute(sql, (*values, database._study))

    def side_by_side(self, *works: Callable[[], Any]) -> None:
        """Run several functions at the same time, each in a thread."""
        failures: list[BaseException] = []

        def run(work: Callable[[], Any]) -> None:
            try:
                work()
            except BaseException as failure:
                failures.append(failure)

        threads = [threading.Thread(target=run, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    # ---- studies

    def test_a_study_is_there_once_it_is_created(self, where: Any) -> None:
        """Whoever opens a study finds it as it was created, with its header and a salt of its own."""
        header = self.header(about={"what": "nothing"}, precision={"calm": 0.5, "rough": 1.0})
        Log(where, header).close()
        with Log(where) as log, Log(where, write=False) as reader:
            assert log.header == reader.header == header
            assert log.header.salt == reader.header.salt
            assert len(log.header.salt) == 32
            assert (log.replica.turns, log.study.in_flight, list(log.events())) == (0, 0, [])
            self.agree(where, log, reader)

    def test_one_of_several_creators_creates(self, where: Any) -> None:
        """Several processes that create the same study at the same time share it."""
        salts: list[str] = []

        def create() -> None:
            with Log(where, self.header()) as log:
                salts.append(log.header.salt)
                log.turn(self.sample)

        self.side_by_side(*[create] * self.writers)
        assert len(set(salts)) == 1
        assert replay(where).turns == self.writers

    def test_another_study_is_refused(self, where: Any) -> None:
        """A study is not continued as another one, and stays as it was."""
        Log(where, self.header()).close()
        with refused(ValueError, "seed must be 1 to continue the study in the store, got 2;"):
            Log(where, self.header(seed=2))
        assert replay(where).turns == 0

    def test_studies_do_not_see_each_other(self, where: Any) -> None:
        """Several studies in one database are as in several."""
        other = f"{str(where).partition('#')[0]}#another of {str(where).partition('#')[2]}"
        with Log(where, self.header()) as one, Log(other, self.header(arms=("x", "y", "z"))) as two:
            for _ in range(3):
                one.turn(self.sample)
                two.turn(lambda turn: self.ask_as(turn, VISITOR, _LONG, 7))
            two.turn(lambda turn: turn.remember(b"call", range(3)))
            one._write_snapshot()
            self.agree(where, one)
            self.agree(other, two)
            assert one.turn(lambda turn: turn.called([b"call"])) == {}
            assert [lease.owner for lease in one.turn(lambda turn: turn.leases())] == [NOBODY] * 3
            with self.directly(other) as database:
                assert list(database.snapshots()) == []

    # ---- turns

    def test_turns_are_numbered_and_chained(self, where: Any) -> None:
        """Turns are numbered without gaps, each has an id of its own, and each checksum covers the one before."""
        with Log(where, self.header()) as log:
            for _ in range(5):
                log.turn(self.live)
            rows = [row for page in log.pages() for row in page]
        assert [row.turn for row in rows] == list(range(6))
        assert len({row.id for row in rows}) == 6
        chain = b""
        for row in rows:
            chain = link(chain, row.turn, row.id, row.at, row.body)
            assert row.chain == chain

    def test_what_a_turn_wrote_is_in_every_replica(self, where: Any) -> None:
        """All that a turn did is in every other replica, equal to the bit, however far that one had followed."""
        with Log(where, self.header()) as one, Log(where) as two, Log(where, write=False) as reader:
            for step in range(6):
                (one, two)[step % 2].turn(self.live)
                if step < 4:
                    self.agree(where, one, two)
            self.agree(where, reader)

    def test_a_turn_that_does_nothing_is_not_written(self, where: Any) -> None:
        """Who only looks adds nothing to the log."""
        with Log(where, self.header()) as log:
            assert log.turn(lambda turn: turn.study.in_flight) == 0
            assert replay(where).turns == 0

    def test_a_refusal_changes_nothing(self, where: Any) -> None:
        """A step that is refused is not in the log, and what the turn did before it is."""
        with Log(where, self.header()) as log:
            (first, *_) = log.turn(self.sample)
            for change in (
                lambda turn: turn.tell(first, 5.0),
                lambda turn: turn.tell_many(np.array([2, first]), np.array([1.0, 5.0]), np.zeros(2)),
                lambda turn: turn.forget(first, "why not"),
                lambda turn: turn.set_budget(0),
                lambda turn: turn.set_weights([1.0]),
                lambda turn: turn.moments("nobody", 1, 1.0, 0.0),
                lambda turn: turn.moments("calm", 0, 1.0, 0.0),
            ):
                turns = log.replica.turns
                with refused(ValueError):
                    log.turn(change)
                assert log.replica.turns == turns
                self.agree(where, log)

            def asked_and_refused(turn: Turn) -> None:
                turn.ask(2)
                turn.set_budget(0)

            with refused(ValueError):
                log.turn(asked_and_refused)
            assert log.study.in_flight == 3
            self.agree(where, log)

    def test_a_turn_folds_first(self, where: Any) -> None:
        """A turn decides on all that any process committed before."""
        with Log(where, self.header()) as one, Log(where) as two:
            for expected in range(1, 6):
                one.turn(lambda turn: turn.ask(1))
                assert two.turn(lambda turn: turn.ledger.issued) == expected

    def test_a_turn_within_a_turn_is_an_error(self, where: Any) -> None:
        """It is refused at once, and the next turn is taken as ever."""
        with Log(where, self.header()) as log:
            with refused(EquipoiseError, "cannot begin within another one"):
                log.turn(lambda turn: log.turn(self.sample))
            log.turn(self.sample)
            assert log.replica.turns == 1

    def test_a_turn_excludes_others(self, where: Any) -> None:
        """No two writers are in a turn at the same time, and all that they do is there."""
        inside: list[int] = []
        asked: list[int] = []

        def work(turn: Turn) -> range:
            assert not inside
            inside.append(1)
            ids = self.sample(turn)
            asked.extend(ids)
            inside.pop()
            return ids

        def write() -> None:
            with Log(where) as log:
                for _ in range(self.turns):
                    log.turn(work)

        Log(where, self.header()).close()
        self.side_by_side(*[write] * self.writers)
        assert asked == list(range(3 * self.writers * self.turns))
        with Log(where) as log:
            assert log.replica.turns == self.writers * self.turns
            self.agree(where, log)

    def test_threads_of_one_log_take_turns(self, where: Any) -> None:
        """Threads that share a log get different tickets, and no more than the budget allows."""
        asked: list[int] = []
        with Log(where, self.header(budget=100)) as log:

            def write() -> None:
                while ids := log.turn(lambda turn: turn.ask(3)):
                    asked.extend(ids)
                    log.look(lambda replica: replica.study.in_flight)

            self.side_by_side(*[write] * self.writers)
            assert sorted(asked) == list(range(100))
            self.agree(where, log)

    def test_a_reader_writes_nothing(self, where: Any) -> None:
        """A log that is open for reading takes no turns."""
        Log(where, self.header()).close()
        with Log(where, write=False) as reader, refused(EquipoiseError, "is open for reading only"):
            reader.turn(self.sample)

    # ---- a commit whose answer is lost

    def test_a_lost_commit_is_repeated(self, where: Any) -> None:
        """A turn that was not committed when the connection was lost is taken again, on what came meanwhile."""
        self._lose(where, committed=False)

    def test_a_lost_answer_is_found(self, where: Any) -> None:
        """A turn that was committed when the connection was lost is not taken again; its asks are delivered."""
        self._lose(where, committed=True)

    def _lose(self, where: Any, committed: bool) -> None:
        with Log(where, self.header(), patience=_AT_ONCE) as log, Log(where) as other:
            commit = log._database.commit
            worked: list[range] = []

            def work(turn: Turn) -> list[Any]:
                worked.append(self.sample(turn))
                return turn.tickets(worked[-1])

            def lost() -> None:
                log._database.commit = commit  # type: ignore[method-assign]
                if committed:
                    commit()
                else:
                    log._database.rollback()
                other.turn(self.sample)
                raise Lost("the connection is lost")

            log._database.commit = lost  # type: ignore[method-assign]
            tickets = log.turn(work)
            assert worked == ([range(3)] if committed else [range(3), range(3, 6)])
            assert [ticket.id for ticket in tickets] == list(worked[-1])
            log.look(lambda replica: [replica.id_of(ticket.number) for ticket in tickets])
            assert [log.replica.id_of(ticket.number) for ticket in tickets] == list(worked[-1])
            assert log.replica.turns == 2
            self.agree(where, log, other)

    def test_a_turn_that_was_given_up_is_no_other_turn(self, where: Any) -> None:
        """After a lost commit that was given up, the next turn is taken, whether or not that one was committed."""
        with Log(where, self.header(), patience=Patience(0.0)) as log:
            commit = log._database.commit

            def lost() -> None:
                log._database.commit = commit  # type: ignore[method-assign]
                commit()
                raise Lost("the connection is lost")

            log._database.commit = lost  # type: ignore[method-assign]
            with refused(EquipoiseError, "the connection is lost; what was committed is saved"):
                log.turn(self.sample)
            assert log.turn(lambda turn: turn.ask(1)) == range(3, 4)
            self.agree(where, log)

    # ---- leases

    def test_a_lease_ends(self, where: Any) -> None:
        """A lease is its owner's until its time is over by the database's clock; a renewal extends it."""
        with Log(where, self.header()) as log, self.directly(where) as database:
            log.hold(7)

            def ask(owner: int, seconds: float) -> None:
                log.turn(lambda turn: self.ask_as(turn, owner, seconds, 2))

            def leases() -> list[Lease]:
                return log.turn(Turn.leases)

            ask(7, _LONG)
            ask(VISITOR, _LONG)
            ask(VISITOR, -1.0)
            ask(7, -1.0)
            expected = [(0, 7, False), (1, 7, False), (2, 0, False), (3, 0, False), (4, 0, True), (5, 0, True)]
            assert leases() == [*expected, (6, 7, True), (7, 7, True)]
            database.begin()
            database.renew(7, _LONG)
            database.commit()
            assert leases() == [*expected, (6, 7, False), (7, 7, False)]
            log.turn(lambda turn: turn.tell(0, 1.0))
            log.turn(lambda turn: turn.forget(1, "lost"))
            log.turn(sweep)
            assert leases() == [(2, 0, False), (3, 0, False), (6, 7, False), (7, 7, False)]
            log.release(7)
            assert leases() == [(2, 0, False), (3, 0, False), (6, 7, True), (7, 7, True)]
            self.agree(where, log)

    def test_a_ticket_is_taken_over_by_one(self, where: Any) -> None:
        """Of several drivers that look for tickets of a dead one, one takes each over, and keeps it."""
        with ExitStack() as stack:
            first = stack.enter_context(Log(where, self.header()))
            first.turn(lambda turn: self.ask_as(turn, 99, -1.0, 30))
            taken: list[int] = []

            def take(owner: int) -> None:
                with Log(where) as log:
                    log.hold(owner)
                    taken.extend(log.turn(lambda turn: sweep(turn, owner, _LONG)))
                    assert log.turn(lambda turn: sweep(turn, owner, _LONG)) == []

            self.side_by_side(*[lambda owner=owner: take(owner) for owner in range(1, self.writers + 1)])
            assert sorted(taken) == list(range(30))
            assert first.study.ledger.issued == first.look(lambda replica: replica.study.in_flight) == 30

    # ---- calls that are repeated

    def test_the_same_call_gets_the_same_tickets(self, where: Any) -> None:
        """A call that was remembered is known to all, with its tickets."""

        def call(turn: Turn) -> list[Any]:
            known = turn.called([b"\x00\xff key"]).get(b"\x00\xff key")
            if known is not None:
                return turn.tickets(known)
            ids = turn.ask(3)
            turn.remember(b"\x00\xff key", ids)
            return turn.tickets(ids)

        with Log(where, self.header()) as one, Log(where) as two:
            one.turn(self.sample)
            tickets = one.turn(call)
            assert tickets == one.turn(call) == two.turn(call)
            assert [ticket.id for ticket in tickets] == [3, 4, 5]
        with Log(where) as log:
            assert log.turn(call) == tickets
            assert log.replica.turns == 2

    # ---- snapshots

    def test_snapshots_change_nothing(self, where: Any) -> None:
        """A replica from a snapshot is equal to the bit to one from the beginning; dropping all loses nothing."""
        with Log(where, self.header()) as log:
            for _ in range(4):
                log.turn(self.live)
                log._write_snapshot()
            log.turn(self.live)
            self.agree(where, log)
        with self.directly(where) as database:
            assert [turn for turn, _ in database.snapshots()] == [4, 3]
        with Log(where) as log:
            assert log._snapshot == 4
            self.agree(where, log)
            log.turn(self.live)
            self.agree(where, log)
        self.change(where, "delete from equipoise_snapshot where study = ?")
        with Log(where) as log:
            assert log._snapshot == 0
            self.agree(where, log)

    def test_a_snapshot_that_does_not_fit_is_passed_over(self, where: Any) -> None:
        """A damaged snapshot, one of other code, and one of another turn are not used; an older one is."""
        with Log(where, self.header()) as log:
            log.turn(self.live)
            log._write_snapshot()
            log.turn(self.live)
            good = snapshots.write(log.replica)
            with patch.object(snapshots, "stamp", lambda header: "of another strategy"):
                foreign = snapshots.write(log.replica)
            log.turn(self.live)
            later = snapshots.write(log.replica)
        flipped = bytearray(good)
        flipped[len(flipped) // 2] ^= 1
        for body, expected in ((bytes(flipped), 1), (foreign, 1), (later, 1), (b"", 1), (good[:30], 1), (good, 2)):
            with self.directly(where) as database:
                database.begin()
                database.execute("delete from equipoise_snapshot where study = ? and turn = 2", (database._study,))
                database.keep_snapshot(2, body, kept=2)
                database.commit()
            with Log(where) as log:
                assert log._snapshot == expected
                self.agree(where, log)

    # ---- damage

    def test_a_changed_row_is_noticed(self, where: Any) -> None:
        """Whatever of a row is changed by hand, the log is said to be damaged."""
        with Log(where, self.header()) as log:
            for _ in range(3):
                log.turn(self.live)
            (row,) = next(log._database.rows(2, 2))
        changes = {"id": bytes(8), "at": row.at + 1, "body": row.body[:-1] + b"\x00", "chain": bytes(8)}
        for column, changed in changes.items():
            sql = f"update equipoise_turn set {column} = ? where turn = 2 and study = ?"
            self.change(where, sql, changed)
            with refused(EquipoiseError, "is damaged: turn 2 "):
                Log(where, write=False)
            self.change(where, sql, getattr(row, column))
        Log(where).close()
        self.change(where, "delete from equipoise_turn where turn = 2 and study = ?")
        with refused(EquipoiseError, "is damaged: turn 2 "):
            Log(where, write=False)

    def test_a_lost_tail_leaves_an_earlier_commit(self, where: Any) -> None:
        """A database that goes back to an earlier turn holds the study as it was then, and names tickets from later."""
        with Log(where, self.header()) as log:
            log.turn(self.live)
            earlier = replay(where)
            log.turn(self.live)
            late = log.turn(lambda turn: turn.tickets(turn.ask(1)))[0]
        self.change(where, "delete from equipoise_turn where turn > 1 and study = ?")
        self.change(where, "update equipoise_study set turns = 1, chain = ? where study = ?", earlier.chain)
        with Log(where) as log:
            assert differences(log.study, earlier.study) == []
            log.turn(lambda turn: turn.ask(late.id + 1 - turn.ledger.issued))
            assert log.study.ledger.issued > late.id
            assert log.replica.id_of(late.number) is None
