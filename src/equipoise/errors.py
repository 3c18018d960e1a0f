"""The one exception of equipoise that is neither a wrong value nor a wrong type."""

from typing import Any


class EquipoiseError(RuntimeError):
    """
    The study cannot do what was asked in the state it is in.

    Attributes
    ----------
    study
        Where `estimate` raised it, the study with all that was sampled; else None.
    reason
        Where sampling could not go on, why, without what became of the samples; else empty.
    """

    study: Any = None
    reason: str = ""
