"""A real browser, one page per test, and a page that fails its test where it raises an error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.functional.browser.chromium import launch
from tests.functional.browser.services import Running, Site, hosting, serving
from tests.waiting import HANG

# Milliseconds, and only a hang takes that long.
PATIENCE = 1000 * HANG

expect.set_options(timeout=PATIENCE)

# Closed shadow roots are closed to Playwright and axe as well. `test_poll.py` checks that the poll's is closed.
OPEN_SHADOW_ROOTS = """
const attach = Element.prototype.attachShadow;
Element.prototype.attachShadow = function (options) { return attach.call(this, { ...options, mode: "open" }); };
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for the tests of one module: Playwright holds the thread's event loop, which other modules need."""
    with sync_playwright() as playwright:
        started = launch(playwright)
        yield started
        started.close()


@contextmanager
def somebody(browser: Browser) -> Iterator[BrowserContext]:
    """Start the browser of somebody whom no page knows."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(PATIENCE)
    yield context
    context.close()


@contextmanager
def tab(context: BrowserContext) -> Iterator[Page]:
    """Open a tab in which nothing may go wrong unnoticed, with shadow roots that the test can look into."""
    context.add_init_script(OPEN_SHADOW_ROOTS)
    errors: list[str] = []
    context.on("weberror", lambda error: errors.append(str(error.error)))
    yield context.new_page()
    assert errors == []


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A visitor."""
    with somebody(browser) as visitor:
        yield visitor


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A tab of the visitor."""
    with tab(context) as opened:
        yield opened


@pytest.fixture
def dashboard(browser: Browser) -> Iterator[Page]:
    """A tab of the administrator, who is not the visitor."""
    with somebody(browser) as administrator, tab(administrator) as opened:
        yield opened


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service."""
    with serving(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """The site of somebody else."""
    with hosting() as hosted:
        yield hosted
