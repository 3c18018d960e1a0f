"""A turn's events come back as they were packed, and bytes that are none are refused."""

from __future__ import annotations

import math
import random
import struct

import numpy as np
import pytest

from equipoise.store import events
from equipoise.store.events import Damaged, Draft, unpack


def every_kind() -> Draft:
    draft = Draft()
    draft.asked([0, 2, 1])
    draft.told(0, 2.5, 0.25)
    draft.cost(1, 812.0)
    draft.told_many([1, 2], [-1e300, 5e-324], [math.nan, 3.0])
    for kind in (events.DECLINE, events.REOPEN):
        draft.add(kind, 2)
    for kind in (events.FORGET, events.FAIL, events.RETIRE, events.BUDGET, events.WEIGHTS, events.GOAL, events.MOMENTS):
        draft.add(kind, kind, f"the text of {events.KINDS[kind]}, ä \x00 \ud800")
    return draft


def test_every_kind_comes_back() -> None:
    found = unpack([every_kind().pack()])
    assert [events.KINDS[kind] for kind in found.kinds] == (
        ["ask"] * 3 + ["tell", "cost", "tell", "tell", "decline", "reopen"]
        + ["forget", "fail", "retire", "budget", "weights", "goal", "moments"]
    )  # fmt: skip
    assert {events.KINDS[kind] for kind in found.kinds} == set(events.KINDS)
    assert found.places.tolist() == [0, 2, 1, 0, 1, 1, 2, 2, 2, 4, 5, 6, 8, 9, 10, 11]
    nan = math.nan
    assert np.array_equal(found.values, [nan] * 3 + [2.5, 812.0, -1e300, 5e-324] + [nan] * 9, equal_nan=True)
    assert np.array_equal(found.seconds, [nan] * 3 + [0.25, nan, nan, 3.0] + [nan] * 9, equal_nan=True)
    assert list(found.texts) == list(range(9, 16))
    assert found.texts[10] == "the text of fail, ä \x00 \ud800"


def test_several_turns_at_once() -> None:
    one, two = every_kind().pack(), Draft()
    two.add(events.FAIL, 0, "later")
    found = unpack([one, Draft().pack(), two.pack(), one])
    assert len(found.kinds) == 16 + 1 + 16
    assert found.texts[16] == "later"
    assert found.texts[17 + 10] == found.texts[10]
    assert unpack([]).kinds.tolist() == []


def test_an_ask_takes_5_bytes_and_an_answer_17() -> None:
    draft = Draft()
    draft.asked([1] * 100)
    assert len(draft.pack()) == 4 + 500
    draft.told_many(range(100), [0.5] * 100, [1.0] * 100)
    assert len(draft.pack()) == 4 + 500 + 1700


def _patched(body: bytes, at: int, new: bytes) -> bytes:
    return body[:at] + new + body[at + len(new) :]


WORDS = Draft()
WORDS.add(events.FAIL, 0, "it rains")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "it is too short"),
        (b"\x01\x00\x00", "it is too short"),
        (every_kind().pack()[:40], "it is too short"),
        (_patched(every_kind().pack(), 0, struct.pack("<I", 2**32 - 1)), "it is too short"),
        (_patched(every_kind().pack(), 4, b"\x63"), "it has an event of the unknown kind 99"),
        (WORDS.pack()[:-1], "its texts cannot be read"),
        (WORDS.pack() + b"!", "its texts cannot be read"),
        (WORDS.pack()[: 4 + 5], "its texts do not match its events"),
        (WORDS.pack()[: 4 + 5] + b'["one", "too many"]', "its texts do not match its events"),
        (WORDS.pack()[: 4 + 5] + b"[7]", "its texts do not match its events"),
        (WORDS.pack()[: 4 + 5] + b'{"0": 1}', "its texts do not match its events"),
        (WORDS.pack()[: 4 + 5] + b"[" * 100_000, "its texts cannot be read"),
        (WORDS.pack()[: 4 + 5] + b'["\xff"]', "its texts cannot be read"),
    ],
)
def test_bytes_that_are_no_turn(body: bytes, said: str) -> None:
    with pytest.raises(Damaged, match=f"^{said}$"):
        unpack([every_kind().pack(), body])


def test_whatever_the_bytes_are() -> None:
    """Of 5,000 packed turns with some bytes changed, cut or added, each is read or refused."""
    rng = random.Random(1)
    refused = 0
    for _ in range(5000):
        body = bytearray(every_kind().pack())
        for _ in range(rng.choice([1, 1, 3])):
            what = rng.random()
            if what < 0.6:
                body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
            elif what < 0.8:
                del body[rng.randrange(1, len(body)) :]
            else:
                body += rng.randbytes(rng.randrange(1, 9))
        try:
            found = unpack([bytes(body)])
        except Damaged:
            refused += 1
        else:
            assert len(found.kinds) == len(found.places) == len(found.values) == len(found.seconds)
    assert 1000 < refused < 5000
