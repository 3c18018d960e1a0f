"""How kernels for one run at a time reach the strategy's own numbers of an arm."""

from __future__ import annotations

from typing import Any, NamedTuple

from equipoise.compiled import inlined
from equipoise.engine.rule import Rule
from equipoise.numeric.tuples import loader, reader, storer, writer


class Own(NamedTuple):
    """
    The strategy's own numbers of an arm.

    Attributes
    ----------
    size
        How many they are.
    kept
        Whether samples change them.
    read, write
        Compiled: a tuple of them from memory, and to it.
    load, store
        The same, written out as instructions, for rows.
    """

    size: int
    kept: bool
    read: Any
    write: Any
    load: Any
    store: Any

    @classmethod
    def of(cls, rule: Rule) -> Own:
        """Return those of a rule."""
        n = rule.own
        return cls(n, rule.keep is not None, reader(n, inlined), writer(n, inlined), loader(n), storer(n))
