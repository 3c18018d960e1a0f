"""
Let the n-th system call on the files of a store fail, for every n, or kill the process there.

As SQLite's own tests do it: a library that is loaded before the system's (`syscalls.c`) counts the calls on files of
one folder. A short life of a study is led again and again, each time in a process of its own and with a later call
failing, until it ends before that call comes. Whatever fails, each step gives what it gives without failures, or one
sentence. What was acknowledged is in the store in the end, once, and the store can be opened again.

`LD_PRELOAD=syscalls.so python -m tests.functional.store.syscalls FOLDER STEP WAYS...` prints JSON lines.
"""

from __future__ import annotations

import ctypes
import errno
import faulthandler
import json
import os
import shutil
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equipoise as eq
from equipoise import report
from tests.waiting import HANG

# How calls fail: which of them (letters of `syscalls.c`), their errno, whether all that follow fail too, and whether
# the process ends there instead. A disk that is full fails where it is written to. Where locks fail for ever, SQLite
# waits.
ALL = "porwsimlc"
WAYS: dict[str, tuple[str, int, bool, bool]] = {
    "EIO once": (ALL, errno.EIO, False, False),
    "EIO from then on": (ALL.replace("l", ""), errno.EIO, True, False),
    "ENOSPC once": ("w", errno.ENOSPC, False, False),
    "ENOSPC from then on": ("w", errno.ENOSPC, True, False),
    "EINTR once": ("orwsl", errno.EINTR, False, False),
    "EACCES once": ("pol", errno.EACCES, False, False),
    "killed": (ALL, 0, False, True),
}
KILLED = 9


class Life:
    """
    A short life of a study.

    Attributes
    ----------
    said
        The sentences by which something was refused.
    """

    def __init__(self, where: Path, saved: int) -> None:
        self._where, self._saved, self._value = where, saved, 0.0
        self.said: list[str] = []

    def lead(self) -> None:
        """Open, ask, tell, write a snapshot, look and close; open again, ask, tell, report and close."""
        study = self._open()
        if study is not None:
            self._tell(study, self._try(lambda: study.ask(3)))
            self._try(study._log._write_snapshot)
            self._try(study.result)
            self._try(study.close)
        study = self._open()
        if study is not None:
            self._tell(study, self._try(lambda: study.ask(1)))
            self._try(lambda: report.read(self._where))
            self._try(study.close)

    def _open(self) -> Any:
        """Open the study, at the second try if need be."""
        return self._try(lambda: eq.open(self._where, ["a", "b"], 100)) or self._try(
            lambda: eq.open(self._where, ["a", "b"], 100)
        )

    def _tell(self, study: Any, tickets: list[Any] | None) -> None:
        answers = []
        for ticket in tickets or []:
            self._value += 1.0
            answers.append((ticket, self._value))

        def tell() -> bool:
            study.tell_many(answers)
            return True

        # A second time where it failed: whether it was saved is not known.
        if answers and (self._try(tell) or self._try(tell)):
            os.write(self._saved, "".join(f"{value}\n" for _, value in answers).encode())

    def _try(self, do: Callable[[], Any]) -> Any:
        """Do something; None where it is refused in one sentence."""
        try:
            return do()
        except (eq.EquipoiseError, ValueError) as error:
            said = str(error)
            assert 0 < len(said) < 600, said
            assert "\n" not in said, said
            self.said.append(said)
            return None


def check(where: Path, saved: list[float]) -> None:
    """Check that the store can be opened and used, and that it has what was acknowledged, once."""
    with eq.open(where, ["a", "b"], 100) as study:
        study.tell(study.ask(), -1.0)
        told = Counter(event.value for event in study._log.events() if event.kind == "tell")
        samples = study.result().samples
    assert set(told.values()) == {1}, f"counted more than once: {told}"
    assert samples == len(told)
    assert not set(saved) - set(told), f"acknowledged and lost: {set(saved) - set(told)}"
    assert [path.name for path in where.parent.iterdir()] == [where.name], "something was left behind"


def case(folder: Path, how: str, n: int) -> dict[str, Any]:
    """Lead a life in a process of its own in which the n-th call fails; return what became of it."""
    library = ctypes.CDLL(None)
    library.syscalls_failed.restype = ctypes.c_char_p
    where = folder / "study.db"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    kinds, code, lasting, ending = WAYS[how]
    saved_from, saved = os.pipe()
    found_from, found = os.pipe()
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(HANG, exit=True)
        status = 1
        try:
            life = Life(where, saved)
            library.syscalls_fail(os.fsencode(folder), kinds.encode(), n, code, lasting, ending)
            life.lead()
            made, failed = library.syscalls_made(), library.syscalls_failed().decode()
            library.syscalls_fail(b"", b"", 0, 0, 0, 0)
            os.write(found, json.dumps({"made": made, "failed": failed, "said": life.said}).encode())
            status = 0
        except BaseException:
            traceback.print_exc()
            print(f"where call {n} failed: {library.syscalls_failed().decode()}", file=sys.stderr, flush=True)
        finally:
            os._exit(status)
    os.close(saved)
    os.close(found)
    with os.fdopen(saved_from) as lines, os.fdopen(found_from) as result:
        acknowledged = [float(line) for line in lines]
        text = result.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in ((0, KILLED) if ending else (0,)), f"it ended with {status}"
    check(where, acknowledged)
    return json.loads(text) if text else {"made": n, "failed": "killed", "said": []}


def main(folder: Path, step: int, ways: list[str]) -> None:
    eq.open(folder / "warm.db", ["a", "b"], 100).close()  # with all that has to be compiled
    for how in ways:
        n = 1 + 17 * list(WAYS).index(how) % step
        while True:
            try:
                found = case(folder / "store", how, n)
            except Exception:
                found = {"wrong": traceback.format_exc(), "made": n}
            print(json.dumps({"how": how, "n": n} | found), flush=True)
            if found["made"] < n:
                break
            n += step


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
