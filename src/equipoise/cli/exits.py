"""Exit codes, and the one sentence on standard error that explains them."""

from __future__ import annotations

import sys
from enum import IntEnum
from typing import Any

import typer

from equipoise.errors import EquipoiseError
from equipoise.inputs import printable, without_password


class Exit(IntEnum):
    """What the exit code of a command means."""

    SUCCESS = 0
    NOT_REACHED = 1
    BAD_INPUT = 2
    FAILED = 3
    INTERRUPTED = 130


def code_of(app: typer.Typer) -> int:
    """Run the command line, and return its exit code; what went wrong is printed in one sentence."""
    try:
        code = app(standalone_mode=False)
    except (ValueError, TypeError, EquipoiseError) as error:
        return _refuse(str(error))
    except OSError as error:  # a missing folder, no permission, a full disk
        return _refuse(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except typer.Abort:
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
        return _refuse(error.format_message())
    return code if isinstance(code, int) else Exit.SUCCESS


def say(sentence: str) -> None:
    """Print a sentence of the program itself to standard error; what it quotes cannot control the terminal."""
    print(f"equipoise: {for_terminal(sentence)}", file=sys.stderr)


def for_terminal(text: str) -> str:
    """Return a text of several lines without control characters and passwords."""
    return "\n".join(map(printable, without_password(text).split("\n")))


def _refuse(sentence: Any) -> int:
    if sentence:  # empty when the help was printed because no command was given
        say(sentence)
    return Exit.BAD_INPUT
