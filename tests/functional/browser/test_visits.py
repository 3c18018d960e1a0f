"""Visitors of a page of another origin answer the poll of a real service, and every answer is counted once."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.functional.browser.scripted import TIMERS_AT_ONCE
from tests.functional.browser.services import Running, Site, answer, card
from tests.waiting import until

TITLES = {"a": "Cardamom coffee", "b": "Nettle soup", "c": "<b>Rhubarb</b> & 'friends'"}
POLL = {"question": "Would you order this?", "arms": {arm: {"title": title} for arm, title in TITLES.items()}}


def create(service: Running, site: Site, name: str, **poll: Any) -> None:
    """Create a study by the API, and embed its poll in the site."""
    body = {"name": name, "arms": list(TITLES), "budget": 1000, "poll": POLL | {"origins": [site.origin]} | poll}
    site.embed(service, name, service.call("", body)["keys"][0]["key"])


def visit_in_vain(page: Page, site: Site) -> None:
    """Visit the site where nothing is asked: the poll takes its place away again after the service has answered."""
    page.add_init_script("""new MutationObserver((changes) => {
      for (const { removedNodes: [node] } of changes) if (node?.localName === "equipoise-poll") window.left = true;
    }).observe(document, { childList: true, subtree: true })""")
    page.goto(site.url)
    page.wait_for_function("window.left")
    expect(card(page)).to_have_count(0)


def test_an_answer_whose_reply_was_lost_is_counted_once(service: Running, site: Site, page: Page) -> None:
    create(service, site, "lost")
    tells = 0

    def lose_the_first(route: Route) -> None:
        nonlocal tells
        tells += route.request.method == "POST"
        reply = route.fetch()
        if tells == 1:
            route.abort()
        else:
            route.fulfill(response=reply)

    page.route(service.url + "**/tell", lose_the_first)
    page.add_init_script(TIMERS_AT_ONCE)
    page.goto(site.url)
    answer(page, "Yes")
    assert tells == 2
    assert service.call("/lost/result")["samples"] == 1


def test_a_visitor_may_leave_at_once(service: Running, site: Site, page: Page) -> None:
    create(service, site, "hurried")
    page.goto(site.url)
    card(page).get_by_role("button", name="Yes").evaluate("yes => { yes.click(); location.href = 'about:blank' }")
    until(lambda: service.call("/hurried/result")["samples"] == 1, "the answer is counted")


def test_a_respondent_is_known_to_the_service(service: Running, site: Site, page: Page) -> None:
    """The same ticket before the answer; after it none, even if the browser has forgotten about the answer."""
    create(service, site, "known")
    page.goto(site.url)
    title = card(page).locator(".title").inner_text()
    respondent = page.evaluate("Object.entries(localStorage)[0]")
    page.goto(site.url)
    assert card(page).locator(".title").inner_text() == title
    answer(page, "No")
    page.evaluate("([slot, record]) => localStorage.setItem(slot, record)", respondent)
    visit_in_vain(page, site)
    assert service.call("/known/result")["samples"] == 1
    assert service.call("/known/progress")["in_flight"] == 0


@pytest.mark.parametrize(
    ("header", "signal"),
    [("DNT", "'doNotTrack', { value: '1' }"), ("Sec-GPC", "'globalPrivacyControl', { value: true }")],
)
def test_do_not_track_is_respected_by_the_study(
    service: Running, site: Site, context: BrowserContext, page: Page, header: str, signal: str
) -> None:
    create(service, site, f"respects-{header}", respect_dnt=True)
    context.set_extra_http_headers({header: "1"})
    page.add_init_script(f"Object.defineProperty(navigator, {signal})")
    visit_in_vain(page, site)
    assert page.evaluate("localStorage.length") == 0
    assert service.call(f"/respects-{header}/progress")["in_flight"] == 0


def test_do_not_track_may_be_disregarded_by_the_study(
    service: Running, site: Site, context: BrowserContext, page: Page
) -> None:
    create(service, site, "disregards", respect_dnt=False)
    context.set_extra_http_headers({"DNT": "1"})
    page.goto(site.url)
    answer(page, "Yes")


def test_a_site_that_the_study_does_not_name_gets_nothing(service: Running, site: Site, page: Page) -> None:
    create(service, site, "elsewhere", origins=["https://elsewhere.example"])
    visit_in_vain(page, site)
    assert service.call("/elsewhere/progress")["in_flight"] == 0


def test_a_paused_study_asks_nobody_and_takes_late_answers(service: Running, site: Site, page: Page) -> None:
    create(service, site, "paused")
    page.goto(site.url)
    expect(card(page)).to_contain_text("Would you order this?")
    service.call("/paused/pause", {})
    answer(page, "Yes")
    assert service.call("/paused/result")["samples"] == 1
    page.evaluate("localStorage.clear()")
    visit_in_vain(page, site)
