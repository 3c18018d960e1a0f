"""The exception for errors that are neither a wrong value nor a wrong type."""

from typing import Any


class EquipoiseError(RuntimeError):
    """
    An operation is not possible in the current state of a study.

    Also raised where a strategy breaks its contract, or a store cannot be used.

    Attributes
    ----------
    study
        If `estimate` raised it, the study with all samples so far; otherwise None.
    reason
        If sampling could not continue, the cause alone, without what became of the samples; otherwise empty.
    """

    study: Any = None
    reason: str = ""
