"""The site builds without warnings; among them are links that lead nowhere and public names without a description."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

pytest.importorskip("sphinx", reason="the site needs the docs extra")


def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    options = ["-W", "--keep-going", "--quiet", "-d", str(tmp_path / "trees")]
    command = [sys.executable, "-m", "sphinx", *options, str(ROOT / "docs"), str(tmp_path / "site")]
    built = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert built.returncode == 0, built.stderr
    described = (tmp_path / "site" / "reference" / "api" / "results.html").read_text()
    assert 'id="equipoise.Result.intervals"' in described
    commands = (tmp_path / "site" / "reference" / "command-line.html").read_text()
    assert "--max-seconds" in commands
    assert not re.search(r"[–—][a-z]", commands)  # an option whose hyphens became a dash
    tutorial = (tmp_path / "site" / "tutorial.html").read_text()
    assert '<span class="sentence">95% confidence sequences, ' in tutorial
    assert "\n\n</pre>" not in tutorial
    index = (tmp_path / "site" / "searchindex.js").read_text()
    assert '"what happens if a worker dies?":' in index


def extension(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "extensions" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_questions_that_have_short_answers_can_be_searched_for() -> None:
    """Whoever types a question of how-to/index.md into the search box is led to the page that its answer links to."""
    index = ROOT / "docs" / "how-to" / "index.md"
    rows = re.findall(r"^\| ([^|]+\?) \| .*?\]\(([^)#]+)", index.read_text().split("## Short answers")[1], re.MULTILINE)
    assert len(rows) >= 7
    searched = extension("searched")
    for question, page in rows:
        assert question.lower() in searched.words((index.parent / page).read_text()), question


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ('<a href="b.html#here">', ""),
        ('<a href="b.html#gone">', "b.html#gone has no such anchor"),
        ('<a href="c.html">', "c.html does not exist"),
        ('<a href="#own"><p id="own">', ""),
        ('<a href="https://example.org/c.html">', ""),
        ('<script src="https://example.org/x.js">', "loads https://example.org/x.js from another host"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "loads //example.org/x.css from another host"),
        ('<img src="data:image/png;base64,AAAA">', ""),
        ('<img src="gone.png">', "gone.png does not exist"),
    ],
)
def test_broken_links_are_found(tmp_path: Path, body: str, wrong: str) -> None:
    (tmp_path / "a.html").write_text(body)
    (tmp_path / "b.html").write_text('<h2 id="here">')
    assert extension("checks").broken(tmp_path) == ([f"a.html: {wrong}"] if wrong else [])


@pytest.mark.parametrize(
    ("line", "wraps"),
    [
        ("95% confidence sequences, valid at any time.", True),
        ("arm    count   mean", False),
        ("│ auto │ 30 │", False),
        ("    a line that is set in", True),
    ],
)
def test_printed_sentences_wrap_and_tables_do_not(line: str, wraps: bool) -> None:
    marked = f'<span class="sentence">{line}</span>' if wraps else line
    laid_out = extension("listings").laid_out
    assert laid_out(f'<pre><span class="go">{line}</span>\n</pre>') == f'<pre><span class="go">{marked}</span>\n</pre>'
    head = '<div class="highlight-text notranslate"><div class="highlight"><pre><span></span>'
    assert laid_out(f"{head}{line}\n\n</pre>") == f"{head}{marked}\n</pre>"
