"""Ctrl-C in the command line: heard wherever it comes, answered with one line."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from equipoise.base import interrupts
from tests.waiting import HANG

COMMAND = [sys.executable, "-m", "equipoise", "simulate", "rademacher", "rademacher", "--runs", "100", "--budget", "20"]

# A process that counts what it does from the first line of the command on, and interrupts itself at the n-th:
# "import" events of Python's, or calls of functions.
COUNTING = """
import os, signal, sys
at, what, began = int(os.environ["AT"]), os.environ["WHAT"], False
def count():
    global at
    at -= 1
    if at == 0:
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGINT)
def call(frame, event, argument):
    global began
    if event == "call":
        code = frame.f_code
        began = began or (code.co_name == "main" and code.co_filename.endswith("__main__.py"))
        if began:
            count()
def audit(event, arguments):
    global began
    if event == "import" and what == "import":
        began = began or arguments[0] == "equipoise.cli"
        if began:
            count()
if what == "call":
    sys.setprofile(call)
else:
    sys.addaudithook(audit)
"""


@pytest.fixture
def listening(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before, hook = signal.signal(signal.SIGINT, signal.default_int_handler), sys.unraisablehook
    interrupts.listen()
    yield
    signal.signal(signal.SIGINT, before)
    sys.unraisablehook = hook
    assert sys.gettrace() is None or "coverage" in sys.modules
    assert interrupts._waiting is None


def module(folder: Path, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Import a module with a signal in it."""
    (folder / "signalling.py").write_text(f"from signal import SIGINT, raise_signal\n{source}")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "signalling", raising=False)
    importlib.invalidate_caches()
    importlib.import_module("signalling")


@pytest.mark.usefixtures("listening")
def test_it_is_raised_at_once() -> None:
    with pytest.raises(interrupts.Interrupted):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("listening")
@pytest.mark.parametrize(
    "source",
    [
        "raise_signal(SIGINT)\n",
        "try:\n    raise_signal(SIGINT)\nexcept BaseException:\n    pass\n",
        "exec('raise_signal(SIGINT)')\n",
    ],
)
def test_an_import_ends_before_it_is_raised(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(interrupts.Interrupted):
        module(tmp_path, source + "done = True\n", monkeypatch)
    assert sys.modules.pop("signalling").done


@pytest.mark.usefixtures("listening")
def test_an_import_that_fails_is_an_interrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(interrupts.Interrupted):
        module(tmp_path, "raise_signal(SIGINT)\nraise ImportError\n", monkeypatch)


@pytest.mark.usefixtures("listening")
def test_the_second_signal_does_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(interrupts.Interrupted):
        module(tmp_path, "raise_signal(SIGINT)\nraise_signal(SIGINT)\n", monkeypatch)
    assert "signalling" not in sys.modules


@pytest.mark.usefixtures("listening")
def test_numba_comes_to_an_end_first() -> None:
    scope: dict[str, Any] = {"__name__": "numba.core", "raise_signal": partial(signal.raise_signal, signal.SIGINT)}
    exec("def compile():\n    raise_signal()\n    done.append(True)", scope)
    done = scope["done"] = []
    with pytest.raises(interrupts.Interrupted):
        scope["compile"]()
    assert done


@pytest.mark.usefixtures("listening")
def test_a_destructor_does_not_lose_it(capfd: pytest.CaptureFixture[str]) -> None:
    class Interrupts:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(interrupts.Interrupted):
        str(Interrupts())
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("listening")
def test_other_errors_of_destructors_are_reported(capfd: pytest.CaptureFixture[str]) -> None:
    class Fails:
        def __del__(self) -> None:
            raise ValueError("the error of a destructor")

    str(Fails())
    assert "the error of a destructor" in capfd.readouterr().err


def test_a_process_that_ignores_it_goes_on_ignoring_it() -> None:
    before, hook = signal.signal(signal.SIGINT, signal.SIG_IGN), sys.unraisablehook
    try:
        interrupts.listen()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert sys.unraisablehook is hook
    finally:
        signal.signal(signal.SIGINT, before)


def interrupted(folder: Path, at: int, what: str, cache: Path | None = None) -> tuple[int, str, str]:
    """Run a command that interrupts itself at the n-th import or call; exit code and output."""
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(COUNTING)
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"PYTHONPATH": path, "AT": str(at), "WHAT": what}
    if cache:
        environment["EQUIPOISE_CACHE_DIR"] = str(cache)
    listen = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # ignored in the background of a shell
    done = subprocess.run(
        COMMAND, env=environment, capture_output=True, text=True, check=False, timeout=HANG, preexec_fn=listen
    )
    return done.returncode, done.stdout, done.stderr


STOPPED = (130, "", "equipoise: stopped\n")


@pytest.mark.parametrize("at", [1, 120, 450])
def test_an_interrupt_while_a_command_is_loaded(at: int, tmp_path: Path) -> None:
    assert interrupted(tmp_path / "site", at, "import") == STOPPED


@pytest.mark.slow
def test_an_interrupt_while_a_command_compiles(tmp_path: Path) -> None:
    """At every 100,000th call of a first simulation, which makes 1.7 million; nothing is left half written."""
    for at in range(50_000, 1_650_000, 100_000):
        cache = tmp_path / f"cache-{at}"
        assert interrupted(tmp_path / "site", at, "call", cache) == STOPPED
        assert not list(cache.glob("*.tmp"))


def test_the_end_of_a_command_can_be_interrupted() -> None:
    code = "from equipoise.base import interrupts; import signal; interrupts.listen(); interrupts.over = True; "
    done = subprocess.run(
        [sys.executable, "-c", code + "signal.raise_signal(signal.SIGINT)"],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
