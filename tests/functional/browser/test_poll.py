"""`poll.js` in a page: what it shows, sends and remembers, and that nothing on either side breaks the other."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.functional.browser.scripted import POLL_JS, SERVICE, SHOP, TIMERS_AT_ONCE, Scripted, host_page, scripted, tag


@pytest.fixture
def service(context: BrowserContext, page: Page) -> Scripted:
    return scripted(context, page)


def told(service: Scripted) -> list[Any]:
    """Return the answers that the service was told, in order."""
    return [answer for body in service.tells for answer in body["answers"]]


def delivered(service: Scripted) -> bool:
    return service.remembered() == [{"done": True}]


def test_it_weighs_under_6_kilobytes() -> None:
    assert len(gzip.compress(POLL_JS.read_bytes())) < 6000


def test_it_never_parses_html() -> None:
    source = POLL_JS.read_text(encoding="utf-8")
    assert not any(
        word in source for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(")
    )


# ---- What it asks and sends.


@pytest.mark.parametrize(
    ("button", "answer"), [("Yes", {"value": 1}), ("No", {"value": 0}), ("Rather not say", {"declined": True})]
)
def test_a_visitor_answers_yes_no_or_not_at_all(service: Scripted, button: str, answer: dict[str, object]) -> None:
    service.visit()
    expect(service.card).to_contain_text("Cardamom coffee")
    expect(service.card).to_contain_text("Would you order this?")
    service.click(button)
    expect(service.card.get_by_role("status")).to_have_text("Thank you.")
    service.until(lambda: delivered(service), "the answer is delivered")
    assert told(service) == [{"ticket": "t1", **answer}]
    assert service.headers["authorization"] == "Bearer public"
    assert service.page.context.cookies() == []


def test_a_visitor_answers_on_a_scale(service: Scripted) -> None:
    service.question = {"answer": "1-5"}
    service.visit(host_page(tag('data-low="not at all" data-high="very much"')))
    expect(service.card).to_contain_text("not at all")
    expect(service.card.get_by_role("button")).to_have_text(["1", "2", "3", "4", "5", "Rather not say"])
    expect(service.card.get_by_role("button", name="1", exact=True)).to_have_accessible_description("not at all")
    service.click("4")
    service.until(lambda: delivered(service), "the answer is delivered")
    assert told(service) == [{"ticket": "t1", "value": 4}]


def test_a_visitor_answers_with_a_number_in_the_support(service: Scripted) -> None:
    service.question = {"answer": "number", "support": [0, 10]}
    service.visit()
    field = service.card.get_by_role("spinbutton", name="Cardamom coffee Would you order this?")
    for refused in ("", "11", "-1"):
        field.fill(refused)
        service.click("Send")
    assert service.tells == []
    field.fill("2.5")
    field.press("Enter")
    service.until(lambda: delivered(service), "the answer is delivered")
    assert told(service) == [{"ticket": "t1", "value": 2.5}]


def test_the_page_chooses_the_words(service: Scripted) -> None:
    service.visit(host_page(tag('data-yes="Ja" data-no="Nein" data-skip="Keine Angabe" data-thanks="Danke!"')))
    expect(service.card.get_by_role("button")).to_have_text(["Ja", "Nein", "Keine Angabe"])
    service.click("Nein")
    expect(service.card.get_by_role("status")).to_have_text("Danke!")


def test_it_appears_where_the_page_says(service: Scripted) -> None:
    """Even if the script runs before the page is parsed, as it does without `async`."""
    service.visit(host_page('<div id="here"></div>', head=tag('data-target="#here"').replace("async ", "")))
    expect(service.page.locator("#here equipoise-poll")).to_be_visible()


def test_from_the_head_it_appears_at_the_end(service: Scripted) -> None:
    service.visit(host_page("<p>Menu</p>", head=tag()))
    expect(service.page.locator("body > equipoise-poll:last-child")).to_be_visible()


def test_a_visitor_who_does_not_get_there_takes_no_ticket(service: Scripted) -> None:
    service.visit(host_page(f'<p style="height: 5000px">Menu</p>{tag()}'))
    service.page.evaluate("new Promise(requestAnimationFrame)")
    assert service.asks == []
    service.page.mouse.wheel(0, 10_000)
    expect(service.card).to_contain_text("Cardamom coffee")
    assert len(service.asks) == 1


# ---- The page's own element.


CUSTOM = """
<p id="own"></p>
<script>
  function showOwn(poll) {
    window.poll = poll;
    poll.element.textContent = `${poll.question} ${poll.arm}: ${poll.title}`;
  }
