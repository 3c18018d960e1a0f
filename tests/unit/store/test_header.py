"""A header comes back as it was, and what cannot be kept is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise.store import Header, Log
from equipoise.strategies import BAS, Numbers, Strategy, resolve
from tests.unit.store.living import by_hand, header, rewrite


def test_headers_come_back() -> None:
    given = Header(
        (None, "a", 3, 2.5, (1, ("b", -math.inf))),
        BAS(exploration=0.1),
        (0.0, 2.0),
        12.5,
        2**127,
        {"objective": math.inf, "costs": {"a": 1, 3: 2.5}, "other": eq.Stratified([0.25, 0.75])},
        (1, None, 3),
        precision={None: 1.0, "a": 0.5, 3: 0.25, 2.5: 0.125, (1, ("b", -math.inf)): "3%"},
        level=0.9,
        interval="anytime",
        guess=[1.0, 2.0, 3.0, 4.0, 5.0],
        rounds=5,
        about={"measure": "seconds", "version": 2},
        salt="00ff",
    )
    again = Header.from_json(given.to_json())
    assert again == given
    assert again.salt == "00ff"
    assert type(again.arms[4]) is tuple
    assert Header.from_json(Header(range(2, 9), resolve("auto"), None, None, 0).to_json()).arms == range(2, 9)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"map":[["arms",{"tuple":["a"]}]]}', '{"map":[["strategy",["auto",{}]]]}', "7"]
)
def test_texts_that_are_none(text: str) -> None:
    with pytest.raises(eq.EquipoiseError, match=r"^the header of its study cannot be read: "):
        Header.from_json(text)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"strategy": "uniform"},
            r"strategy must be Auto\(\) to continue the study in the store, got EvenSplit\(\); change it back",
        ),
        ({"arms": ("calm", 7)}, r"arms must be \('calm', 7, \('rough', 2\.5\)\) to continue .*, got \('calm', 7\)"),
        ({"support": "binary"}, "support must be None to continue the study in the store, got 'binary'"),
        ({"seed": 2}, "seed must be 1 to continue the study in the store, got 2"),
        ({"populations": (5, 6, None)}, r"populations must be None to continue .* got \(5, 6, None\)"),
        ({"options": {"costs": [1, 2, 3]}}, r"costs must be None to continue the study in the store, got \[1, 2, 3\]"),
        ({"rounds": 3}, "rounds must be None to continue the study in the store, got 3"),
        ({"about": {"command": "ls"}}, "command must be None to continue the study in the store, got 'ls'"),
    ],
)
def test_another_study_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    where = tmp_path / "study.db"
    Log(where, header()).close()
    with pytest.raises(ValueError, match=said):
        Log(where, header(**change))
    Log(where, header()).close()


def test_what_is_not_said_is_left_as_it_is(tmp_path: Path) -> None:
    where = tmp_path / "study.db"
    Log(where, header(guess=[1, 2, 3], rounds=4, about={"a": 1})).close()
    with Log(where, header(seed=None)) as log:
        assert (log.header.seed, log.header.rounds, log.header.about) == (1, 4, {"a": 1})


def test_a_seed_is_drawn_where_there_is_none(tmp_path: Path) -> None:
    seeds = []
    for name in "ab":
        with Log(tmp_path / name, header(seed=None)) as log:
            seeds.append(log.header.seed)
    assert seeds[0] != seeds[1]
    assert all(isinstance(seed, int) for seed in seeds)


def test_names_that_cannot_be_kept_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        TypeError, match=r"^a store can hold strings, numbers and tuples of them, got frozenset\(\{1\}\)$"
    ):
        Log(tmp_path / "study.db", header(arms=(frozenset([1]), 2)))
    assert list(tmp_path.iterdir()) == []


def test_a_strategy_that_has_no_name_is_refused(tmp_path: Path) -> None:
    class Nameless(Strategy):
        @staticmethod
        def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
            return 1.0

    with pytest.raises(eq.EquipoiseError, match="must be registered"):
        Log(tmp_path / "study.db", header(Nameless()))
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_header(where: str) -> None:
    """One sentence, whether or not the checksum was made to fit."""
    Log(where, header()).close()
    by_hand(where, "update equipoise_turn set body = ? where turn = 0 and study = ?", values=(b"{}",))
    with pytest.raises(
        eq.EquipoiseError, match=r"^the log in .* is damaged: the header does not match its checksum; restore a copy"
    ):
        Log(where)


@pytest.mark.parametrize("body", [b"{}", b"\xff\xfe", b"[1]", b"", b"[" * 100_000])
def test_a_damaged_header_with_a_checksum_that_fits(where: str, body: bytes) -> None:
    Log(where, header()).close()
    rewrite(where, 0, body)
    with pytest.raises(eq.EquipoiseError, match=r"the header (of its study cannot be read|is not text)"):
        Log(where)


def test_a_missing_header(where: str) -> None:
    Log(where, header()).close()
    by_hand(where, "delete from equipoise_turn where turn = 0 and study = ?")
    with pytest.raises(eq.EquipoiseError, match=r"is damaged: its header is missing; restore a copy of it or use"):
        Log(where)
