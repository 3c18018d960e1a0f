"""Damaged stores: the same study, exactly an earlier one, or one sentence; never a crash, never another result."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from equipoise.base.errors import EquipoiseError
from equipoise.store import Header, Log, Replica, Turn, events, snapshots
from equipoise.store.database import Row, link
from equipoise.store.events import Damaged
from equipoise.strategies import resolve
from tests.functional.store.corrupting import mutated
from tests.waiting import HANG

ROOT = Path(__file__).parents[3]
SEED = 12


def corrupt(folder: Path, first: int, last: int) -> Counter[str]:
    """Count what became of the damaged stores with these numbers."""
    command = [sys.executable, "-m", "tests.functional.store.corrupting", str(folder), *map(str, (SEED, first, last))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=10 * HANG, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"ended with {done.returncode} after {lines[-1:]}, seed {SEED}\n{done.stderr}"
    wrong = [line["wrong"] for line in lines if "wrong" in line]
    assert not wrong, f"{len(wrong)} of {last - first}, seed {SEED}:\n" + "\n".join(wrong[:3])
    found = [line for line in lines if "outcomes" in line]
    assert len(found) == last - first
    return Counter(outcome for line in found for outcome in line["outcomes"])


def test_100_corruptions(tmp_path: Path) -> None:
    found = corrupt(tmp_path, 0, 100)
    assert set(found) == {"same", "earlier", "refused"}


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(10))
def test_10_000_corruptions(tmp_path: Path, batch: int) -> None:
    print(dict(corrupt(tmp_path, 1000 * batch, 1000 * (batch + 1))))


# ---- the bodies of turns and snapshots, with checksums that are right

HEADER = Header(("a", "b", "c"), resolve("auto"), (-50.0, 50.0), 100, 1, salt="00")


def first_row() -> Row:
    body = HEADER.to_json().encode()
    return Row(0, bytes(8), 1.0, body, link(b"", 0, bytes(8), 1.0, body))


def bodies() -> list[bytes]:
    """Return some turns as they are written."""
    found = []
    replica = Replica.begin(first_row())

    def take(work: Any) -> None:
        turn = Turn(replica)
        turn.draft = events.Draft()
        work(turn)
        found.append(turn.draft.pack())

    take(lambda turn: turn.ask(5))
    take(lambda turn: turn.tell(2, 1.5, 0.25))
    take(lambda turn: turn.forget(3, "given back"))
    take(lambda turn: turn.failed(1, "a text"))
    take(lambda turn: turn.set_weights([1.0, 2.0, 3.0]))
    take(lambda turn: turn.set_goal(0.1, 0.9, "anytime"))
    take(lambda turn: turn.set_budget(200))
    take(lambda turn: (turn.retire(0, "by hand"), turn.reopen(0), turn.tell(0, -3.0)))
    take(lambda turn: turn.moments("b", 3, 0.5, 2.0))
    take(lambda turn: (turn.ask(7), turn.tell(4, 2.0), turn.tell(1, 0.0)))
    return found


BODIES = bodies()
BIG = struct.Struct("<I").pack(2**32 - 1)


def folded(changed: list[bytes]) -> Replica | None:
    """Return the replica of turns with right checksums; None where they are refused."""
    first = first_row()
    replica, chain = Replica.begin(first), first.chain
    rows = []
    for turn, body in enumerate(changed, 1):
        chain = link(chain, turn, bytes(8), 1.0, body)
        rows.append(Row(turn, bytes(8), 1.0, body, chain))
    try:
        replica.fold(rows)
    except Damaged:
        return None
    return replica


def test_turns_that_were_written_are_folded() -> None:
    replica = folded(BODIES)
    assert replica is not None
    assert (replica.turns, replica.study.ledger.issued, replica.study.ledger.samples) == (len(BODIES), 12, 7)


@given(st.lists(st.binary(max_size=60), max_size=3))
@example([b""])
@example([BIG])
@example([BIG + bytes(100)])
@example([b"\x01\x00\x00\x00\x01" + b"\xff" * 16])
@example([b"\x01\x00\x00\x00\x08" + bytes(4) + b'["1e400"]'])
@example([b"\x01\x00\x00\x00\x08" + bytes(4) + b'["{}"]'])
@example([b"\x01\x00\x00\x00\x08" + bytes(4) + b'["' + b"[" * 5000 + b'"]'])
@example([b"\x01\x00\x00\x00\x08" + bytes(4) + b"[" * 100_000])
def test_any_bytes_are_a_turn_or_damaged(changed: list[bytes]) -> None:
    try:
        found = events.unpack(changed)
    except Damaged:
        assert folded(changed) is None
        return
    assert len(found.kinds) == len(found.places) == len(found.values) == len(found.seconds)
    folded(changed)


@given(st.integers(0, 2**32), st.integers(0, len(BODIES) - 1))
def test_turns_that_are_nearly_right_are_folded_or_damaged(seed: int, j: int) -> None:
    chance = random.Random(seed)
    changed = list(BODIES)
    for _ in range(20):
        changed[j] = mutated(BODIES[j], chance)
        replica = folded(changed)
        if replica is not None:
            replica.study.result()
            replica.study.ledger.ask(3)


def snapshot() -> tuple[Replica, bytes]:
    replica = folded(BODIES)
    assert replica is not None
    return replica, snapshots.write(replica)


def checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).digest()


def read(replica: Replica, body: bytes) -> Replica | None:
    return snapshots.read(HEADER, replica.turns, replica.chain, body)


@given(st.integers(0, 2**32))
def test_a_snapshot_that_is_changed_is_passed_over(seed: int) -> None:
    replica, body = snapshot()
    assert read(replica, body) is not None
    changed = mutated(body, random.Random(seed))
    assert changed == body or read(replica, changed) is None


@given(st.binary(max_size=100))
@example(b"")
def test_any_bytes_are_not_a_snapshot(body: bytes) -> None:
    replica, _ = snapshot()
    assert read(replica, body) is None
    assert read(replica, checksum(body) + body) is None


@given(st.integers(0, 2**32))
def test_a_snapshot_with_a_right_checksum_is_read_or_passed_over(seed: int) -> None:
    replica, body = snapshot()
    chance = random.Random(seed)
    changed = mutated(body[16:], chance)
    found = read(replica, checksum(changed) + changed)
    if found is not None:
        found.study.ledger.ask(3)
        found.study.result()


# ---- headers and snapshots that somebody has made up, with checksums that are right

FIRST = {"weights": [1, 2, 3], "objective": 2.0}
SECOND = {"costs": [1.0, 2.0, 3.0]}
WANTED = {0: 0.1, 1: 0.2, 2: "3%"}
HEADERS = (
    Header(
        ("a", "b", "c"), resolve("b-as"), (0.0, 1.0), 100, 1, FIRST, (10, 20, None), 0.1,
        guess=[1, 2, 3], rounds=4, about={"a": 1}, salt="00",
    ),
    Header(range(3), resolve("auto"), None, None, 1, SECOND, precision=WANTED, salt="00"),
)  # fmt: skip
EXTREMES: tuple[Any, ...] = (
    {"range": [0, 10**9, 1]}, {"range": [0, 10**30, 1]}, {"range": [0, 10, 0]}, {"range": ["a"]}, 10**9, 10**18,
    10**400, -1, 0, 5e-324, 1e308, -1e308, {"float": "nan"}, {"float": "inf"}, {"float": "-inf"}, "", "x" * 1000,
    "\ud800", None, True, [], [1] * 5, {"map": []}, {"tuple": []}, {"map": [[{"range": [0, 10**9, 1]}, 1]]},
    {"stratified": 10**18}, {"stratified": {"map": [["a", 10**400]]}}, {"contrasts": [0.1, None, [1, 2]]},
    "V1000000000", "(1000000000,)f8", "O",
)  # fmt: skip


def forged(whole: Any) -> Iterator[Any]:
    """Yield JSON with each of its parts replaced by each of the extremes."""
    for path in list(places(whole)):
        for extreme in EXTREMES:
            changed = json.loads(json.dumps(whole))
            part = changed
            for key in path[:-1]:
                part = part[key]
            if path:
                part[path[-1]] = extreme
            yield changed if path else extreme


def places(whole: Any) -> Iterator[tuple[Any, ...]]:
    yield ()
    if isinstance(whole, dict | list):
        for key in whole if isinstance(whole, dict) else range(len(whole)):
            yield from ((key, *rest) for rest in places(whole[key]))


# One of so many, as all of them take a while.
STEPS = pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.slow)])


@STEPS
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("header", HEADERS, ids=["b-as", "auto"])
def test_a_forged_header_is_read_or_refused(header: Header, step: int) -> None:
    """In one sentence, and without the memory that it asks for."""
    whole = json.loads(header.to_json())
    outcomes = Counter[bool]()
    for changed in itertools.islice(forged(whole), None, None, step):
        body = json.dumps(changed).encode()
        row = Row(0, bytes(8), 1.0, body, link(b"", 0, bytes(8), 1.0, body))
        said = sentence(row)
        assert "\n" not in said
        assert len(said) < 400
        outcomes[not said] += 1
    assert outcomes[True] > 30 / step
    assert outcomes[False] > 300 / step


def sentence(row: Row) -> str:
    """Return how a header is refused; an empty text where it is read, and its study has a result."""
    try:
        replica = Replica.begin(row)
        replica.result()
    except (EquipoiseError, Damaged) as error:
        return str(error) or "nothing"
    return ""


def test_a_header_of_very_many_arms_is_refused_before_they_are_made() -> None:
    text = HEADERS[1].to_json().replace('{"range":[0,3,1]}', '{"range":[0,1000000000,1]}')
    said = r"the header of its study cannot be read: range\(0, 1000000000\) has more than 10,000,000 arms"
    with pytest.raises(EquipoiseError, match=said):
        Header.from_json(text)


@STEPS
def test_a_forged_snapshot_is_read_or_passed_over(step: int) -> None:
    replica, body = snapshot()
    (length,) = struct.unpack_from("<I", body, 16)
    head, arrays = json.loads(body[20 : 20 + length]), body[20 + length :]

    def use(changed: Any) -> bool:
        line = json.dumps(changed).encode()
        made = struct.pack("<I", len(line)) + line + arrays
        found = read(replica, checksum(made) + made)
        if found is not None:
            found.result()
            found.numbers(np.arange(found.study.ledger.issued))
            found.study.ledger.ask(3)
        return found is not None

    assert use(head)
    rest = json.loads(head["rest"])
    made = itertools.chain(forged(head), (head | {"rest": json.dumps(changed)} for changed in forged(rest)))
    outcomes = Counter(use(changed) for changed in itertools.islice(made, None, None, step))
    assert outcomes[True] > 50 / step
    assert outcomes[False] > 1000 / step


def test_a_snapshot_of_another_study_is_passed_over(tmp_path: Path) -> None:
    replica, body = snapshot()
    with Log(tmp_path / "study.db", HEADER) as log:
        log.turn(lambda turn: turn.tell(turn.ask(1)[0], 1.0))
        log._database.begin()
        log._database.keep_snapshot(1, body, 2)
        log._database.commit()
    with Log(tmp_path / "study.db") as log:
        assert log.study.ledger.samples == 1
    assert replica.study.ledger.samples == 7
