"""
What people type into the search box of the site.

A comment in a page, `<!-- search: resume; continue after a crash -->`, makes these words lead to where it stands, first
of all that is found. It becomes entries of the index, which is where the search looks for words that a page has not.
"""

from __future__ import annotations

import re
from typing import Final

from sphinx.application import Sphinx

COMMENT: Final = re.compile(r"^<!-- search: ([^>]+) -->$", re.MULTILINE)


def words(page: str) -> list[str]:
    """Return what the comments of a page say, in lower case."""
    return [each.strip().lower() for found in COMMENT.findall(page) for each in found.split(";")]


def entries(app: Sphinx, name: str, source: list[str]) -> None:
    """Turn the comments of a page into entries of the index; those with an exclamation mark come first."""
    source[0] = COMMENT.sub(
        lambda found: f"```{{index}} {', '.join(f'! {each}' for each in words(found[0]))}\n```", source[0]
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Turn the comments of every page into entries."""
    app.connect("source-read", entries)
    return {"parallel_read_safe": True}
