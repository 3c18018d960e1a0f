"""A check that a call is refused, for laws that do without pytest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def refused(kind: type[Exception] | tuple[type[Exception], ...], words: str = "") -> Iterator[None]:
    """Check that the block raises an error of this kind whose message has these words."""
    try:
        yield
    except kind as error:
        if words not in str(error):
            raise AssertionError(f"expected {words!r} in the refusal, got {str(error)!r}") from error
    else:
        raise AssertionError(f"expected a refusal with {words!r}, got none")
