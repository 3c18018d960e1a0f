"""Compiled code on disk: found again when nothing changed, never when anything did."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numba
import pytest

from equipoise.compiled import cache, files, fingerprint, jit
from equipoise.compiled.files import KEPT_DAYS, prune
from equipoise.ledger import steps

# A function, compiled and by its address, and one that it calls, in another file.
MINE = """
from equipoise.compiled import address, jit
import helper

def value(count):
    return helper.bonus(count) + 6.0 / count * 1.0

compiled = jit(value)
pointer = address(value, "float64(float64)")
"""
HELPER = """
from equipoise.compiled import jit

@jit
def bonus(count):
    return 0.0 * count
"""
RUN = """
import mine, numba
from equipoise.compiled import call_address

@numba.extending.intrinsic
def call(typing, where, x):
    def code(context, builder, signature, args):
        return call_address(context, builder, args[0], numba.float64(numba.float64), [args[1]])
    return numba.float64(numba.int64, numba.float64), code

@numba.njit
def by_address(where, x):
    return call(where, x)

print(mine.compiled(2.0), by_address(mine.pointer, 2.0))
"""
STRATEGY = """
import equipoise as eq
import helper

@eq.strategies.register("mine")
class Mine(eq.strategies.Strategy):
    @staticmethod
    def variance(count, mean, m2, pooled, own, params):
        return helper.bonus(count) + m2 / count * 1.0
"""
STUDY = """
import equipoise as eq, mine
study = eq.Study(2, budget=40, strategy="mine")
seen = [0, 0]
while not study.done:
    ticket = study.ask()
    seen[ticket.arm] += 1
    study.tell(ticket, (1.0 if ticket.arm else 3.0) * (-1) ** seen[ticket.arm])
print(study.result().counts[0])
"""


def run(folder: Path, script: str = RUN, cache: Path | None = None) -> list[float]:
    """What a script prints in a new process in this folder, with a cache there, or with that of the tests."""
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    if cache is not None:
        environment["EQUIPOISE_CACHE_DIR"] = str(cache)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return [float(word) for word in done.stdout.split()]


def rewrite(path: Path, old: str, new: str) -> None:
    """Change a file in a way that its size and its times do not show."""
    assert len(old) == len(new)
    before = path.stat()
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_changed_function_never_meets_old_code(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "helper.py").write_text(HELPER)
    assert run(tmp_path, cache=folder) == [3.0, 3.0]
    found = set(folder.iterdir())
    assert len(found) == 3  # the one called has a file of its own

    assert run(tmp_path, cache=folder) == [3.0, 3.0]
    assert set(folder.iterdir()) == found  # nothing was compiled

    rewrite(tmp_path / "mine.py", "count * 1.0", "count * 0.5")
    assert run(tmp_path, cache=folder) == [1.5, 1.5]
    assert len(set(folder.iterdir()) - found) == 2

    # The function that it calls, in another file.
    rewrite(tmp_path / "helper.py", "0.0 * count", "9.0 * count")
    assert run(tmp_path, cache=folder) == [19.5, 19.5]


def test_a_changed_strategy_never_meets_old_code(tmp_path: Path) -> None:
    """A study of variances 9 and 1, to the end, with the cache of all other tests."""
    (tmp_path / "mine.py").write_text(STRATEGY)
    (tmp_path / "helper.py").write_text(HELPER)
    (count,) = run(tmp_path, STUDY)
    assert 34 <= count <= 37
    rewrite(tmp_path / "mine.py", "count * 1.0", "count * 0.0")
    assert run(tmp_path, STUDY) == [38]  # no variance at all: after the warm-up every tie goes to the lowest arm


def test_the_fingerprint_sees_what_the_code_is_made_of() -> None:
    def define(source: str, **names: object) -> str:
        scope = dict(names)
        exec(textwrap.dedent(source), scope)
        return fingerprint(scope["f"])  # type: ignore[arg-type]

    plain = "def f(x):\n    return x + 1.0"
    assert define(plain) == define("def f(x):\n    # a remark\n    return x + 1.0")
    assert define(plain) != define("def f(x):\n    return x + 2.0")
    assert define(plain) != define("def f(x):\n    return x - 1.0")
    # Values do not run into one another.
    assert define("def f(x):\n    return x * 1.0 + 23.0") != define("def f(x):\n    return x * 1.02 + 3.0")
    constant = "def f(x):\n    return x + C"
    assert define(constant, C=(1.0, 23.0)) != define(constant, C=(1.02, 3.0))
    assert define(constant, C=1.0) == define(constant, C=1.0)
    assert define(constant, C=1.0) != define(constant, C=2.0)
    calls = "def f(x):\n    return g(x)"
    assert define(calls, g=jit(lambda x: x + 1)) == define(calls, g=jit(lambda x: x + 1))
    assert define(calls, g=jit(lambda x: x + 1)) != define(calls, g=jit(lambda x: x + 2))

    def closure(c: float) -> str:
        return fingerprint(lambda x: x + c)

    assert closure(1.0) == closure(1.0)
    assert closure(1.0) != closure(2.0)


def made(source: str, **names: Any) -> dict[str, Any]:
    exec(textwrap.dedent(source), names)
    return names


OUTER = """
from equipoise.compiled import jit
C = 1.0
def inner(x):
    return x + C
def outer(x):
    return g(x)
