"""The public laws of stores, over both databases."""

from __future__ import annotations

import equipoise as eq


class TestBoth(eq.testing.StoreLaws):
    """A file, and a study in PostgreSQL: the fixture `where` of all tests."""