</script>
"""


def test_a_page_shows_the_question_itself(service: Scripted) -> None:
    service.question = {"answer": "custom"}
    service.visit(host_page(CUSTOM + tag('data-callback="showOwn" data-target="#own"')))
    expect(service.page.locator("#own")).to_have_text("Would you order this? coffee: Cardamom coffee")
    expect(service.card).to_have_count(0)
    for refused in ("'2'", "NaN", "undefined", "null"):
        assert "must be a finite number" in service.page.evaluate(
            f"() => {{ try {{ poll.answer({refused}) }} catch (error) {{ return error.message }} }}"
        )
    assert service.page.evaluate("poll.answer(0.25)") is True
    assert service.page.evaluate("poll.decline()") is True
    assert told(service) == [{"ticket": "t1", "value": 0.25}]


@pytest.mark.parametrize("outcome", ["refused", "late"])
def test_a_page_is_told_that_its_answer_was_refused(service: Scripted, outcome: str) -> None:
    service.outcome = outcome
    service.visit(host_page(CUSTOM + tag('data-callback="showOwn" data-target="#own"')))
    service.page.wait_for_function("window.poll")
    assert service.page.evaluate("poll.answer(99)") is False
    assert delivered(service)


MISTAKES = {
    'data-callback="missing"': 'data-callback="missing" is not a function',
    'data-target="#missing"': 'data-target="#missing" matches nothing',
    'data-target="###"': "not a valid selector",
    "": "needs data-callback, as its answers are custom",
}


def test_a_mistake_in_the_tag_is_named_in_the_console(service: Scripted) -> None:
    service.question = {"answer": "custom"}
    for more, problem in MISTAKES.items():
        with service.page.expect_console_message(lambda message: message.type == "warning") as warning:
            service.visit(host_page(tag(more)))
        assert problem in warning.value.text
        expect(service.card).to_have_count(0)


def test_why_there_is_no_question_is_said_in_the_console(service: Scripted) -> None:
    service.ask = [409]
    with service.page.expect_console_message(lambda message: message.type == "warning") as warning:
        service.visit()
    assert "equipoise: this is refused" in warning.value.text
    expect(service.card).to_have_count(0)


def test_an_error_of_the_callback_stays_in_the_console(service: Scripted) -> None:
    with service.page.expect_console_message(lambda message: "my own mistake" in message.text):
        service.visit(
            host_page("<script>function own() { throw 'my own mistake' }</script>" + tag('data-callback="own"'))
        )


# ---- Nobody is asked twice, and no answer is lost or counted twice.


def test_nobody_is_asked_twice(service: Scripted) -> None:
    service.visit()
    service.click("Yes")
    service.until(lambda: delivered(service), "the answer is delivered")
    service.visit()
    expect(service.card).to_have_count(0)
    assert (len(service.asks), len(service.tells)) == (1, 1)


def test_a_visitor_who_returns_is_the_same_respondent(service: Scripted) -> None:
    service.visit()
    expect(service.card).to_contain_text("Cardamom coffee")
    service.visit()
    expect(service.card).to_contain_text("Cardamom coffee")
    first, second = (body["respondent"] for body in service.asks)
    assert first == second
    assert len(first) == 24


def test_two_visitors_are_two_respondents(service: Scripted) -> None:
    service.visit()
    expect(service.card).to_contain_text("Cardamom coffee")
    service.forget_visitor()
    service.visit()
    expect(service.card).to_contain_text("Cardamom coffee")
    first, second = (body["respondent"] for body in service.asks)
    assert first != second


def test_a_double_click_is_one_answer(service: Scripted) -> None:
    service.visit()
    service.card.get_by_role("button", name="Yes").dispatch_event("click")
    service.card.evaluate("host => host.shadowRoot.querySelector('button')?.click()")
    service.until(lambda: delivered(service), "the answer is delivered")
    assert len(service.tells) == 1


def test_two_tabs_are_one_answer(service: Scripted, context: BrowserContext) -> None:
    service.visit()
    other = Scripted(context.new_page())
    other.visit()
    service.click("Yes")
    service.until(lambda: delivered(service), "the answer is delivered")
    other.click("No")
    expect(other.card.get_by_role("status")).to_have_text("Thank you.")
    other.until(lambda: delivered(other), "nothing is pending")
    assert told(service) == [{"ticket": "t1", "value": 1}]


def test_an_answer_outlives_its_page(service: Scripted) -> None:
    """The browser is told to finish the request when the visitor leaves; `test_visits.py` lets a visitor leave."""
    service.page.add_init_script("""
      const { fetch } = window;
      window.kept = [];
      window.fetch = (url, options) => { kept.push(Boolean(options.keepalive)); return fetch(url, options); };""")
    service.visit()
    service.click("Yes")
    service.until(lambda: delivered(service), "the answer is delivered")
    assert service.page.evaluate("kept") == [False, True]


def test_an_answer_in_another_tab_counts_while_this_one_asks(service: Scripted) -> None:
    service.page.add_init_script("""
      const { fetch } = window;
      window.fetch = async (...request) => {
        const reply = await fetch(...request);
        for (const slot of Object.keys(localStorage)) localStorage.setItem(slot, '{"done":true}');
        return reply;
      };""")
    service.visit()
    service.until(lambda: service.asks, "the service is asked")
    expect(service.card).to_have_count(0)
    assert delivered(service)


@pytest.mark.parametrize("failures", [(0, 503, 429), (401, 403, 500)])
def test_an_answer_is_sent_again_with_the_same_ticket(service: Scripted, failures: tuple[int, ...]) -> None:
    service.tell = [*failures, 200]
    service.page.add_init_script(TIMERS_AT_ONCE)
    service.visit()
    service.click("Yes")
    service.until(lambda: delivered(service), "the answer is delivered")
    assert service.page.evaluate("timers") == [2_000, 10_000, 60_000]
    assert told(service) == 4 * [{"ticket": "t1", "value": 1}]


def test_a_refused_answer_is_not_sent_again(service: Scripted) -> None:
    refusals = service.tell = [400, 404, 409, 422]
    for sent in range(1, 1 + len(refusals)):
        service.visit()
        service.click("Yes")
        service.until(lambda: delivered(service), "the answer is dropped")
        service.visit()
        expect(service.card).to_have_count(0)
        assert len(service.tells) == sent
        service.forget_visitor()


def test_a_pending_answer_is_sent_on_the_next_visit(service: Scripted) -> None:
    service.tell = [0]
    service.visit()
    service.click("No")
    service.until(lambda: len(service.tells) == 1, "the answer is sent")
    service.tell = [200]
    service.visit()
    service.until(lambda: delivered(service), "the answer is delivered")
    assert told(service) == 2 * [{"ticket": "t1", "value": 0}]
    assert len(service.asks) == 1


# ---- Privacy.


@pytest.mark.parametrize("signal", ["'doNotTrack', { value: '1' }", "'globalPrivacyControl', { value: true }"])
def test_do_not_track_leaves_no_trace(service: Scripted, signal: str) -> None:
    service.page.add_init_script(f"Object.defineProperty(navigator, {signal})")
    service.ask = [204]
    service.visit()
    service.until(lambda: service.asks, "the service is asked")
    expect(service.card).to_have_count(0)
    assert service.remembered() == []


def test_a_study_may_ask_in_spite_of_do_not_track(service: Scripted) -> None:
    service.page.add_init_script("Object.defineProperty(navigator, 'doNotTrack', { value: '1' })")
    service.visit()
    service.click("Yes")
    service.until(lambda: delivered(service), "the answer is delivered")


def test_whoever_cannot_be_remembered_is_not_asked(service: Scripted) -> None:
    service.page.add_init_script("Storage.prototype.setItem = () => { throw new DOMException('full') }")
    service.visit()
    expect(service.card).to_have_count(0)
    assert service.asks == []


# ---- The service is away.


def test_without_a_question_the_page_stays_as_it_is(service: Scripted) -> None:
    statuses = service.ask = [204, 401, 403, 404, 429, 500, 503, 0]
    messages: list[str] = []
    service.page.on("console", lambda message: messages.append(message.text))
    for visits in range(1, 1 + len(statuses)):
        service.visit(host_page(f"<p>Menu</p>{tag()}"))
        service.until(lambda n=visits: len(service.asks) == n, "the service is asked")  # type: ignore[misc]
        expect(service.card).to_have_count(0)
        assert service.page.locator("main").inner_text() == "Menu"
    assert [text for text in messages if text.startswith("equipoise")] == ["equipoise: TypeError: Failed to fetch"]


def test_a_reply_that_makes_no_sense_is_ignored(service: Scripted) -> None:
    service.question = {"tickets": None}
    service.visit()
    service.until(lambda: service.asks, "the service is asked")
    expect(service.card).to_have_count(0)


def test_without_the_script_the_page_stays_as_it_is(service: Scripted, context: BrowserContext) -> None:
    context.unroute(SERVICE + "poll.js")
    context.route(SERVICE + "poll.js", lambda route: route.abort())
    service.visit(host_page(f"<p>Menu</p>{tag()}"))
    assert service.page.locator("main").inner_text() == "Menu"


# ---- The card and the page leave each other alone.


HOSTILE = '<img src=x onerror="window.hacked = true"><script>window.hacked = true</script>\'"`${1}'


def test_what_a_study_says_is_shown_as_text(service: Scripted) -> None:
    service.question = {
        "question": HOSTILE,
        "show": {"title": HOSTILE, "text": HOSTILE, "picture": "javascript:window.hacked = true"},
    }
    service.visit()
    expect(service.card.get_by_text(HOSTILE, exact=True)).to_have_count(3)
    service.click("Yes")
    assert service.page.evaluate("window.hacked") is None


HOST_STYLES = """
html, body, main { display: block !important }
equipoise-poll { display: none !important; visibility: hidden !important; --ink: red !important }
main * { display: none !important; opacity: 0 !important; color: red !important; font: 3px serif !important }
* { --card: red !important; --accent: red !important; filter: blur(9px) !important; position: fixed !important }
.card, .row, button, p { display: none !important }
"""

LOOKS = """element => {
  const { color, backgroundColor, fontSize } = getComputedStyle(element);
  return [color, backgroundColor, fontSize];
}"""
USUAL_LOOKS = ["rgb(255, 255, 255)", "rgb(47, 95, 208)", "15px"]


def test_no_style_of_the_page_reaches_the_card(service: Scripted) -> None:
    service.visit(host_page(tag(), head=f"<style>{HOST_STYLES}</style>"))
    yes = service.card.get_by_role("button", name="Yes")
    expect(yes).to_be_visible()
    assert yes.evaluate(LOOKS) == USUAL_LOOKS
    host = service.card.evaluate(
        "host => { const s = getComputedStyle(host); return [s.opacity, s.filter, s.position] }"
    )
    assert host == ["1", "none", "static"]
    yes.click()
    expect(service.card.get_by_role("status")).to_have_text("Thank you.")


def test_no_style_of_the_card_reaches_the_page(service: Scripted) -> None:
    looks = "[...document.querySelectorAll('.own')].map((element) => JSON.stringify(getComputedStyle(element)))"
    body = '<p class="own card title">Menu</p><button class="own main">Order</button><input class="own">'
    service.visit(host_page(body))
    before = service.page.evaluate(looks)
    service.visit(host_page(body + tag()))
    expect(service.card).to_contain_text("Cardamom coffee")
    assert service.page.evaluate(looks) == before
    assert len(before) == 3


@pytest.mark.parametrize("allowed", [SERVICE, "'nonce-n1' 'strict-dynamic'"])
def test_it_works_under_the_strictest_policy(service: Scripted, allowed: str) -> None:
    """No style, inline script or HTML is allowed for the page: only the script and requests to the service."""
    policy = f"default-src 'none'; script-src {allowed}; connect-src {SERVICE}; require-trusted-types-for 'script'"
    problems: list[str] = []
    service.page.on("console", lambda message: problems.append(message.text))
    service.visit(host_page(tag('nonce="n1"')), headers={"Content-Security-Policy": policy})
    yes = service.card.get_by_role("button", name="Yes")
    assert yes.evaluate(LOOKS) == USUAL_LOOKS
    yes.click()
    service.until(lambda: delivered(service), "the answer is delivered")
    assert problems == []


def test_a_picture_that_does_not_load_is_left_out(service: Scripted) -> None:
    service.question = {"show": {"title": "Coffee", "picture": "/missing.png"}}
    service.page.route(SHOP + "missing.png", lambda route: route.fulfill(status=404))
    service.visit()
    expect(service.card).to_contain_text("Coffee")
    expect(service.card.locator("img")).to_have_count(0)


# ---- Keyboard and screen reader.


def test_it_is_a_named_group_and_a_status(service: Scripted) -> None:
    service.visit()
    group = service.card.get_by_role("group", name="Cardamom coffee Would you order this?")
    expect(group.get_by_role("button")).to_have_text(["Yes", "No", "Rather not say"])
    expect(service.card.get_by_role("status")).to_have_text("")


def test_its_root_is_closed_and_it_works_by_keyboard(context: BrowserContext) -> None:
    """Without the `page` fixture, which opens shadow roots."""
    service = scripted(context, context.new_page())
    service.visit()
    service.until(lambda: service.card.evaluate("host => host.clientHeight") > 100, "the card is there")
    assert service.card.evaluate("host => host.shadowRoot") is None
    service.page.keyboard.press("Tab")
    assert service.card.evaluate("host => document.activeElement === host")
    service.page.keyboard.press("Tab")
    service.page.keyboard.press("Enter")
    service.until(lambda: delivered(service), "the answer is delivered")
    assert told(service) == [{"ticket": "t1", "value": 0}]
    assert service.card.evaluate("host => document.activeElement === host"), "the focus stays in the card"
