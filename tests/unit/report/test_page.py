"""The report as one page."""

from __future__ import annotations

import builtins
import html
import json
import random
import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import equipoise as eq
from equipoise import chart, report
from equipoise.chart.arms import EACH
from equipoise.cli import main
from equipoise.inference.ranking import shown
from equipoise.report.page import drawing as drawing_of
from equipoise.report.page import environment

HOSTILE = [
    "<script>alert(1)</script>", "</td></table>", "a\\b\\n", "\"quo'tes\"", "{{x}}", "datum['a']", "a.b[0]", "&amp;",
    "$&", "[red]", "%s{0}", "null", "NaN", "__proto__", "constructor", "toString", "x" * 200, "naïve 日本語",
    "👩‍👩‍👧", "עברית",
]  # fmt: skip


def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: Any) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["equipoise", "report", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, printed.out, printed.err


def scripts(text: str) -> list[tuple[str, str]]:
    """The scripts of a page: their attributes and what they hold."""
    return re.findall(r"<script\b([^>]*)>(.*?)</script>", text, re.DOTALL)


def drawings(text: str) -> list[str]:
    return re.findall(r"<svg xmlns.*?</svg>", text, re.DOTALL)


def test_the_page_needs_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where, page, picture = tmp_path / "study.db", tmp_path / "out.html", tmp_path / "out.png"
    about = {"measure": "stdout", "arms": {"calm": "roll <dice>"}}

    def sample(arm: str, seed: int) -> float:
        return random.Random(seed).gauss(10, 4 if arm == "rough" else 1)

    eq.estimate(sample, 600, arms=["calm", "rough", "<b>&[red]"], seed=1, store=where, precision=0.7, about=about)
    code, out, err = call(monkeypatch, capsys, where, "--html", page, "--png", picture)
    assert (code, err) == (0, "")
    assert out.endswith(f"Wrote {page}\nWrote {picture}\n")
    assert picture.read_bytes().startswith(b"\x89PNG")
    text = page.read_text(encoding="utf-8")
    # Vega makes nine tenths of it.
    assert len(chart.javascript()) < len(text) < len(chart.javascript()) + 200_000 < 1_300_000
    data, code_ = scripts(text)[:2], scripts(text)[2:]
    assert [attributes for attributes, _ in data] == [
        ' type="application/json" id="view"',
        ' type="application/json" id="specs"',
    ]
    assert [attributes for attributes, _ in code_] == [' type="module"', ' type="module"']
    assert json.loads(data[0][1]) == report.view(report.read(where))
    assert set(json.loads(data[1][1])) == {"estimates", "allocation", "precision"}
    # Nothing is fetched: no element has an address but the ones within the page.
    without = re.sub(r"<script\b.*?</script>", "", text, flags=re.DOTALL)
    assert re.findall(r"\b(?:src|href|srcset|action|data)\s*=\s*\"([^\"]*)\"", without) == ["#main"]
    assert not re.search(r"url\((?!#)|@import", without)
    assert set(re.findall(r"https?://[^\"' <]+", without)) == {"http://www.w3.org/2000/svg"}
    assert "&lt;b&gt;&amp;[red]" in without
    assert "<b>" not in without
    assert "roll &lt;dice&gt;" in without


def test_a_reader_without_javascript_sees_the_charts(tmp_path: Path) -> None:
    rising = [i / 10 + random.Random(i).random() for i in range(60)]
    eq.estimate({"still": [1, 2] * 30, "rising": rising}, store=tmp_path / "study.db")
    text = report.page(report.view(report.read(tmp_path / "study.db")))
    found = drawings(text)
    assert len(found) == 8  # four charts, for a window and for a phone
    ids: list[str] = []
    for drawing, kind in zip(found, ("wide", "narrow") * 4, strict=True):
        root = ElementTree.fromstring(drawing)
        assert root.attrib["class"] == kind
        assert float(root.attrib["width"]) < (1180 if kind == "wide" else 340)
        ids += [node.attrib["id"] for node in root.iter() if "id" in node.attrib]
    assert len(ids) == len(set(ids))
    assert ">rising</text>" in found[0]
    assert "Mean of neighbouring" not in text
    assert "hidden>" not in text.partition('id="card-drift"')[2][:8]


def test_drawings_on_one_page_share_no_id() -> None:
    clipped = chart.precision([{"samples": n, "width": 1 / n, "series": "a", "kind": EACH} for n in (10, 100)])
    for layer in clipped.layer:
        layer.mark.clip = True
    seen: set[str] = set()
    for prefix in ("one", "two"):
        text = drawing_of(clipped, prefix, "wide")
        ids = set(re.findall(r' id="([^"]+)"', text))
        assert ids
        assert not ids & seen
        assert set(re.findall(r"url\(#([^)]+)\)", text)) == ids
        seen |= ids


@pytest.mark.parametrize("arms", [HOSTILE[:10], HOSTILE[10:], [f"<b>{k}" for k in range(2000)]])
def test_names_of_every_kind_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arms: list[str]
) -> None:
    """As a page, in which nothing is markup but our own, a picture, JSON, and a table on a terminal."""
    where, page = tmp_path / "study.db", tmp_path / "page.html"
    about = {"measure": "stdout", "value": "a.b['<script>']\\"}
    eq.estimate(lambda arm, seed: seed % 7, 25 * len(arms), arms=arms, seed=1, store=where, precision=0.1, about=about)
    code, out, err = call(monkeypatch, capsys, where, "--html", page, "--png", tmp_path / "picture.png", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["means"].keys() == set(arms)
    text = page.read_text(encoding="utf-8")
    assert len(scripts(text)) == text.count("</script>") == 4
    for _, held in scripts(text)[:2]:
        assert "<" not in held
        json.loads(held)
    markup = re.sub(r"<script\b.*?</script>", "", text, flags=re.DOTALL)
    assert re.findall(r"<(?:script|b)\b", markup) == []
    places = shown(report.read(where).result.known)
    for arm in (arms[k] for k in places):
        assert (
            f'<th scope="row">{html.escape(arm).replace("&quot;", "&#34;").replace("&#x27;", "&#39;")}</th>' in markup
        )
    for drawing in drawings(markup)[:4]:
        # Long names are cut in a drawing, and some have a space of no width before them.
        words = [each.text or "" for each in ElementTree.fromstring(drawing).iter("{http://www.w3.org/2000/svg}text")]
        assert {arms[k][:8] for k in places} <= {word.removeprefix("\u200b")[:8] for word in words}
    code, out, err = call(monkeypatch, capsys, where)
    assert (code, err) == (0, "")
    assert "std. error" in out


def test_before_anything_is_known(tmp_path: Path) -> None:
    eq.open(tmp_path / "study.db", arms=["a", "b"], budget=50).close()
    text = report.page(report.view(report.read(tmp_path / "study.db")))
    assert "2 of 2 arms have fewer than 2 samples" in text
    assert re.search(r'id="card-precision"\s+hidden', text)
    assert re.search(r'id="card-drift"\s+hidden', text)
    assert "nan" not in re.sub(r"<script type=\"module\">.*?</script>", "", text, flags=re.DOTALL).lower()


def test_without_jinja_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: Any, **more: Any) -> Any:
        if name == "jinja2":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(
        ModuleNotFoundError, match=r"pages need Jinja2, which is not installed; .*pip install '\.\[plot\]'"
    ):
        environment()
