"""
Listings as they look on a page: printed sentences wrap, tables keep their columns, and no line is empty at the end.

A listing scrolls sideways where it is too wide. That suits code and tables, but the sentence below a printed table,
which says what its intervals promise, would be cut off.
"""

from __future__ import annotations

import re
from typing import Any, Final

from sphinx.application import Sphinx

# The lines of a doctest that are printed, and the blocks of plain text.
PRINTED: Final = re.compile(r'(?<=<span class="go">)[^<\n]+(?=</span>)')
TEXT: Final = re.compile(r'(?<=<div class="highlight-text notranslate"><div class="highlight"><pre><span></span>)[^<]+')

# What stands in columns: gaps of several spaces, and the lines of a table or a tree.
COLUMNS: Final = re.compile(r"\S {2,}\S|[\u2500-\u259f]")


# The empty line that ends what a doctest prints.
END: Final = re.compile(r"\n+(?=</pre>)")


def laid_out(page: str) -> str:
    """Return the HTML of a page with every printed sentence marked, and without empty lines at the end of listings."""
    page = END.sub("\n", page)
    page = PRINTED.sub(lambda found: _line(found[0]), page)
    return TEXT.sub(lambda found: "\n".join(map(_line, found[0].split("\n"))), page)


def _line(line: str) -> str:
    return line if not line.strip() or COLUMNS.search(line) else f'<span class="sentence">{line}</span>'


def lay_out(app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Lay out the listings of a page before it is written."""
    if "body" in context:
        context["body"] = laid_out(context["body"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Lay out the listings of every page."""
    app.connect("html-page-context", lay_out)
    return {"parallel_read_safe": True}