g = jit(inner)
f = jit(outer)
"""


@pytest.mark.parametrize("damage", ["cut", "garbage", "unwritable"])
def test_a_broken_cache_costs_a_compilation_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    """Functions of the same code, made one after the other, meet on disk alone."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("EQUIPOISE_CACHE_DIR", str(folder))
    if damage == "unwritable":
        folder.write_text("a file where the folder should be")
    assert made(OUTER)["f"](1.0) == 2.0
    if damage != "unwritable":
        assert len(list(folder.iterdir())) == 2
        for path in folder.iterdir():
            path.write_bytes(path.read_bytes()[:100] if damage == "cut" else b"garbage")
    again = made(OUTER)
    assert again["f"](1.0) == 2.0
    assert sum(again["f"].stats.cache_hits.values()) == 0
    if damage != "unwritable":
        whole = made(OUTER)
        assert whole["f"](1.0) == 2.0
        assert sum(whole["f"].stats.cache_hits.values()) == 1


def test_a_global_that_is_bound_anew_leaves_no_old_code_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code in memory that was made with the old value is not filed under what the new value looks like."""
    monkeypatch.setenv("EQUIPOISE_CACHE_DIR", str(tmp_path))
    scope = made(OUTER)
    assert scope["f"](1.0) == 2.0
    scope["C"] = 5.0
    # The inner function stays as it was compiled; another outer one is made of it, and of C = 5 by the look of it.
    assert jit(scope["outer"])(1.0) == 2.0
    fresh = made(OUTER.replace("C = 1.0", "C = 5.0"))
    assert fresh["f"](1.0) == 6.0
    # One function, two signatures, the global bound anew in between.
    scope = made(OUTER)
    assert scope["g"](1.0) == 2.0
    scope["C"] = 7.0
    assert scope["g"](1) == 8.0
    assert made(OUTER)["g"](1) == 2.0
    assert made(OUTER.replace("C = 1.0", "C = 7.0"))["g"](1) == 8.0
    # Bound anew while it was being compiled.
    scope = made(OUTER)
    save = cache.Cache.save_overload

    def late(self: cache.Cache, signature: Any, result: Any) -> None:
        scope["C"] = 9.0
        save(self, signature, result)

    with monkeypatch.context() as patch:
        patch.setattr(cache.Cache, "save_overload", late)
        assert scope["g"](True) == 2.0
    assert made(OUTER.replace("C = 1.0", "C = 9.0"))["g"](True) == 10.0


def test_what_changes_the_machine_code_is_in_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQUIPOISE_CACHE_DIR", str(tmp_path))

    def files_after(**options: Any) -> int:
        jit(lambda x: x + 1.0, **options)(1.0)
        return len(list(tmp_path.iterdir()))

    assert files_after() == 1
    assert files_after() == 1
    assert files_after(nogil=True) == 2
    monkeypatch.setattr(numba.config, "BOUNDSCHECK", 1)
    assert files_after() == 3
    monkeypatch.undo()
    monkeypatch.setenv("EQUIPOISE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(numba.config, "OPT", 1)
    assert files_after() == 4


def test_code_that_nobody_uses_is_thrown_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQUIPOISE_CACHE_DIR", str(tmp_path))
    old, used, foreign, dead = (tmp_path / name for name in ("a.nbc", "b.nbc", "notes.txt", "c.tmp"))
    for path in (old, used, foreign, dead):
        path.write_text("x")
    now = used.stat().st_mtime
    long_ago = now - (KEPT_DAYS + 1) * 86400
    for path in (old, foreign, dead):
        os.utime(path, (long_ago, long_ago))
    monkeypatch.setattr(files, "_pruned", False)
    jit(lambda x: x * 3.0)(1.0)
    assert not old.exists()
    assert not dead.exists()
    assert used.exists()
    assert foreign.exists()
    # Once in a process.
    os.utime(used, (long_ago, long_ago))
    jit(lambda x: x * 4.0)(1.0)
    assert used.exists()
    # To be loaded is to be used.
    mine = next(tmp_path.glob("*lambda*.nbc"))
    os.utime(mine, (long_ago, long_ago))
    jit(lambda x: x * 3.0)(1.0)
    jit(lambda x: x * 4.0)(1.0)
    assert mine.stat().st_mtime >= now
    prune(tmp_path / "nowhere")


def test_a_person_who_waits_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The first compilation of a process says so where somebody waits, and nobody else is told."""
    monkeypatch.setenv("EQUIPOISE_CACHE_DIR", str(tmp_path))
    for waits in (False, True):
        monkeypatch.setattr(cache, "_announced", False)
        monkeypatch.setattr(cache, "watched", lambda waits=waits: waits)
        for constant in (1.0, 2.0):
            assert jit(eval(f"lambda x: x + {constant + 10 * waits}"))(0.5) == 0.5 + constant + 10 * waits
        told = capfd.readouterr().err
        assert told == "equipoise: compiling, once for this machine; it takes a few seconds\n" * waits


def test_the_steps_of_a_study_are_kept_on_disk() -> None:
    """All that they refer to has a lasting description; otherwise every process would compile them again."""
    found = [fingerprint(step) for step in vars(steps).values() if hasattr(step, "py_func")]
    assert len(set(found)) == len(found) > 20


def test_functions_have_other_numbers_in_every_process() -> None:
    """Code from disk keeps the numbers of the process that made it, and must not meet them again on other functions."""
    code = "import equipoise.compiled.compiler as c; print(next(c.bytecode.FunctionIdentity._unique_ids))"
    first, second = (
        int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(2)
    )
    assert abs(first - second) > 1_000_000


def test_forked_processes_have_other_numbers() -> None:
    """Two that were forked compile different functions, and file them under one cache."""
    code = """
import os, equipoise.compiled.compiler as c
for _ in range(2):
    if os.fork() == 0:
        print(next(c.bytecode.FunctionIdentity._unique_ids), flush=True)
        os._exit(0)
    os.wait()
print(next(c.bytecode.FunctionIdentity._unique_ids))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    numbers = sorted(map(int, done.stdout.split()))
    assert len(numbers) == 3
    assert min(b - a for a, b in itertools.pairwise(numbers)) > 1_000_000
