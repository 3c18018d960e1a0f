"""Pages whose listings do what they show pass, all others fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import listings


def run(folder: Path, page: str) -> None:
    path = folder / "page.md"
    path.write_text(page.replace("'''", "```"))
    listings.run(path, folder)


GOOD = {
    "a doctest": "'''python\n>>> 1 + 1\n2\n\n'''",
    "names last": "'''python\n>>> a = 1\n\n'''\n\n'''python\n>>> a\n1\n\n'''",
    "a command": "'''sh\necho one\n'''\n\nprints\n\n'''text\none\n'''",
    "what varies": "'''sh\necho 0.123 seconds\n'''\n\n'''text\n... seconds\n'''",
    "a command in a list": "1. First\n\n   '''sh\n   echo one\n   '''\n\n   '''text\n   one\n   '''",
    "an exit code": "<!-- exits with 3 -->\n'''sh\nexit 3\n'''",
    "a file": "'''toml\n# a.toml\nb = 1\n'''\n\n'''sh\ncat a.toml\n'''\n\n'''text\n# a.toml\nb = 1\n'''",
    "a script": "'''sh\n#!/bin/sh\n# go.sh\necho gone\n'''\n\n'''sh\n./go.sh\n'''\n\n'''text\ngone\n'''",
    "not run": "<!-- not run: no reason -->\n'''sh\nexit 3\n'''",
    "python not run": "<!-- not run: no reason -->\n'''python\nprint(1)\n'''",
    "inside another": "''''md\n'''sh\nexit 3\n'''\n''''",
}

BAD = {
    "another value": "'''python\n>>> 1 + 1\n3\n\n'''",
    "another text": "'''sh\necho one\n'''\n\n'''text\ntwo\n'''",
    "more text": "'''sh\necho one; echo two\n'''\n\n'''text\none\n'''",
    "a failure": "'''sh\nfalse\necho one\n'''",
    "no failure": "<!-- exits with 3 -->\n'''sh\ntrue\n'''",
    "python that nothing runs": "'''python\nprint(1)\n'''",
    "a mark without a reason": "<!-- not run -->\n'''python\nprint(1)\n'''",
    "a name of another page": "'''python\n>>> a\n1\n\n'''",
}


@pytest.mark.parametrize("page", GOOD.values(), ids=GOOD)
def test_good_pages_pass(page: str, tmp_path: Path) -> None:
    run(tmp_path, page)


@pytest.mark.parametrize("page", BAD.values(), ids=BAD)
def test_bad_pages_fail(page: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        run(tmp_path, page)


def test_a_service_serves_at_the_address_of_the_page(tmp_path: Path) -> None:
    page = """<!-- service -->
'''sh
equipoise serve --db studies.db
'''

'''sh
curl --silent --fail http://127.0.0.1:8000/healthz > /dev/null && echo http://127.0.0.1:8000
'''

'''text
http://127.0.0.1:8000
'''
"""
    run(tmp_path, page)
