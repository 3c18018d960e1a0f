"""Docstrings, which are written to be read as text, as Sphinx wants them."""

from __future__ import annotations

import re
from typing import Any, Final

from sphinx.application import Sphinx

# Names of pages become links; numbered references become a list, as footnotes of one page would share their numbers;
# the bars of |x| are not the marks of a substitution.
REWRITES: Final[list[tuple[re.Pattern[str], Any]]] = [
    (re.compile(r"\bdocs/([\w/-]+)\.md\b"), r":doc:`/\1`"),
    (re.compile(r"^(\s*)\.\. \[(\d+)\] "), r"\1\2. "),
    (re.compile(r"\[(\d+)\]_"), r"[\1]"),
    (re.compile(r"(`[^`]*`)|\|"), lambda found: found[1] or r"\|"),
]


def rewrite(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Apply the rewrites to each line, in place."""
    for pattern, replacement in REWRITES:
        lines[:] = [pattern.sub(replacement, line) for line in lines]


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to autodoc."""
    app.connect("autodoc-process-docstring", rewrite)
    return {"parallel_read_safe": True}
