"""A study from the dashboard's form to its results: visitors click in one tab, the numbers move in another."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from playwright.sync_api import Page, expect

from tests.functional.browser import looks
from tests.functional.browser.scripted import host_page
from tests.functional.browser.services import TOKEN, Running, Site, answer
from tests.waiting import until

# Also names of arms, since the form has one field for both.
TITLES = ("Cardamom coffee", "Nettle soup", "<b>Rhubarb</b> & 'friends'")


def log_in(dashboard: Page, service: Running) -> None:
    """Log in as the administrator."""
    dashboard.goto(service.url)
    dashboard.get_by_label("Token").fill(TOKEN)
    dashboard.get_by_role("button", name="Log in").click()
    expect(dashboard.get_by_role("heading", name="Studies", exact=True)).to_be_visible()


def create(dashboard: Page, service: Running, site: Site) -> None:
    """Create a study with the form, which leads to its page."""
    dashboard.goto(service.url + "new")
    dashboard.get_by_label("Title").fill("Spring menu")
    dashboard.get_by_label("Question").fill("Would you order this?")
    for place, title in enumerate(TITLES):
        dashboard.locator("#arms").get_by_label("Name").nth(place).fill(title)
    dashboard.get_by_label("Budget").fill("500")
    dashboard.get_by_label("Precision").fill("0.1")  # not reached by 200 visits
    dashboard.get_by_label("Pages it may be on").fill(site.origin)
    dashboard.get_by_role("button", name="Create", exact=True).click()
    expect(dashboard.get_by_role("heading", name="Spring menu")).to_be_visible()


def rows(dashboard: Page) -> list[list[str]]:
    """Return the cells of the table of arms."""
    found: list[list[str]] = dashboard.locator("#table tbody tr").evaluate_all(
        "rows => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    return found


def visit(page: Page, site: Site, chance: random.Random, visits: int) -> Counter[tuple[str, str]]:
    """Return what new visitors clicked, by title and button; a tenth would rather not say."""
    clicks = Counter[tuple[str, str]]()
    for _ in range(visits):
        page.goto(site.url, wait_until="commit")
        button = chance.choices(["Yes", "No", "Rather not say"], [0.6, 0.3, 0.1])[0]
        clicks[answer(page, button), button] += 1
    return clicks


def test_200_visits_are_counted_as_they_were_clicked(service: Running, site: Site, dashboard: Page, page: Page) -> None:
    """The last 20 while somebody looks at the study, whose page follows without being loaded again."""
    log_in(dashboard, service)
    create(dashboard, service, site)
    snippet = dashboard.locator("#snippet")
    expect(snippet).to_contain_text(f'src="{service.url}poll.js"')  # once the script has filled in where it is
    site.html = host_page(snippet.inner_text())
    dashboard.goto("about:blank")

    page.add_init_script("localStorage.clear()")
    page.emulate_media(reduced_motion="reduce")
    chance = random.Random(1)
    clicks = visit(page, site, chance, 180)
    dashboard.goto(service.url + "studies/spring-menu")
    before = rows(dashboard)
    clicks += visit(page, site, chance, 20)

    result = service.call("/spring-menu/result")
    assert result["samples"] + sum(result["declined"].values()) == 200
    for title in TITLES:
        yes, no, declined = (clicks[title, button] for button in ("Yes", "No", "Rather not say"))
        assert yes + no > 20
        assert result["counts"][title] == yes + no
        assert result["means"][title] == pytest.approx(yes / (yes + no), rel=1e-12)
        assert result["declined"][title] == declined

    table = service.call("/spring-menu/view")["table"]
    samples = table["titles"].index("Samples")
    assert [int(row["cells"][samples]) for row in table["rows"]] == [result["counts"][title] for title in TITLES]
    shown = [[*row["cells"], row["status"]] for row in table["rows"]]
    until(lambda: rows(dashboard) == shown, "the page shows what the service knows")
    assert shown != before
    looks.check(dashboard, "study")


def test_the_other_pages_look_right(service: Running, dashboard: Page) -> None:
    dashboard.goto(service.url)
    looks.check(dashboard, "login")
    log_in(dashboard, service)
    service.call("", {"name": "summer-menu", "title": "Summer menu", "arms": list(TITLES), "budget": 500})
    dashboard.reload()
    expect(dashboard.get_by_role("heading", name="Summer menu")).to_be_visible()
    looks.check(dashboard, "list")
    dashboard.goto(service.url + "new")
    looks.check(dashboard, "new")
