"""JSON from outside: what it may say, and how many values it has."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from equipoise.server.documents import TooMany, fits, parsed


def count(document: Any) -> int:
    """Return how many values a document has, itself included."""
    if isinstance(document, dict):
        return 1 + sum(map(count, document.values()))
    return 1 + sum(map(count, document)) if isinstance(document, list) else 1


def drawn(rng: Random, depth: int = 4) -> Any:
    """Return a document whose texts look like structure."""
    kind = rng.randrange(6 if depth else 4)
    if kind < 2:
        return "".join(rng.choice('[]{},:"\\é\n') for _ in range(rng.randrange(6)))
    if kind < 4:
        return rng.choice([None, True, -1, 0.5, 10**18])
    if kind == 4:
        return [drawn(rng, depth - 1) for _ in range(rng.randrange(5))]
    return {str(drawn(rng, 0)): drawn(rng, depth - 1) for _ in range(rng.randrange(5))}


def test_the_values_of_a_text_are_counted() -> None:
    """Exactly, but for empty lists and objects, whose brackets stand for a value that could be in them."""
    rng = Random(1)
    for _ in range(1000):
        document = drawn(rng)
        text = json.dumps(document, ensure_ascii=rng.random() < 0.5, indent=rng.choice([None, 1])).encode()
        empty = text.count(b"[]") + text.count(b"{}")
        many = count(document)
        assert fits(text, many + empty)
        assert not fits(text, many - 1)
        assert parsed(text, many + empty) == document
        with pytest.raises(TooMany):
            parsed(text, many - 1)


@pytest.mark.parametrize("text", [b'"\\', b'"' + b'\\"' * 500_000, b'\\"' * 500_000, b'"' * 10**6, b"[" * 10**6])
def test_texts_that_are_no_json_are_counted_in_one_pass(text: bytes) -> None:
    """A pattern that went back would take hours for these."""
    fits(text + b"," * 100, 100)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (b'{"a": 1, "a": 1}', "the name 'a' is given twice in an object"),
        (b'[{"b": {"a": 1, "\\u0061": 2}}]', "the name 'a' is given twice in an object"),
        (b'{"a": 1,}', "at line 1, column"),
        (b'{"a":\n\n ?}', "expecting value at line 3, column 2"),
        (b'"\x01"', "invalid control character at line 1, column 2"),
        (b"", "expecting value at line 1, column 1"),
        (b"01", "extra data at line 1, column 2"),
        (b"\xff", "it is not a text in UTF-8"),
        ("{}".encode("utf-16"), "it is not a text in UTF-8"),
        (b"\x1f\x8b\x08\x00", "it is not a text in UTF-8"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b'{"a":' * 100_000, "it is nested too deeply"),
    ],
)
def test_what_is_not_json(text: bytes, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        parsed(text, 1_000_000)


@pytest.mark.parametrize("digits", [19, 20, 400, 4299, 5000, 1_000_000])
def test_integers_are_of_64_bits(digits: int) -> None:
    """Others become floats, however many digits they have: Python would refuse, or take very long for, so many."""
    for text in (f"1{'0' * (digits - 1)}", f"-1{'0' * (digits - 1)}"):
        found = parsed(text.encode(), 1)
        assert isinstance(found, int) == (digits == 19)
        assert found == float(text)
    assert parsed(b"[9223372036854775807, -9223372036854775808]", 3) == [2**63 - 1, -(2**63)]
    assert isinstance(parsed(b"9223372036854775808", 1), float)
