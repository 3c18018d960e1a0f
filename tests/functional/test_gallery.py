"""
The gallery: every script runs, what it says it gains is gained, and its page has its picture and what it prints.

All scripts are seeded, and a script prints its claim as "this instead of that". The numbers and words of a picture are
compared with those of the one in docs/gallery, which `make gallery` draws; places are not, as fonts move them.
"""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(path for path in (ROOT / "examples" / "gallery").glob("*.py") if path.stem != "picture")
CLAIM = re.compile(r"±?([\d,.]*\d)\D{0,8} instead of ±?([\d,.]*\d)")
# The most that each "this" may be of its "that": a fifth less, unless the page says more.
MOST = {"options": [0.05, 0.75]}


def run(script: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(script), str(folder)])
    monkeypatch.setattr(sys, "path", [str(script.parent), *sys.path])
    runpy.run_path(str(script), run_name="__main__")


def page(script: Path) -> str:
    return (ROOT / "docs" / "gallery" / f"{script.stem}.md").read_text(encoding="utf-8")


def words(picture: Path) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]+)</text>", picture.read_text(encoding="utf-8"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_gains_what_it_claims_and_draws_the_picture_of_its_page(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(script, tmp_path, monkeypatch)
    printed = capsys.readouterr().out
    claims = CLAIM.findall(printed)
    for claim, most in zip(claims, MOST.get(script.stem, [0.8]), strict=True):
        ours, theirs = (float(number.replace(",", "")) for number in claim)
        assert 0 < ours < most * theirs, printed
    drawn = tmp_path / f"{script.stem}.svg"
    assert drawn.stat().st_size < 300_000
    shown = re.findall(r"```text\n(.*?)\n```", page(script), re.DOTALL)
    assert len(shown) == 1
    for part in shown[0].split("...\n"):
        assert part.strip("\n") in printed
    assert words(drawn) == words(ROOT / "docs" / "gallery" / drawn.name), "draw the pictures again: make gallery"
    if script.stem == "audit":  # the two groups whose rates are more than twice that of the reference
        assert "26 to 40, city: 18 to 25, country and over 60, country. " in printed


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_has_a_page_with_its_picture_and_its_command(script: Path) -> None:
    text = page(script)
    assert f"]({script.stem}.svg)" in text
    assert f"{{literalinclude}} ../../examples/gallery/{script.name}" in text
    assert f"python examples/gallery/{script.name} docs/gallery" in text
    assert f":link: {script.stem}\n" in (ROOT / "docs" / "gallery" / "index.md").read_text(encoding="utf-8")


def test_the_animation_stands_still_for_those_who_want_less_motion() -> None:
    drawn = (ROOT / "docs" / "gallery" / "visitors.svg").read_text(encoding="utf-8")
    assert "@media (prefers-reduced-motion: reduce) { * { animation: none !important } }" in drawn
    assert drawn.count("h0") == 2 * 3000 + 2  # a dot for each visitor of either poll, and two in the legend
