"""
Ctrl-C in the command line: an exception that is raised where it is heard.

Python raises KeyboardInterrupt wherever the main thread happens to be. In a destructor, or in a callback of a weak
reference or of LLVM, Python prints a traceback and goes on; during an import, a library may take it for a missing
module. So the exception waits until an import, or what Numba does, is over. A second signal does not wait.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Any, Final

# Packages in which an exception out of nowhere may be lost.
_DEAF: Final = frozenset({"numba", "llvmlite", "importlib", "_frozen_importlib", "_frozen_importlib_external"})
_OURS: Final = frozenset({"equipoise", "__main__"})

# Whether the command is over: nobody is there any more to catch an exception.
over = False

# The frame in which an exception is to be raised, when it goes on.
_waiting: FrameType | None = None


class Interrupted(KeyboardInterrupt):
    """
    Ctrl-C.

    Not KeyboardInterrupt itself: where that leaves a string that is executed, as in many imports, Python kills itself
    with the signal in the end, although the exception was caught.
    """


def listen() -> None:
    """Let Ctrl-C raise `Interrupted` from now on, unless this process was told to ignore it, as under nohup."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
        sys.unraisablehook = _raise_again


def _interrupt(number: int, frame: FrameType | None) -> None:
    if over:
        os._exit(128 + number)
    raise_heard(Interrupted(), frame)


def raise_heard(error: KeyboardInterrupt, frame: FrameType | None) -> None:
    """Raise an error for a signal that has come while a frame was executed, at once or as soon as it is heard."""
    place = None if _waiting else _place(frame)
    if place is None:
        _stop_waiting()
        raise error
    _raise_in(place, error)


def _place(frame: FrameType | None) -> FrameType | None:
    """Return the frame that called what is deaf; None where nothing is."""
    place = None
    while frame is not None and _package(frame) not in _OURS:
        if _package(frame) in _DEAF:
            place = frame.f_back
        frame = frame.f_back
    return place


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]


def _raise_in(place: FrameType, error: KeyboardInterrupt) -> None:
    """Raise an error as soon as a frame goes on, as a debugger stops there."""
    global _waiting

    def stop(frame: FrameType, event: str, argument: Any) -> None:
        _stop_waiting()
        raise error

    _stop_waiting()
    _waiting, place.f_trace, place.f_trace_opcodes = place, stop, True
    sys.settrace(lambda frame, event, argument: None)


def _stop_waiting() -> None:
    global _waiting
    if _waiting:
        _waiting.f_trace, _waiting = None, None
        sys.settrace(None)


def _raise_again(lost: Any) -> None:
    """Raise an interrupt that Python could not raise where it came, in a destructor or a callback, after that."""
    frame = sys._getframe(1)
    if isinstance(lost.exc_value, KeyboardInterrupt) and not over:
        _raise_in(_place(frame) or frame, lost.exc_value)
    else:
        sys.__unraisablehook__(lost)
