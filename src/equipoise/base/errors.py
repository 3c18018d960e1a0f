"""The exceptions of the package: `EquipoiseError`, and under it one for each thing that a caller can act on."""

from __future__ import annotations

from typing import Any


class EquipoiseError(RuntimeError):
    """
    An operation is not possible in the current state of a study.

    Also raised where a strategy breaks its contract. The exceptions below are all of this kind.

    Attributes
    ----------
    study
        If `estimate` raised it, the study with all samples so far; otherwise None.
    reason
        If sampling could not continue, the cause alone, without what became of the samples; otherwise empty.
    """

    def __init__(self, message: str = "", *, reason: str = "", study: Any = None) -> None:
        super().__init__(message)
        self.reason, self.study = reason, study


class InvalidInput(EquipoiseError, ValueError):
    """An argument, an answer or a file has a value that is not allowed; nothing was changed."""


class StoreUnavailable(EquipoiseError):
    """A store cannot be reached, read or written now. What was committed is saved."""


class StoreDamaged(EquipoiseError):
    """A store holds what no version of equipoise has written, or lacks what was committed."""


class SamplerFailed(EquipoiseError):
    """A sampler failed or gave no answer more often than allowed. The samples so far are kept."""


class Refused(EquipoiseError):
    """
    A service refuses a request: it is not possible in the current state of the study, or not allowed.

    Attributes
    ----------
    status
        That of the response.
    repeated
        Whether the request was repeated, so that one of which the response was lost may be the reason.
    """

    def __init__(self, message: str, status: int, repeated: bool) -> None:
        super().__init__(message)
        self.status, self.repeated = status, repeated

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.status, self.repeated), self.__dict__


# Tracebacks show the names that callers use.
for _each in (EquipoiseError, InvalidInput, StoreUnavailable, StoreDamaged, SamplerFailed, Refused):
    _each.__module__ = "equipoise"
