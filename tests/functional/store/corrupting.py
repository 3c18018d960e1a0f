"""
Damage copies of stores in every way that chance thinks of, and look at each as users do.

A process of its own, because what it looks for first of all is a crash of the interpreter. Each line of its output is
one JSON object; the number of a case is written before the case begins, so that a crash can be repeated:
`python -m tests.functional.store.corrupting FOLDER SEED FIRST LAST`.

A look is fine if it gives the study as it was written, or exactly as it was after an earlier commit where the end of
the file may be lost, or one sentence: EquipoiseError or ValueError. Where rows are edited and all their checksums are
computed again, the log says something else, and all that is asked for is a study or a sentence.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import sqlite3
import sys
import traceback
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

import equipoise as eq
from equipoise import report
from equipoise.store import Log, Replica, Turn, log, replay
from equipoise.store.database import Row, link
from equipoise.store.events import KINDS

PAGE = 16384
STORES = ("closed", "closed with snapshots", "killed", "killed with snapshots")
FILES = ("study.db", "study.db-wal")
Chance = random.Random


def digest(replica: Replica) -> str:
    """Return what tells two replicas apart."""
    known = [
        list(replica.study.ledger.fingerprint().items()),
        replica.header.to_json(),
        [(name, plain(value)) for name, value in replica.arrays().items()],
        replica.turns,
        replica.chain,
    ]
    return hashlib.blake2b(repr(known).encode(), digest_size=16).hexdigest()


def plain(value: Any) -> Any:
    """Return a value whose text says all of it."""
    if isinstance(value, dict):
        return sorted(value.items())
    return value.tolist() if isinstance(value, np.ndarray) else value


def reported(where: Path) -> str:
    """Return what tells two reports apart, but for the name of the file."""
    found = report.to_dict(report.read(where)) | {"store": ""}
    return hashlib.blake2b(json.dumps(found, sort_keys=True).encode(), digest_size=16).hexdigest()


# ---- stores to damage


def write(where: Path, chance: Chance) -> None:
    """Write a study with events of many kinds, and another one between its turns."""
    arms = ["a", "b", "c"]
    other = eq.open(f"{where}#other", arms=["x", "y"], budget=100)
    with eq.open(where, arms=arms, budget=400, support=(-50.0, 50.0), strategy="auto") as study:
        waiting: list[eq.Ticket] = []
        keys = 0
        for i in range(60):
            match chance.randrange(12):
                case 0:
                    study.set_budget(400 + i)
                case 1:
                    study.set_weights([1.0, 2.0, 1.0 + i])
                case 2:
                    study.retire("c")
                case 3:
                    study.reopen("c")
                case 4 if waiting:
                    study.forget(waiting.pop(0))
                case 5:
                    study.tell_moments("b", 3, 0.25, 1.5)
                case 6:
                    waiting += study.ask(2, idempotency_key=f"key {keys}")
                    keys += 1
                case 7:
                    study.set_precision(0.01 * (i + 1))
                case 8:
                    study.tell_many([(each, chance.gauss(0, 3)) for each in study.ask(20)])
                case _:
                    waiting.append(study.ask())
            if waiting and chance.random() < 0.7:
                study.tell(waiting.pop(chance.randrange(len(waiting))), chance.gauss(0, 3))
            if i % 7 == 0:
                other.tell(other.ask(), float(i))
    other.close()


def prepare(folder: Path, seed: int) -> None:
    """
    Write the stores: one that was closed, one whose writer was killed, and both with snapshots.

    The same seed gives the same bytes.
    """
    chance, ticks = Chance(seed), iter(range(10**9))
    clock = SimpleNamespace(time=lambda: 1.7e9 + next(ticks))
    for name in STORES:
        (folder / name).mkdir(parents=True)
        where = folder / "study.db"
        with patch.object(log, "time", clock), patch("secrets.token_bytes", chance.randbytes):
            eq.open(f"{where}#other", arms=["x", "y"], budget=100).close()
            with closing(by_hand(where)) as open_meanwhile:
                open_meanwhile.execute("select * from equipoise_study").fetchall()
                write(where, chance)
                if "snapshots" in name:
                    with Log(where) as writer:
                        for _ in range(2):
                            writer._write_snapshot()
                            writer.turn(lambda turn: turn.tell(turn.ask(1)[0], 1.0))
                open_meanwhile.execute("update equipoise_lease set deadline = 1.7e9")
                if "closed" in name:
                    open_meanwhile.execute("pragma wal_checkpoint(truncate)")
                else:
                    copy(folder, folder / name)
            if "closed" in name:
                copy(folder, folder / name)
        for each in folder.glob("study.db*"):
            each.unlink()


def copy(source: Path, target: Path) -> None:
    """Copy a store, with what was not written to its main file yet."""
    target.mkdir(exist_ok=True)
    for name in FILES:
        if (source / name).exists():
            shutil.copyfile(source / name, target / name)


def prefixes(folder: Path) -> tuple[list[str], list[str]]:
    """Return what tells the replicas and the reports of all beginnings of a log apart."""
    replicas, reports = [], []
    store = folder.parent / "read" / "study.db"  # a copy, as reading may repair
    copy(folder, store.parent)
    with Log(store, write=False) as reader:
        rows = [row for page in reader.pages() for row in page]
    replica = Replica.begin(rows[0])
    replicas.append(digest(replica))
    for row in rows[1:]:
        replica.fold([row])
        replicas.append(digest(replica))
    for last in reversed(rows):
        with closing(by_hand(store)) as connection:
            sql = "update equipoise_study set turns = ?, chain = ? where study = 2"
            connection.execute(sql, (last.turn, last.chain))
        reports.append(reported(store))
    shutil.rmtree(store.parent)
    return replicas, reports[::-1]


def by_hand(store: Path) -> sqlite3.Connection:
    """Return a connection for somebody who edits a store, without waiting for the disk."""
    connection = sqlite3.connect(store, isolation_level=None)
    connection.execute("pragma synchronous = off")
    return connection


# ---- ways to damage one


def some_file(folder: Path, chance: Chance) -> Path:
    paths = [folder / name for name in FILES]
    return chance.choice([path for path in paths if path.exists() and path.stat().st_size])


def changed(folder: Path, chance: Chance, change: Callable[[bytearray], None]) -> None:
    path = some_file(folder, chance)
    content = bytearray(path.read_bytes())
    change(content)
    path.write_bytes(content)


def place(content: bytearray, chance: Chance) -> int:
    """Return a position; often within the first pages, where the schema and the inner nodes are."""
    return chance.randrange(min(len(content), chance.choice([100, 2 * PAGE, len(content)])))


def flip_bits(folder: Path, chance: Chance) -> None:
    def change(content: bytearray) -> None:
        for _ in range(chance.choice([1, 1, 1, 2, 8, 64])):
            content[place(content, chance)] ^= 1 << chance.randrange(8)

    changed(folder, chance, change)


def set_bytes(folder: Path, chance: Chance) -> None:
    def change(content: bytearray) -> None:
        at, length = place(content, chance), chance.choice([1, 2, 4, 16, 300])
        new = chance.choice([bytes(length), b"\xff" * length, chance.randbytes(length)])
        content[at : at + length] = new[: len(content) - at]

    changed(folder, chance, change)


def move_pages(folder: Path, chance: Chance) -> None:
    def change(content: bytearray) -> None:
        pages = max(len(content) // PAGE, 1)
        one, other = (chance.randrange(pages) * PAGE for _ in range(2))
        first, second = bytes(content[one : one + PAGE]), bytes(content[other : other + PAGE])
        match chance.choice(["swap", "zero", "duplicate", "shift"]):
            case "swap" if len(first) == len(second):
                content[one : one + PAGE], content[other : other + PAGE] = second, first
            case "zero":
                content[one : one + PAGE] = bytes(len(first))
            case "duplicate":
                content[other : other + len(first)] = first
            case "shift":
                del content[one : one + chance.choice([1, 512, PAGE])]

    changed(folder, chance, change)


def truncate(folder: Path, chance: Chance) -> None:
    def change(content: bytearray) -> None:
        size = chance.randrange(len(content))
        del content[size - size % chance.choice([1, 512, PAGE]) :]

    changed(folder, chance, change)


def extend(folder: Path, chance: Chance) -> None:
    changed(folder, chance, lambda content: content.extend(chance.randbytes(chance.choice([1, 512, 3 * PAGE]))))


def lose_a_file(folder: Path, chance: Chance) -> None:
    path = some_file(folder, chance)
    if chance.random() < 0.5:
        path.unlink()
    else:
        path.write_bytes(b"")


def leave_garbage(folder: Path, chance: Chance) -> None:
    """Leave files next to the store that are not its own."""
    (folder / f"study.db{chance.choice(['-shm', '-journal', '.gate'])}").write_bytes(chance.randbytes(40_000))
    if chance.random() < 0.3 and not (folder / FILES[1]).exists():
        (folder / FILES[1]).write_bytes(chance.randbytes(20_000))


COLUMNS = {
    "equipoise_study": ("study", "name", "format", "turns", "chain"),
    "equipoise_turn": ("study", "turn", "id", "at", "body", "chain"),
    "equipoise_lease": ("study", "ticket", "owner", "deadline"),
    "equipoise_call": ("study", "call", "first", "tickets"),
    "equipoise_snapshot": ("study", "turn", "body"),
}


def edit_rows(folder: Path, chance: Chance) -> None:
    """Edit, delete, swap or duplicate rows by SQL, without touching a checksum."""
    table = chance.choice(["equipoise_turn", "equipoise_turn", "equipoise_turn", *COLUMNS])
    keys = {"equipoise_study": "study", "equipoise_lease": "ticket", "equipoise_call": "call"}
    key = keys.get(table, "turn")
    with closing(by_hand(folder / "study.db")) as connection:
        rows = connection.execute(f"select * from {table} where study = 2").fetchall()
        if not rows:
            return
        at = COLUMNS[table].index(key)
        row, other = chance.choice(rows), chance.choice(rows)
        match chance.choice(["edit", "edit", "edit", "delete", "delete many", "swap", "duplicate", "drop"]):
            case "edit":
                j = chance.randrange(len(row))
                sql = f"update or ignore {table} set {COLUMNS[table][j]} = ? where study = 2 and {key} = ?"
                connection.execute(sql, (another(row[j], chance), row[at]))
            case "delete":
                connection.execute(f"delete from {table} where study = 2 and {key} = ?", (row[at],))
            case "delete many":
                connection.execute(f"delete from {table} where study = 2 and {key} >= ?", (row[at],))
            case "swap":
                for one, two in ((row, other), (other, row)):
                    for name, value in zip(COLUMNS[table], two, strict=True):
                        if name not in ("study", key, "name"):
                            connection.execute(
                                f"update {table} set {name} = ? where study = 2 and {key} = ?", (value, one[at])
                            )
            case "duplicate":
                copied = list(row)
                copied[at] = another(row[at], chance)
                marks = ", ".join("?" * len(copied))
                connection.execute(f"insert or ignore into {table} values ({marks})", copied)
            case "drop":
                connection.execute(f"drop table {table}")


def another(value: Any, chance: Chance) -> Any:
    """Return something else than a value, of its own type or of another one."""
    if isinstance(value, bytes) and value and chance.random() < 0.7:
        return mutated(value, chance)
    if isinstance(value, int) and chance.random() < 0.6:
        return chance.choice([value + 1, value - 1, -value, value + 2**32, 2**62, 0, -1])
    if isinstance(value, float) and chance.random() < 0.6:
        return chance.choice([value + 1, -value, value * (1 + 2**-52), 1e308, float("inf")])
    if isinstance(value, str) and chance.random() < 0.6:
        return chance.choice([value + "x", "", "\x00", "other ones"])
    return chance.choice([0, -1, 2**40, 1.5, "text", b"", b"\x00" * 8, b"bytes that are many", "\ud7ff", "1"])


def mutated(body: bytes, chance: Chance) -> bytes:
    """Return bytes that are nearly the same."""
    content = bytearray(body)
    for _ in range(chance.choice([1, 1, 2, 5])):
        at = chance.randrange(len(content)) if content else 0
        match chance.choice(["bit", "byte", "kind", "word", "cut", "insert", "double"]):
            case "bit" if content:
                content[at] ^= 1 << chance.randrange(8)
            case "byte" if content:
                content[at] = chance.randrange(256)
            case "kind" if content:
                content[min(4 + chance.randrange(4), len(content) - 1)] = chance.randrange(len(KINDS) + 1)
            case "word":
                content[at : at + 4] = chance.choice([0, 1, 2, 3, 2**31, 2**32 - 1]).to_bytes(4, "little")
            case "cut":
                del content[at : at + chance.choice([1, 4, 8, 1000])]
            case "insert":
                content[at:at] = chance.randbytes(chance.choice([1, 4, 8]))
            case "double":
                content += content[at:]
    return bytes(content)


def edit_consistently(folder: Path, chance: Chance) -> None:
    """Edit a turn or the header, and compute all checksums again."""
    with closing(by_hand(folder / "study.db")) as connection:
        sql = "select turn, id, at, body, chain from equipoise_turn where study = 2 order by turn"
        rows = [Row(*row) for row in connection.execute(sql)]
        j = chance.choice([0, *range(1, len(rows)), *range(1, len(rows))])
        match chance.choice(["body", "body", "body", "swap", "delete", "repeat"]):
            case "body":
                rows[j] = rows[j]._replace(body=mutated(rows[j].body, chance))
            case "swap":
                k = chance.randrange(len(rows))
                rows[j], rows[k] = rows[j]._replace(body=rows[k].body), rows[k]._replace(body=rows[j].body)
            case "delete":
                del rows[j]
            case "repeat":
                rows.insert(j, rows[j])
        chain = b""
        connection.execute("begin")
        connection.execute("delete from equipoise_turn where study = 2")
        for turn, row in enumerate(rows):
            chain = link(chain, turn, row.id, row.at, row.body)
            values = (2, turn, row.id, row.at, row.body, chain)
            connection.execute("insert into equipoise_turn values (?, ?, ?, ?, ?, ?)", values)
        connection.execute("update equipoise_study set turns = ?, chain = ? where study = 2", (len(rows) - 1, chain))
        connection.execute("commit")


# By what a look may find: an earlier commit only where the end of a file may be lost.
WAYS: dict[str, tuple[Callable[[Path, Chance], None], ...]] = {
    "the same or earlier": (
        flip_bits, flip_bits, flip_bits, set_bytes, set_bytes, move_pages, truncate, extend, lose_a_file, leave_garbage,
    ),
    "the same": (edit_rows, edit_rows, edit_rows),
    "anything": (edit_consistently, edit_consistently, edit_consistently),
}  # fmt: skip


# ---- looking


def looked(look: Callable[[], str]) -> tuple[str, str]:
    """Return what a look gave and the sentence, one of them empty."""
    try:
        return look(), ""
    except (eq.EquipoiseError, ValueError) as error:
        if type(error) not in (eq.EquipoiseError, ValueError) and not isinstance(error, eq.EquipoiseError):
            raise
        sentence = str(error)
        assert sentence, "an empty message"
        assert "\n" not in sentence, f"more than one line: {sentence!r}"
        return "", sentence


def take_a_turn(where: Path) -> str:
    """Return the state that a writer finds; what it then appends must be there, or named as damaged."""
    with Log(where) as writer:
        before = digest(writer.replica)

        def work(turn: Turn) -> None:
            turn.leases()
            turn.called([b"nobody's"])
            for ticket in turn.ask(2)[:1]:
                turn.tell(ticket, 0.5)

        writer.turn(work)
        after = digest(writer.replica)
    found, sentence = looked(lambda: digest(replay(where)))
    assert sentence or found == after, "what a turn appended is not there"
    return before


def answer_a_caller(where: Path) -> str:
    """Use keys that were used before, and whatever else `open` offers."""
    with eq.open(where) as study:
        for i in range(3):
            study.ask(1, idempotency_key=f"key {i}")
        study.result()
    return ""


def check_sound(folder: Path, known: tuple[list[str], list[str]]) -> None:
    """Check that a store that is not damaged is what it was, however it is looked at."""
    for look, expected in looks(known).values():
        copy(folder, folder.parent / "looked at")
        assert look(folder.parent / "looked at" / "study.db") == expected[-1]
        shutil.rmtree(folder.parent / "looked at")


def looks(known: tuple[list[str], list[str]]) -> dict[str, tuple[Callable[[Path], str], list[str]]]:
    """Return the ways to look at a store, and what each finds of every beginning of its log."""
    replicas, reports = known
    return {
        "replay": (lambda where: digest(replay(where)), replicas),
        "report": (reported, reports),
        "turn": (take_a_turn, replicas),
        "caller": (answer_a_caller, [""]),
    }


def case(folder: Path, known: dict[str, tuple[list[str], list[str]]], seed: int, number: int) -> dict[str, Any]:
    """Damage a copy of a store, look at it in all ways, and say what was found."""
    chance = Chance(f"{seed} {number}")
    name = chance.choice(sorted(known))
    allowed = chance.choice([*WAYS, "the same or earlier"])
    damage = chance.choice(WAYS[allowed])
    outcomes = []
    # Each look at a damaged copy of its own, as looking may repair.
    damaged = folder / "damaged"
    shutil.rmtree(damaged, ignore_errors=True)
    copy(folder / name, damaged)
    damage(damaged, chance)
    for what, (look, expected) in looks(known[name]).items():
        where = folder / "looked at"
        shutil.rmtree(where, ignore_errors=True)
        shutil.copytree(damaged, where)
        found, sentence = looked(lambda look=look, where=where: look(where / "study.db"))  # type: ignore[misc]
        label = f"case {number}: {damage.__name__} of {name!r}, {what}"
        if sentence:
            outcomes.append("refused")
        elif allowed == "anything" or found == expected[-1]:
            outcomes.append("same")
        else:
            assert found in expected, f"{label}: another result"
            assert allowed == "the same or earlier", f"{label}: an earlier result, and nothing was lost"
            outcomes.append("earlier")
    return {"case": number, "damage": damage.__name__, "outcomes": outcomes}


def main(folder: Path, seed: int, first: int, last: int) -> None:
    prepare(folder, seed)
    known = {}
    for name in STORES:
        known[name] = prefixes(folder / name)
        check_sound(folder / name, known[name])
    for number in range(first, last):
        print(json.dumps({"begun": number}), flush=True)
        try:
            found = case(folder, known, seed, number)
        except Exception:
            found = {"case": number, "wrong": traceback.format_exc()}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:5]))
