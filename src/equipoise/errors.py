"""The one exception of equipoise that is neither a wrong value nor a wrong type."""


class EquipoiseError(RuntimeError):
    """The study cannot do what was asked in the state it is in."""
