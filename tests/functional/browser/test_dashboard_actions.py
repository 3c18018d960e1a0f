"""What can be done on a study's page, and that its charts are drawn, redrawn, and break no rule of the browser."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

import equipoise as eq
from equipoise import report
from tests.functional.browser import looks
from tests.functional.browser.conftest import somebody
from tests.functional.browser.services import Running
from tests.functional.browser.test_dashboard import log_in
from tests.waiting import until

# Whatever the content security policy refuses is an error of the page.
NOTE_REFUSALS = """
window.refused = [];
document.addEventListener("securitypolicyviolation", ({ violatedDirective }) => refused.push(violatedDirective));
"""


def fill(service: Running, name: str, samples: int) -> None:
    """Answer some samples of a study."""
    tickets = service.call(f"/{name}/ask", {"count": samples})["tickets"]
    chance = random.Random(name)
    answers = [{"ticket": each["ticket"], "value": float(chance.random() < 0.4)} for each in tickets]
    service.call(f"/{name}/tell", {"answers": answers})


@pytest.fixture
def opened(service: Running, dashboard: Page, request: pytest.FixtureRequest) -> str:
    """The name of a new study, whose page is open and drawn."""
    name = str(request.node.name).removeprefix("test_").replace("_", "-")
    arms = ["one", "two", "<i>three</i>"]
    service.call("", {"name": name, "arms": arms, "budget": 400, "support": "binary", "poll": {}})
    fill(service, name, 200)
    dashboard.add_init_script(NOTE_REFUSALS)
    log_in(dashboard, service)
    dashboard.goto(f"{service.url}studies/{name}")
    expect(dashboard.locator("#chart-precision svg.marks")).to_be_visible()
    return name


def number(dashboard: Page) -> Any:
    """Find the number of samples on the page."""
    return dashboard.locator("#figures .value").nth(1)


def test_charts_are_redrawn_in_place(service: Running, dashboard: Page, opened: str) -> None:
    """Every chart keeps its drawing while samples arrive; a chart that another precision needs is drawn then."""
    expect(number(dashboard)).to_have_text("200 ")
    bars = dashboard.locator("#chart-allocation .mark-text.role-mark text")
    before = bars.all_text_contents()
    dashboard.locator("#chart-allocation svg").evaluate("svg => { window.same = svg }")
    fill(service, opened, 100)
    expect(number(dashboard)).to_have_text("300 ")
    until(lambda: bars.all_text_contents() != before, "the chart follows")
    counts = service.call(f"/{opened}/result")["counts"]
    until(lambda: bars.all_text_contents() == [str(each) for each in counts.values()], "the chart is right")
    assert dashboard.evaluate("document.querySelector('#chart-allocation svg') === window.same")
    legend = dashboard.locator("#chart-precision .role-legend")
    expect(legend).not_to_contain_text("target")
    service.call(f"/{opened}/extend", {"precision": 0.01})
    expect(legend).to_contain_text("target")
    assert dashboard.evaluate("refused") == []
    # A browser gives up where a proxy answers for the service: the page tries again, and says so meanwhile.
    dashboard.clock.install()
    dashboard.route("**/events", lambda route: route.fulfill(status=502, body="Bad Gateway"), times=1)
    dashboard.reload()
    expect(dashboard.locator("#connection")).to_be_visible()
    dashboard.clock.fast_forward(5000)
    expect(dashboard.locator("#connection")).not_to_be_visible()
    fill(service, opened, 50)
    expect(number(dashboard)).to_have_text("350 ")


def test_pause_extend_and_delete(service: Running, dashboard: Page, opened: str) -> None:
    dashboard.get_by_role("button", name="Pause").click()
    expect(dashboard.locator("#status")).to_have_text("Paused")
    assert service.call(f"/{opened}/progress")["status"] == "paused"
    dashboard.get_by_role("button", name="Resume").click()
    expect(dashboard.locator("#status")).to_have_text("Collecting")
    # By keyboard alone.
    dashboard.get_by_role("button", name="Extend…").press("Enter")
    form = dashboard.locator("#extend")
    form.get_by_label("Budget").fill("many")
    form.get_by_label("Budget").press("Enter")
    expect(form.get_by_role("alert")).to_have_text("the budget must be a number")
    form.get_by_label("Budget").fill("600")
    form.get_by_label("Precision").fill("2%")
    form.get_by_label("Precision").press("Enter")
    expect(form).not_to_be_visible()
    expect(dashboard.locator("#figures .note").nth(1)).to_contain_text("of 600")
    assert service.call(f"/{opened}/progress")["precision"] == "2%"
    # What was typed before, and what was wrong with it, is gone.
    dashboard.get_by_role("button", name="Extend…").click()
    form.get_by_label("Budget").fill("-1")
    form.get_by_role("button", name="Extend").click()
    expect(form.get_by_role("alert")).to_contain_text("budget must be a positive integer")
    form.get_by_role("button", name="Cancel").click()
    dashboard.get_by_role("button", name="Extend…").click()
    expect(form.get_by_label("Budget")).to_have_value("600")
    expect(form.locator(".error")).to_have_text("")
    form.get_by_role("button", name="Cancel").click()
    dashboard.locator("summary", has_text="…").last.click()
    dashboard.get_by_role("button", name="Delete…").click()
    form = dashboard.locator("#delete")
    form.get_by_label("Name").fill("something else")
    form.get_by_role("button", name="Delete").click()
    expect(form.get_by_role("alert")).to_contain_text("to confirm")
    form.get_by_label("Name").fill(opened)
    form.get_by_role("button", name="Delete").click()
    expect(dashboard.get_by_role("heading", name="Studies", exact=True)).to_be_visible()
    assert opened not in dashboard.content()


def test_keys_pages_and_files(service: Running, dashboard: Page, opened: str) -> None:
    allowed, form = dashboard.locator("#allowed"), dashboard.locator("#pages")
    expect(allowed).to_have_text("no page yet")
    dashboard.get_by_role("button", name="Change…").click()
    form.get_by_label("Origins").fill("shop.example")
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_role("alert")).to_contain_text("must be an origin such as https://example.org")
    form.get_by_label("Origins").fill("https://shop.example/menu\nhttp://127.0.0.1:9")
    form.get_by_role("button", name="Save").click()
    expect(form).not_to_be_visible()
    expect(allowed).to_have_text("https://shop.example, http://127.0.0.1:9")
    poll = service.call(f"/{opened}")["poll"]
    assert (poll["origins"], poll["answer"]) == (["https://shop.example", "http://127.0.0.1:9"], "yes-no")
    dashboard.locator("summary", has_text="Keys").click()
    keys = dashboard.locator("#keys")
    keys.get_by_label("Label").fill("<u>a reader</u>")
    keys.get_by_label("Role").select_option("read")
    keys.get_by_role("button", name="Make a key").click()
    expect(dashboard.locator("#secret")).to_contain_text("read key, shown only now: eqk_")
    rows = keys.locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.last).to_contain_text("<u>a reader</u>")
    dashboard.once("dialog", lambda dialog: dialog.accept())
    rows.last.get_by_role("button", name="Revoke").click()
    expect(rows).to_have_count(1)
    # The tag has the key that works.
    dashboard.once("dialog", lambda dialog: dialog.accept())
    rows.first.get_by_role("button", name="Rotate").click()
    expect(dashboard.locator("#secret")).to_contain_text("ask key, for web pages: eqk_")
    (public,) = service.call(f"/{opened}/keys")["keys"]
    expect(dashboard.locator("#snippet")).to_contain_text(f'data-key="{public["key"]}"')
    assert [key["role"] for key in service.call(f"/{opened}/keys")["keys"]] == ["ask"]
    dashboard.locator("summary", has_text="Download").click()
    with dashboard.expect_download() as download:
        dashboard.get_by_role("link", name="Log as CSV").click()
    assert download.value.suggested_filename == f"{opened}.csv"
    assert len(download.value.path().read_text().splitlines()) == 401
    dashboard.locator("summary", has_text="How far can").click()
    looks.check(dashboard, "keys")
    assert dashboard.evaluate("refused") == []


def test_the_page_follows_what_others_do(service: Running, dashboard: Page, opened: str) -> None:
    """A pause changes the buttons, a key that is revoked leaves the tag, and a study that is deleted is gone."""
    pause, resume = (dashboard.get_by_role("button", name=name, exact=True) for name in ("Pause", "Resume"))
    expect(resume).not_to_be_visible()
    service.call(f"/{opened}/pause", {})
    expect(dashboard.locator("#status")).to_have_text("Paused")
    expect(resume).to_be_visible()
    expect(pause).not_to_be_visible()
    keys, snippet = dashboard.locator("#keys"), dashboard.locator("#snippet")
    dashboard.locator("summary", has_text="Keys").click()
    dashboard.once("dialog", lambda dialog: dialog.accept())
    keys.get_by_role("button", name="Revoke").click()
    expect(snippet).to_contain_text('data-key="make an ask key below"')
    keys.get_by_label("Role").select_option("ask")
    keys.get_by_role("button", name="Make a key").click()
    expect(snippet).to_contain_text('data-key="eqk_')
    (public,) = service.call(f"/{opened}/keys")["keys"]
    expect(snippet).to_contain_text(f'data-key="{public["key"]}"')
    service.remove(opened)
    expect(dashboard.locator("#connection")).to_have_text("This study was deleted.")


def test_the_list_follows_what_others_do(service: Running, dashboard: Page) -> None:
    log_in(dashboard, service)
    dashboard.clock.install()
    dashboard.goto(service.url)
    card = dashboard.locator("[data-study='list-follows']")
    expect(card).to_have_count(0)
    service.call("", {"name": "list-follows", "arms": 2, "support": "binary"})
    dashboard.clock.fast_forward(5000)
    expect(card).to_be_visible()
    fill(service, "list-follows", 30)
    dashboard.clock.fast_forward(5000)
    expect(card.locator("[data-part=samples]")).to_have_text("30")
    service.remove("list-follows")
    dashboard.clock.fast_forward(5000)
    expect(card).to_have_count(0)


def test_a_report_is_read_anywhere(browser: Browser, page: Page, tmp_path: Path) -> None:
    """From a file, with and without JavaScript, without a request for anything else."""
    chance = random.Random(1)
    data = {"calm": [chance.gauss(5, 1) for _ in range(60)], "rising": [chance.gauss(i / 5, 1) for i in range(60)]}
    eq.estimate(data, store=tmp_path / "study.db")
    file = tmp_path / "report.html"
    file.write_text(report.page(report.view(report.read(tmp_path / "study.db"))), encoding="utf-8")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    for name in ("estimates", "allocation", "precision", "drift"):
        expect(page.locator(f"#chart-{name} svg.marks")).to_be_visible()
    looks.check(page, "report")
    assert asked == [file.as_uri()]
    with browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 780}) as without:
        quiet = without.new_page()
        quiet.goto(file.as_uri())
        for name in ("estimates", "allocation", "precision", "drift"):
            expect(quiet.locator(f"#chart-{name} svg.narrow")).to_be_visible()
            expect(quiet.locator(f"#chart-{name} svg.wide")).not_to_be_visible()
        quiet.screenshot(path=looks.FOLDER / "report-without-javascript.png", full_page=True)
    with somebody(browser) as offline:
        offline.set_offline(True)
        page = offline.new_page()
        page.goto(file.as_uri())
        expect(page.locator("#chart-drift svg.marks")).to_be_visible()
