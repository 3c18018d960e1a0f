"""The poll on the example page at two widths, light and dark: pictures in `build/screenshots`, and no fault by axe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.functional.browser import looks
from tests.functional.browser.scripted import Scripted, scripted, tag

EXAMPLE = Path(__file__).parents[3] / "examples" / "poll.html"
OF_THE_EXAMPLE = (
    '<script async src="http://127.0.0.1:8000/poll.js" data-study="menu" data-key="THE-PUBLIC-KEY"></script>'
)

# A cup on a table.
PICTURE = """data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 140">
<rect width="320" height="140" fill="%23d8c3a5"/><rect y="104" width="320" height="36" fill="%238e8d8a"/>
<path d="M120 50h70v30a25 25 0 0 1-25 25h-20a25 25 0 0 1-25-25z" fill="white"/>
<path d="M190 58a14 14 0 1 1 0 28" fill="none" stroke="white" stroke-width="7"/></svg>"""

COFFEE = {"title": "Cardamom coffee", "picture": PICTURE}
SOUP = {"title": "Nettle soup", "text": "With a poached egg and rye bread, served until three in the afternoon."}

KINDS: dict[str, dict[str, Any]] = {
    "yes-no": {"answer": "yes-no", "show": COFFEE},
    "scale": {"answer": "1-5", "question": "How much would you like to eat this?", "show": SOUP},
    "number": {"answer": "number", "question": "What would you pay for this, in euros?", "show": SOUP | COFFEE},
}


@pytest.fixture
def service(context: BrowserContext, page: Page) -> Scripted:
    return scripted(context, page)


def example(more: str = "") -> str:
    """Return the example page, with the tag of the scripted service."""
    html = EXAMPLE.read_text(encoding="utf-8")
    assert OF_THE_EXAMPLE in html
    return html.replace(OF_THE_EXAMPLE, tag(more))


@pytest.mark.parametrize("kind", KINDS)
def test_the_question_looks_right(service: Scripted, kind: str) -> None:
    service.question = KINDS[kind]
    service.visit(example('data-low="Not at all" data-high="Very much"'))
    expect(service.card.get_by_role("button", name="Rather not say")).to_be_visible()
    looks.check(service.page, f"poll-{kind}")


def test_the_thanks_look_right(service: Scripted) -> None:
    service.question = KINDS["yes-no"]
    service.visit(example())
    service.click("Yes")
    expect(service.card.get_by_role("status")).to_have_text("Thank you.")
    looks.check(service.page, "poll-thanks")


def test_the_focus_is_visible(service: Scripted) -> None:
    service.question = KINDS["yes-no"]
    service.visit(example())
    no = service.card.get_by_role("button", name="No", exact=True)
    expect(no).to_be_visible()
    service.page.keyboard.press("Tab")
    service.page.keyboard.press("Tab")
    assert no.evaluate("element => getComputedStyle(element).outline") == "rgb(47, 95, 208) solid 2px"
    looks.check(service.page, "poll-focus")


def test_axe_sees_the_card(service: Scripted) -> None:
    """The check above can fail: a card that nobody can read is a serious fault."""
    service.visit(example())
    expect(service.card.get_by_role("button", name="No", exact=True)).to_be_visible()
    service.card.evaluate("host => { host.shadowRoot.querySelector('.question').style.color = '#eee' }")
    assert [fault.split(":")[0] for fault in looks.faults(service.page)] == ["color-contrast"]
