"""A ticket: one pull that a study handed out."""

from __future__ import annotations

from collections.abc import Hashable
from operator import itemgetter
from typing import cast

# A ticket's number holds its study in the upper bits and its place among the study's tickets in the lower ones.
BITS = 32


class Ticket(tuple[int, Hashable]):
    """
    One pull handed out by a study: sample `arm` once, then tell the study the value, or forget the ticket.

    A ticket is a tuple (number, arm), so that a thousand of them are made in a tenth of a millisecond, and they can be
    hashed, compared, pickled and sent elsewhere.
    """

    __slots__ = ()

    number = cast(int, property(itemgetter(0), doc="A number that no other ticket of any study has."))
    arm = cast(Hashable, property(itemgetter(1), doc="The arm's name."))

    @property
    def id(self) -> int:
        """0 for the first ticket of its study, then counting up."""
        return self[0] & ((1 << BITS) - 1)

    def __repr__(self) -> str:
        if len(self) != 2 or not hasattr(self[0], "__index__"):
            return f"Ticket({tuple(self)!r})"  # made by hand, and not a ticket of any study
        return f"Ticket(id={self.id}, arm={self.arm!r})"

    def __getnewargs__(self) -> tuple[tuple[int, Hashable]]:
        return ((self[0], self[1]),)
