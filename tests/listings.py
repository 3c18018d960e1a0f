"""
The listings of a page, run in their order, in one folder, as a reader would.

A `python` block with prompts is a doctest. A `sh` block is run by bash and must succeed; a `text` block that comes next
on the page is what it prints, with `...` for what differs from time to time. A block of any language whose first line
is a comment with the name of a file, such as `# study.toml`, is that file. A comment before a block says what else to
do with it:

    <!-- not run: it installs packages -->   leave it alone
    <!-- exits with 1 -->                    expect this exit code of a `sh` block
    <!-- service -->                         let it serve at its address until the end of the page
"""

from __future__ import annotations

import difflib
import doctest
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.waiting import HANG

_FENCE: Final = re.compile(r"^ *(?P<ticks>`{3,})(?P<language>[^`\s]*)[^`]*$")
_MARK: Final = re.compile(r"^ *<!-- (?P<mark>.*) -->$")
_FILE: Final = re.compile(r"\A(#!.*\n)?# (?P<name>[\w-]+\.[a-z]+)\n")
_EXIT: Final = re.compile(r"exits with (\d+)")

# Where pages say that their service is.
_ADDRESS: Final = "http://127.0.0.1:8000"


@dataclass(frozen=True)
class Block:
    """
    A fenced block of a page.

    Attributes
    ----------
    language, text
        What stands after the fence, and what is inside, without its indentation.
    line
        The line of its fence, from 1.
    mark
        The comment on the line before the fence, if there is one.
    """

    language: str
    text: str
    line: int
    mark: str

    @property
    def file(self) -> str | None:
        """The name of the file that it is."""
        found = _FILE.match(self.text)
        return found and found["name"]

    @property
    def is_doctest(self) -> bool:
        """Whether it has prompts."""
        return self.language == "python" and ">>> " in self.text

    @property
    def must_say_how_it_runs(self) -> bool:
        """Whether it is code that nothing would run."""
        runs = self.is_doctest or self.language == "sh" or self.file is not None
        return self.language in ("python", "sh") and not runs and not self.mark.startswith("not run: ")


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page; those inside another block are part of it."""
    found: list[Block] = []
    lines = page.splitlines()
    opened: re.Match[str] | None = None
    begin = 0
    for i, line in enumerate(lines):
        fence = _FENCE.match(line)
        if opened is None:
            opened, begin = fence, i
        elif fence and not fence["language"] and len(fence["ticks"]) >= len(opened["ticks"]):
            mark = _MARK.match(lines[begin - 1]) if begin else None
            text = textwrap.dedent("\n".join(lines[begin + 1 : i]) + "\n")
            found.append(Block(opened["language"], text, begin + 1, mark["mark"] if mark else ""))
            opened = None
    return found


def run(page: Path, folder: Path) -> None:
    """Run the listings of a page in a folder, the current one; fail where one does not do what it shows."""
    with ExitStack() as stack:
        session = _Session(page, folder, stack)
        found = blocks(page.read_text(encoding="utf-8"))
        for i, block in enumerate(found):
            after = found[i + 1] if i + 1 < len(found) else None
            session.run(block, after.text if after and after.language == "text" else None)


@dataclass
class _Session:
    """What the listings of one page share: a folder, Python's names, a service."""

    page: Path
    folder: Path
    stack: ExitStack
    names: dict[str, Any] = field(default_factory=dict)
    address: str = _ADDRESS

    def run(self, block: Block, printed: str | None) -> None:
        where = f"{self.page.name}:{block.line}"
        text = block.text.replace(_ADDRESS, self.address)
        assert not block.must_say_how_it_runs, f"{where}: say how it runs (tests/listings.py)"
        if block.mark.startswith("not run: "):
            return
        if block.is_doctest:
            self._doctest(text, block.line)
        elif block.file is not None:
            file = self.folder / block.file
            file.write_text(text, encoding="utf-8")
            file.chmod(0o755)
        elif block.language == "sh" and block.mark == "service":
            self.address = self.stack.enter_context(_serving(text, self.folder))
        elif block.language == "sh":
            wanted = _EXIT.fullmatch(block.mark)
            self._shell(text, int(wanted[1]) if wanted else 0, printed, where)

    def _doctest(self, text: str, line: int) -> None:
        test = doctest.DocTestParser().get_doctest(text, self.names, self.page.name, str(self.page), line)
        failed = doctest.DocTestRunner(verbose=False).run(test, clear_globs=False).failed
        self.names = test.globs
        assert failed == 0

    def _shell(self, text: str, code: int, printed: str | None, where: str) -> None:
        found, output = _bash(text, self.folder)
        assert found == code, f"{where} exits with {found}:\n{output}"
        if printed is not None:
            got, wanted = _plain(output), _plain(printed.replace(_ADDRESS, self.address))
            same = doctest.OutputChecker().check_output(wanted, got, doctest.ELLIPSIS)
            assert same, f"{where} prints something else:\n" + "\n".join(
                difflib.ndiff(wanted.split("\n"), got.split("\n"))
            )


def _bash(text: str, folder: Path) -> tuple[int, str]:
    """Return the exit code of a script and what it prints. Nothing that it has started outlives it if it hangs."""
    with subprocess.Popen(
        ["bash", "-e", "-c", text], cwd=folder, env=_environment(), text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        try:
            output, _ = process.communicate(timeout=HANG)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, output


def _environment() -> dict[str, str]:
    """The environment of a reader whose terminal has 100 columns."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "COLUMNS": "100", "EQUIPOISE_ADMIN_TOKEN": "the administrator's token"}


def _plain(text: str) -> str:
    """A text without spaces at the ends of lines and without empty lines around it."""
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines()) + "\n"


@contextmanager
def _serving(command: str, folder: Path) -> Iterator[str]:
    """Run a command that serves, at a free port, and give its address."""
    arguments = ["bash", "-c", f"exec {command.strip()} --port 0"]
    with subprocess.Popen(arguments, cwd=folder, env=_environment(), text=True, stderr=subprocess.PIPE) as process:
        assert process.stderr
        try:
            said = process.stderr.readline()
            found = re.search(r"http://[\d.]+:\d+", said)
            assert found, f"no address in: {said}"
            yield found[0]
        finally:
            process.terminate()
            process.communicate(timeout=HANG)
