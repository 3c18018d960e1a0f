"""
Rules that every test module keeps: none reads a clock, none sleeps.

A test that depends on elapsed time fails on a busy machine. What must not be slow is counted, what must wait waits for
an event (`tests.waiting`), and seconds that matter are read off a clock that the test sets (`tests.driving`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

# The modules that may, each with its reason.
ALLOWED = {
    "waiting.py": "polls for what another process does, with a limit that only a hang reaches",
    "functional/store/history.py": "stamps calls, so that the order of calls in several processes can be checked",
    "unit/test_house.py": "names what it looks for",
}

CLOCKS = {
    "clock_gettime", "clock_gettime_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns",
    "process_time", "process_time_ns", "thread_time", "thread_time_ns", "time_ns", "default_timer", "sleep",
}  # fmt: skip
NOW = {"now", "utcnow", "today"}
# In a program that a test hands to another process as a text: the same in Python, and `sleep 5` in a shell.
IN_TEXT = re.compile(
    rf"\b(import time\b|from time import|time\.(time|sleep)\b|({'|'.join(sorted(CLOCKS - {'sleep'}))})\(|sleep \d)"
)


def offences(source: str) -> Iterator[tuple[int, str]]:
    """Where a module reads a clock or sleeps, by line and name, also in programs that it holds as texts."""
    tree = ast.parse(source)
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    yields = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call) and _yields(node)}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names) if any(each.name.split(".")[0] in ("time", "timeit") for each in names):
                yield node.lineno, "import time"
            case ast.ImportFrom(module="time" | "timeit" as module):
                yield node.lineno, f"from {module} import"
            case ast.ImportFrom(module=str(module), names=names):
                for each in names:
                    if each.name in CLOCKS:
                        yield node.lineno, f"from {module} import {each.name}"
            case ast.Attribute(attr=name) if id(node) not in yields:
                owner = ast.unparse(node.value)
                if name in CLOCKS or (name in NOW and owner.split(".")[-1] in ("datetime", "date")):
                    yield node.lineno, f"{owner}.{name}"
            case ast.Constant(value=str(text)) if id(node) not in documentation and (found := IN_TEXT.search(text)):
                yield node.lineno, f"{found.group()!r} in a text"


def _yields(call: ast.Call) -> bool:
    """Whether it is `asyncio.sleep(0)`, which lets others go first and takes no time."""
    return ast.unparse(call) == "asyncio.sleep(0)"


@pytest.mark.parametrize("path", sorted(TESTS.rglob("*.py")), ids=lambda path: path.relative_to(TESTS).as_posix())
def test_no_test_depends_on_time(path: Path) -> None:
    if path.relative_to(TESTS).as_posix() in ALLOWED:
        return
    found = [f"{path}:{line}: {what}" for line, what in offences(path.read_text(encoding="utf-8"))]
    assert not found, "a test must not depend on time (see CONTRIBUTING.md):\n" + "\n".join(found)


def test_the_allowed_are_there() -> None:
    for name in ALLOWED:
        assert list(offences((TESTS / name).read_text(encoding="utf-8"))), f"{name} need not be allowed"


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "import time as t",
        "import timeit",
        "from time import perf_counter",
        "from time import sleep as nap",
        "from asyncio import sleep",
        "clock = time.monotonic",
        "time.sleep(1)",
        "async def f():\n    await asyncio.sleep(0.1)",
        "async def f(x):\n    await asyncio.sleep(x)",
        "datetime.now()",
        "datetime.datetime.now(tz)",
        "date.today()",
        "os.times(); time.process_time()",
        "SCRIPT = 'import sys, time\\ntime.sleep(60)'",
        "run(['python', '-c', 'from time import time'])",
        "SCRIPT = f'start = perf_counter(){end}'",
        "command = 'sleep 60 & wait'",
    ],
)
def test_a_module_that_does_is_refused(source: str) -> None:
    assert list(offences(source))


@pytest.mark.parametrize(
    "source",
    [
        '"""Never time.sleep(1) here."""',
        "def f():\n    'Not perf_counter() either.'",
        "event.wait(300)",
        "async def f():\n    await asyncio.sleep(0)",
        "sim.run(times=3)",
        "text = 'a long time ago'",
        "result.time",
    ],
)
def test_a_module_that_does_not_is_not(source: str) -> None:
    assert not list(offences(source))
