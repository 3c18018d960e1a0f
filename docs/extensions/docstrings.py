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

# Classes that only the package makes: what their constructors take is nothing to a reader.
MADE_HERE: Final = {"equipoise.Result"}


def rewrite(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Apply the rewrites to each line, in place, and give every attribute that shares a description a line."""
    if name in MADE_HERE:
        lines[:] = [line for line in lines if not line.startswith(":param ")]
    if what == "property" and lines[-1:] != [] and lines[-1].startswith(":type: "):
        # Napoleon takes what stands before a colon for the type; here it is the beginning of a sentence.
        lines[:] = [f"{lines[-1].removeprefix(':type: ')}: {lines[0]}", *lines[1:-1]]
    for pattern, replacement in REWRITES:
        lines[:] = [pattern.sub(replacement, line) for line in lines]
    lines[:] = [part for line in lines for part in _apart(line)]


def _apart(line: str) -> list[str]:
    """Return '.. attribute:: a, b' as two lines, which are two names with one description to Sphinx."""
    directive, found, names = line.partition(".. attribute:: ")
    if not found:
        return [line]
    first, *others = names.split(", ")
    return [f"{directive}{found}{first}", *(" " * len(directive + found) + name for name in others)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to autodoc."""
    app.connect("autodoc-process-docstring", rewrite)
    return {"parallel_read_safe": True}
