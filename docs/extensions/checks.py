"""Checks of the built site: links lead somewhere, nothing comes from other hosts, every public name is described."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from sphinx.application import Sphinx
from sphinx.util import logging

import equipoise as eq

log = logging.getLogger(__name__)

# What a browser loads without being asked.
LOADED: Final = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


class Page(HTMLParser):
    """The ids of a page, what it links to and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the tag says."""
        found = dict(attrs)
        self.ids |= {value for key in ("id", "name") if (value := found.get(key))}
        if tag == "a" and found.get("href"):
            self.links.append(str(found["href"]))
        if tag in LOADED and found.get(LOADED[tag]):
            self.loads.append(str(found[LOADED[tag]]))


def broken(root: Path) -> list[str]:
    """Return what is wrong with the pages of a folder: 'page: what'."""
    pages = {path: Page(path) for path in root.rglob("*.html") if "_downloads" not in path.parts}
    wrong = []
    for path, page in pages.items():
        for target in [*page.links, *page.loads]:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if target in page.loads and parts.scheme != "data":
                    wrong.append(f"{path.relative_to(root)}: loads {target} from another host")
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not file.is_file():
                wrong.append(f"{path.relative_to(root)}: {target} does not exist")
            elif parts.fragment and file in pages and unquote(parts.fragment) not in pages[file].ids:
                wrong.append(f"{path.relative_to(root)}: {target} has no such anchor")
    return wrong


def public_names() -> set[str]:
    """Return the full names of everything that the API reference must describe."""
    names = {eq: eq.__all__, eq.strategies: dir(eq.strategies)}
    names |= {module: module.__all__ for module in (eq.intervals, eq.theory, eq.testing)}
    return {f"{module.__name__}.{name}" for module, these in names.items() for name in these}


def check(app: Sphinx, error: Exception | None) -> None:
    """Warn of everything that is wrong; `make site` turns warnings into failures."""
    if error is None and app.builder.name == "html":
        described = {name for name, *_ in app.env.domains["py"].get_objects()}
        undescribed = sorted(f"{name} is not described" for name in public_names() - described)
        for each in broken(Path(app.outdir)) + undescribed:
            log.warning(each)


def setup(app: Sphinx) -> dict[str, bool]:
    """Run the checks at the end of a build."""
    app.connect("build-finished", check)
    return {"parallel_read_safe": True}
