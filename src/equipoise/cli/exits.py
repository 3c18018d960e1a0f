"""Exit codes, and the one sentence on standard error that explains them."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from enum import IntEnum
from types import FrameType
from typing import Any, Final

import typer

from equipoise.base import interrupts
from equipoise.base.errors import EquipoiseError
from equipoise.base.inputs import printable, shown, without_password


class Exit(IntEnum):
    """What the exit code of a command means."""

    SUCCESS = 0
    NOT_REACHED = 1
    BAD_INPUT = 2
    FAILED = 3
    INTERRUPTED = 130


class Ended(KeyboardInterrupt):
    """A signal asked this process to end; `code` is the exit code that says so."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.code = 128 + number


class Signals:
    """
    SIGTERM, SIGHUP and SIGQUIT raise `Ended` inside this context, as Ctrl-C raises KeyboardInterrupt.

    Only the first does: a supervisor or a terminal that closes may send several, and what they end is ending already.
    """

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._ending = False

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():  # Python lets no other set them
            for name in ("SIGTERM", "SIGHUP", "SIGQUIT"):
                number = getattr(signal, name, None)  # Windows lacks some
                if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                    self._before[number] = signal.signal(number, self._end)
        return self

    def __exit__(self, *error: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def ignore(self) -> None:
        """Let no signal raise any more."""
        self._ending = True

    def _end(self, number: int, frame: FrameType | None) -> None:
        if not self._ending:
            self._ending = True
            interrupts.raise_heard(Ended(number), frame)


def code_of(app: typer.Typer) -> int:
    """Run the command line, and return its exit code; what went wrong is printed in one sentence."""
    try:
        code = app(standalone_mode=False)
        if sys.stdout:
            sys.stdout.flush()
        if code == Exit.INTERRUPTED and not isinstance(code, Exit):
            raise KeyboardInterrupt  # typer's number for it; of a command that has said something, it is an `Exit`
    except (ValueError, TypeError, EquipoiseError) as error:
        return _refuse(str(error))
    except OSError as error:  # a missing file, no permission, a full disk
        return _of_system(error)
    except (typer.Abort, KeyboardInterrupt):
        say("stopped")
        return Exit.INTERRUPTED
    except ModuleNotFoundError as error:
        # Ours say what to install; Python's own carry the module's name and are mistakes in the code.
        if error.name:
            raise
        return _refuse(str(error))
    except Exception as error:
        # Errors of the parser of the command line, whichever library it is.
        if not hasattr(error, "format_message"):
            raise
        return _refuse(_of_parser(error))
    return code if isinstance(code, int) else Exit.SUCCESS


def _of_system(error: OSError) -> int:
    """Return the exit code of what the system refused, having said what it was."""
    if error.filename is None and error.errno in _OF_OUTPUT:  # files are named (`output.writing`)
        with open(os.devnull, "w") as nowhere:  # or Python would try once more at its end
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return 1  # as typer does where it notices: nobody reads on, as in a pipe to head
        return _refuse(f"cannot write to standard output: {error.strerror}")
    return _refuse(f"{error.filename}: {error.strerror}" if error.filename else str(error))


def say(sentence: str) -> None:
    """Print a sentence of the program itself to standard error; what it quotes cannot control the terminal."""
    print(f"equipoise: {for_terminal(sentence)}", file=sys.stderr)


def for_terminal(text: str) -> str:
    """Return a text of several lines without control characters and passwords."""
    return "\n".join(map(printable, without_password(text).split("\n")))


# What goes wrong with standard output.
_OF_OUTPUT: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE})

# What the parser wanted where it could not read a value, by its name for that.
_WANTED: Final = {"int_parsing": "an integer", "float_parsing": "a number"}


def _of_parser(error: Any) -> str:
    """Return what the parser of the command line says, or in our own words that a value is not a number."""
    cause, option = error.__cause__, getattr(error, "param", None)
    if option is not None and hasattr(cause, "errors"):
        found = cause.errors()[0]
        if found["type"] in _WANTED:
            return f"{option.opts[0]} must be {_WANTED[found['type']]}, got {shown(found['input'])}"
    return str(error.format_message())


def _refuse(sentence: Any) -> int:
    if sentence:  # empty when the help was printed because no command was given
        say(sentence)
    return Exit.BAD_INPUT
