"""Ask and tell over HTTP: idempotent, signed, counted once; pauses, leases, limits."""

from __future__ import annotations

from collections import Counter
from typing import Any

import httpx
import pytest

from equipoise.server import Limits, Rate
from tests.logs import events, expire_leases, kinds, leases_over
from tests.serving import Served, served

POLL = {
    "question": "Like it?",
    "answer": "yes-no",
    "arms": {"a": {"title": "Apple", "text": "<b>red</b>", "picture": "https://example.org/a.png"}},
    "origins": ["https://example.org"],
}


class Study:
    """A study of a service, by its routes."""

    def __init__(self, service: Served, name: str, token: str | None = None) -> None:
        self.client = service.client(token) if token else service.client()
        self.path = f"/api/v1/studies/{name}"
        self.where = service.service.registry.place(name)

    def post(self, what: str, body: Any = None, **headers: str) -> httpx.Response:
        return self.client.post(f"{self.path}/{what}", json=body, headers=headers)

    def ask(self, **body: Any) -> list[dict[str, Any]]:
        response = self.post("ask", body)
        assert response.status_code == 200, response.text
        return response.json()["tickets"]  # type: ignore[no-any-return]

    def tell(self, *answers: dict[str, Any]) -> dict[str, Any]:
        response = self.post("tell", {"answers": list(answers)})
        assert response.status_code == 200, response.text
        return response.json()  # type: ignore[no-any-return]

    @property
    def progress(self) -> dict[str, Any]:
        return self.client.get(f"{self.path}/progress").json()  # type: ignore[no-any-return]


@pytest.fixture
def study(service: Served, name: str) -> Study:
    """A new study, as a worker sees it."""
    service.create(name, budget=100)
    return Study(service, name, service.key(name, "work"))


def test_asked_and_told(study: Study) -> None:
    tickets = study.ask(count=10)
    assert Counter(each["arm"] for each in tickets) == {"a": 5, "b": 5}
    found = study.tell(*({"ticket": each["ticket"], "value": 1} for each in tickets[:9]))
    assert found == {"outcomes": ["taken"] * 9, "refused": []}
    assert study.tell({"ticket": tickets[9]["ticket"], "declined": True})["outcomes"] == ["taken"]
    result = study.client.get(f"{study.path}/result").json()
    assert sum(result["counts"].values()) == 9
    assert sum(result["declined"].values()) == 1
    assert study.progress["in_flight"] == 0


def test_an_answer_counts_once(study: Study) -> None:
    (one, other) = study.ask(count=2)
    for outcome in ("taken", "known", "known"):
        assert study.tell({"ticket": one["ticket"], "value": 1})["outcomes"] == [outcome]
    found = study.tell({"ticket": one["ticket"], "value": 0}, {"ticket": other["ticket"], "value": 0})
    assert found["outcomes"] == ["refused", "taken"]
    assert found["refused"][0]["index"] == 0
    assert "already answered" in found["refused"][0]["detail"]
    found = study.tell(*[{"ticket": other["ticket"], "value": 0}] * 2)
    assert found["outcomes"] == ["known", "known"]
    assert kinds(study.where).count("tell") == 2


def test_the_same_ticket_twice_in_a_request(study: Study) -> None:
    (ticket,) = study.ask()
    found = study.tell({"ticket": ticket["ticket"], "value": 1}, {"ticket": ticket["ticket"], "value": 0})
    assert found["outcomes"] == ["taken", "refused"]
    assert kinds(study.where).count("tell") == 1
    (one, other) = (each["ticket"] for each in study.ask(count=2))
    found = study.tell(*({"ticket": each, "value": 1} for each in (one, other, one, ticket["ticket"])))
    assert found["outcomes"] == ["taken", "taken", "known", "known"]
    assert kinds(study.where).count("tell") == 3


def test_all_answers_or_none(study: Study) -> None:
    (one, other, third) = (each["ticket"] for each in study.ask(count=3))

    def tell(*answers: dict[str, Any]) -> httpx.Response:
        return study.post("tell", {"answers": list(answers), "atomic": True})

    for bad, words in [
        ({"ticket": other, "value": 0.5}, "ticket 1 of arm 'b': a sample must be 0 or 1, got 0.5"),
        ({"ticket": "A" * 32, "value": 1}, "answer 1: the ticket was not handed out by this study"),
        ({"ticket": one, "value": 0}, "comes twice in one call with different values"),
        ({"ticket": other, "declined": True}, "each answer of an atomic request must have a value"),
    ]:
        response = tell({"ticket": one, "value": 1}, bad, {"ticket": third, "value": 1})
        assert (response.status_code, words in response.json()["detail"]) == (422, True), response.text
    assert (study.progress["samples"], kinds(study.where).count("tell")) == (0, 0)
    answers = [{"ticket": each, "value": 1} for each in (one, other, one)]
    assert tell(*answers).json() == {"outcomes": ["taken", "taken", "known"], "refused": []}
    assert tell(*answers).json() == {"outcomes": ["known"] * 3, "refused": []}
    study.post("forget", {"tickets": [third]})
    study.ask(count=98)
    late = tell({"ticket": third, "value": 1})
    assert (late.status_code, late.json()["type"]) == (409, "urn:equipoise:problem:late")


def test_an_arm_is_retired_and_reopened(service: Served, study: Study, name: str) -> None:
    admin = Study(service, name)
    assert study.post("retire", {"arm": "a"}).status_code == 403
    for _ in range(2):  # a request without a response can be repeated
        assert admin.post("retire", {"arm": "a"}).status_code == 200
    assert admin.client.get(admin.path).json()["retired"] == ["a"]
    assert Counter(each["arm"] for each in study.ask(count=4)) == {"b": 4}
    assert admin.post("reopen", {"arm": "a"}).status_code == 200
    assert admin.client.get(admin.path).json()["retired"] == []
    refused = admin.post("retire", {"arm": "c"})
    assert (refused.status_code, refused.json()["detail"]) == (422, "arm must be one of the study, got 'c'")


@pytest.mark.parametrize("what", ["pause", "archive"])
def test_an_ask_is_repeated_after_a_pause(service: Served, study: Study, name: str, what: str) -> None:
    first = study.ask(count=3, idempotency_key="x")
    service.client().post(f"/api/v1/studies/{name}/{what}")
    assert study.ask(count=3, idempotency_key="x") == first
    found = study.post("ask", {"idempotency_key": "y"}).json()
    assert found == {"tickets": [], "reason": "paused" if what == "pause" else "archived"}
    assert study.progress["in_flight"] == 3


def test_an_ask_is_repeated_for_who_does_not_want_to_be_tracked(service: Served, name: str) -> None:
    key = service.create(name, poll=POLL)["keys"][0]["key"]
    page = Study(service, name, key)
    first = page.post("ask", {"idempotency_key": "x"}).json()
    assert page.post("ask", {"idempotency_key": "x"}, DNT="1").json() == first
    assert page.post("ask", {"idempotency_key": "y", "respondent": "me"}, DNT="1").status_code == 204


def test_an_ask_with_a_key_is_repeated(service: Served, study: Study, name: str) -> None:
    first = study.ask(count=3, idempotency_key="again")
    assert study.ask(count=3, idempotency_key="again") == first
    study.tell({"ticket": first[0]["ticket"], "value": 1})
    assert study.ask(idempotency_key="again") == first
    assert study.ask(count=3, idempotency_key="another") != first
    other = Study(service, name, service.key(name, "work"))
    assert other.ask(count=3, idempotency_key="again") != first  # keys of callers are their own
    assert study.progress["spent"] == 9


def test_a_respondent_is_asked_once(service: Served, name: str) -> None:
    key = service.create(name, budget=100, poll=POLL)["keys"][0]["key"]
    page = Study(service, name, key)
    first = page.post("ask", {"respondent": "me"})
    assert first.status_code == 200
    assert page.post("ask", {"respondent": "me"}).json() == first.json()
    ticket = first.json()["tickets"][0]["ticket"]
    assert page.tell({"ticket": ticket, "value": 1})["outcomes"] == ["taken"]
    gone = page.post("ask", {"respondent": "me"})
    assert (gone.status_code, gone.content) == (204, b"")
    worker = Study(service, name, service.key(name, "work"))
    again = worker.post("ask", {"respondent": "me"}).json()
    assert again == {"tickets": [{"ticket": ticket, "arm": "a"}], "reason": "answered"}
    assert page.post("ask", {"respondent": "you"}).status_code == 200
    assert kinds(worker.where).count("ask") == 2


def test_a_respondent_is_one_person_whatever_the_key(service: Served, study: Study, name: str) -> None:
    response = study.post("ask", {"count": 5, "respondent": "ann"})
    assert (response.status_code, response.json()["detail"]) == (
        422,
        "the number of tickets must be 1 with a respondent, got 5",
    )
    assert study.progress["in_flight"] == 0
    others = [Study(service, name, service.key(name, role)) for role in ("work", "ask")]
    (ticket,) = study.ask(respondent="ann", idempotency_key="x")
    for other in others:
        assert other.ask(respondent="ann", idempotency_key="y") == [ticket]
    study.tell({"ticket": ticket["ticket"], "value": 1})
    assert others[0].post("ask", {"respondent": "ann"}).json() == {"tickets": [ticket], "reason": "answered"}
    assert others[1].post("ask", {"respondent": "ann"}).status_code == 204
    assert study.progress["samples"] == 1


def test_a_page_gets_what_it_shows(service: Served, name: str) -> None:
    key = service.create(name, poll=POLL)["keys"][0]["key"]
    found = Study(service, name, key).post("ask", {}).json()
    assert found["question"] == "Like it?"
    assert (found["answer"], found["support"]) == ("yes-no", "binary")
    assert found["tickets"][0]["arm"] == "a"
    assert found["show"] == POLL["arms"]["a"]  # type: ignore[index]
    assert Study(service, name, key).post("ask", {}).json()["show"]["title"] == "b"


def test_a_page_is_asked_only_what_it_can_show(service: Served, name: str) -> None:
    key = service.create(name, support=None, poll=POLL | {"answer": "custom"})["keys"][0]["key"]
    page = Study(service, name, key)
    refused = page.post("ask", {"respondent": "me", "answers": ["yes-no", "1-5", "number"]})
    assert (refused.status_code, "of kind 'custom'" in refused.json()["detail"]) == (409, True)
    assert Study(service, name).progress["in_flight"] == 0
    assert page.ask(respondent="me", answers=["custom"])


def test_how_long_pages_and_programs_are_waited_for(service: Served, name: str) -> None:
    """Ten minutes, and an hour, unless a program says otherwise."""
    key = service.create(name, poll=POLL)["keys"][0]["key"]
    page, worker = Study(service, name, key), Study(service, name, service.key(name, "work"))
    for caller, body in ((page, {}), (worker, {}), (worker, {"lease": 5})):
        assert caller.post("ask", body).status_code == 200
    for seconds in (0.001, 5, 1e308):
        refused = page.post("ask", {"lease": seconds})
        sentence = "a key of role 'ask' cannot choose how long tickets are waited for"
        assert (refused.status_code, refused.json()["detail"]) == (403, sentence)
    for seconds, over in ((-1, []), (6, [2]), (601, [0, 2]), (3601, [0, 1, 2])):
        assert leases_over(page.where, after=seconds) == over


@pytest.mark.parametrize("header", ["DNT", "Sec-GPC"])
def test_who_does_not_want_to_be_tracked(service: Served, name: str, header: str) -> None:
    key = service.create(name, poll=POLL)["keys"][0]["key"]
    page = Study(service, name, key)
    assert page.post("ask", {"respondent": "me"}, **{header: "1"}).status_code == 204
    assert page.post("ask", {"respondent": "me"}, **{header: "0"}).status_code == 200
    poll = POLL | {"respect_dnt": False}
    assert service.client().put(f"/api/v1/studies/{name}/poll", json=poll).status_code == 200
    assert page.post("ask", {"respondent": "you"}, **{header: "1"}).status_code == 200


def test_tickets_that_this_study_did_not_sign(service: Served, study: Study, name: str) -> None:
    (ticket,) = study.ask()
    text = ticket["ticket"]
    service.create(f"{name}-2", budget=100)
    foreign = Study(service, f"{name}-2", service.key(f"{name}-2", "work"))
    (stranger,) = foreign.ask()
    before = kinds(study.where)
    flipped = [f"{text[:j]}{'A' if text[j] != 'A' else 'B'}{text[j + 1 :]}" for j in range(len(text))]
    forged = [stranger["ticket"], *flipped, text[:-1], text + "A", "", " " * 32, "é" * 32, "=" * 32, "A" * 32]
    found = study.tell(*({"ticket": each, "value": 1} for each in forged))
    assert found["outcomes"] == ["refused"] * len(forged)
    assert study.post("forget", {"tickets": forged}).json()["outcomes"] == ["refused"] * len(forged)
    assert kinds(study.where) == before


def test_tickets_are_given_back(study: Study) -> None:
    tickets = [each["ticket"] for each in study.ask(count=3)]
    assert study.tell({"ticket": tickets[0], "value": 1})["outcomes"] == ["taken"]
    found = study.post("forget", {"tickets": tickets[:2]}).json()
    assert found["outcomes"] == ["refused", "forgotten"]
    assert "answered" in found["refused"][0]["detail"]
    assert study.progress["spent"] == 2
    assert study.tell({"ticket": tickets[1], "value": 0})["outcomes"] == ["taken"]  # late, and taken
    assert study.progress["spent"] == 3


def test_a_ticket_that_is_waited_for_in_vain(service: Served, name: str) -> None:
    service.create(name, budget=4)
    study = Study(service, name)
    tickets = study.ask(count=4)
    assert study.post("ask", {}).json() == {"tickets": [], "reason": "spent"}
    expire_leases(study.where)
    assert len(study.ask()) == 1
    assert kinds(study.where).count("forget") == 4
    assert study.tell({"ticket": tickets[0]["ticket"], "value": 1})["outcomes"] == ["taken"]
    # The others are taken as long as there is budget for them, whether they have an answer or none.
    found = study.tell(
        {"ticket": tickets[1]["ticket"], "value": 1},
        {"ticket": tickets[2]["ticket"], "declined": True},
        {"ticket": tickets[3]["ticket"], "value": 1},
    )
    assert found["outcomes"] == ["taken", "taken", "late"]
    assert found["refused"][0]["index"] == 2
    assert "nothing is left of the budget for a late answer" in found["refused"][0]["detail"]
    assert study.tell({"ticket": tickets[3]["ticket"], "declined": True})["outcomes"] == ["late"]
    assert (study.progress["spent"], study.progress["samples"]) == (4, 2)
    assert kinds(study.where).count("tell") == 2


def test_who_comes_back_when_the_budget_is_spent(service: Served, name: str) -> None:
    """A visitor whose ticket was given back is not asked for an answer that would be refused."""
    key = service.create(name, budget=2, strategy="uniform", poll=POLL)["keys"][0]["key"]
    page, worker = Study(service, name, key), Study(service, name, service.key(name, "work"))
    (ticket,) = page.ask(respondent="me")
    expire_leases(page.where)
    assert page.ask(respondent="you")
    assert page.ask(respondent="me") == [ticket]  # there is a place for it
    (other,) = page.ask(respondent="another")
    assert page.post("ask", {"respondent": "me"}).status_code == 204
    assert worker.post("ask", {"respondent": "me"}).json() == {"tickets": [], "reason": "spent"}
    assert page.tell({"ticket": ticket["ticket"], "value": 1})["outcomes"] == ["late"]
    assert page.tell({"ticket": other["ticket"], "value": 1})["outcomes"] == ["taken"]


def test_a_page_does_not_say_what_samples_cost(service: Served, name: str) -> None:
    """Else free samples would have no end, and a dear one would be the last."""
    service.create(name, budget=100, costs={"a": 1, "b": 10})
    page, worker = (Study(service, name, service.key(name, role)) for role in ("ask", "work"))
    (ticket,) = page.ask()
    sentence = "a key of role 'ask' cannot say what samples cost"
    for cost in (0, 1, 1e300):
        refused = page.post("tell", {"answers": [{"ticket": ticket["ticket"], "value": 1, "cost": cost}]})
        assert (refused.status_code, refused.json()["detail"]) == (403, sentence)
    assert worker.progress["samples"] == 0
    assert page.tell({"ticket": ticket["ticket"], "value": 1})["outcomes"] == ["taken"]


def test_how_long_a_sample_cannot_take(study: Study) -> None:
    """No number of seconds that would be infinite in the log."""
    (ticket,) = study.ask()
    for seconds in ("1e308", "1.1e9", "-1", "NaN", "Infinity"):
        body = f'{{"answers": [{{"ticket": "{ticket["ticket"]}", "value": 1, "seconds": {seconds}}}]}}'
        assert study.client.post(f"{study.path}/tell", content=body).status_code in (400, 422)
    assert study.tell({"ticket": ticket["ticket"], "value": 1, "seconds": 1e9})["outcomes"] == ["taken"]
    assert [event.seconds for event in events(study.where) if event.kind == "tell"] == [1e9]


@pytest.mark.parametrize(("what", "reason"), [("pause", "paused"), ("archive", "archived")])
def test_paused_and_archived(service: Served, name: str, what: str, reason: str) -> None:
    key = service.create(name, poll=POLL)["keys"][0]["key"]
    page, admin = Study(service, name, key), Study(service, name)
    ticket = page.post("ask", {}).json()["tickets"][0]["ticket"]
    assert admin.post(what).json()["status"] == reason
    assert page.post("ask", {}).status_code == 204
    assert admin.post("ask", {}).json() == {"tickets": [], "reason": reason}
    told = page.post("tell", {"answers": [{"ticket": ticket, "value": 1}]})
    assert told.status_code == (200 if what == "pause" else 409)
    assert admin.post("resume").json()["status"] == "open"
    assert page.post("ask", {}).status_code == 200
    assert page.tell({"ticket": ticket, "value": 1})["outcomes"] in (["taken"], ["known"])


def test_a_precision_that_is_reached(service: Served, name: str) -> None:
    service.create(name, precision=0.4)
    study = Study(service, name)
    for _ in range(100):
        tickets = study.ask(count=10) if study.progress["done"] is False else []
        if not tickets:
            break
        study.tell(*({"ticket": each["ticket"], "value": j % 2} for j, each in enumerate(tickets)))
    assert study.post("ask", {}).json() == {"tickets": [], "reason": "reached"}
    assert study.post("extend", {"precision": 0.1}).json()["done"] is False
    assert len(study.ask()) == 1


def test_costs(service: Served, name: str) -> None:
    service.create(name, budget=100, costs={"a": 1, "b": 10})
    study = Study(service, name)
    (ticket,) = study.ask()
    assert study.tell({"ticket": ticket["ticket"], "value": 1, "cost": 7})["outcomes"] == ["taken"]
    assert study.progress["spent"] == 7
    (ticket,) = study.ask()
    assert study.tell({"ticket": ticket["ticket"], "declined": True, "cost": 2})["outcomes"] == ["taken"]
    assert study.progress["spent"] == 9


def test_how_long_samples_took(study: Study) -> None:
    one, other = study.ask(count=2)
    study.tell({"ticket": one["ticket"], "value": 1, "seconds": 0.5}, {"ticket": other["ticket"], "value": 1})
    told = [event.seconds for event in events(study.where) if event.kind == "tell"]
    assert told[0] == 0.5
    assert told[1] != told[1]


# ---- limits


def test_limits(tmp_path: Any) -> None:
    limits = Limits(body=2000, batch=5, open_by_ask=2, open_by_work=4, respondent=Rate(0.001, 2), lease=60)
    with served(str(tmp_path / "studies.db"), limits=limits) as service:
        key = service.create("poll", poll=POLL)["keys"][0]["key"]
        page, worker = Study(service, "poll", key), Study(service, "poll", service.key("poll", "work"))
        assert worker.post("ask", {"count": 6}).status_code == 413
        assert worker.post("tell", {"answers": [{"ticket": "x", "value": 1}] * 6}).status_code == 413
        assert worker.post("ask", {"lease": 61}).status_code == 422
        # Tickets of each key are counted by themselves, and those that were answered do not count.
        tickets = worker.ask(count=4)
        refused = worker.post("ask", {})
        assert (refused.status_code, refused.json()["type"]) == (429, "urn:equipoise:problem:open-tickets")
        assert [page.post("ask", {}).status_code for _ in range(3)] == [200, 200, 429]
        worker.tell({"ticket": tickets[0]["ticket"], "value": 1})
        assert worker.post("ask", {"count": 2}).status_code == 429
        assert len(worker.ask()) == 1
        # One respondent cannot come more often than this.
        found = [page.post("ask", {"respondent": "me"}) for _ in range(3)]
        assert found[-1].status_code == 429
        assert int(found[-1].headers["retry-after"]) >= 1
        # A body that is too large is refused before it is read, whether or not it says how large it is.
        large = b'{"idempotency_key": "' + b"x" * 3000 + b'"}'
        for content in (large, iter([large[:1500], large[1500:]])):
            response = worker.client.post(f"{worker.path}/ask", content=content)
            assert response.status_code == 413
            assert response.headers["content-type"] == "application/problem+json"


def test_a_rate_by_key(tmp_path: Any) -> None:
    with served(str(tmp_path / "studies.db"), limits=Limits(read=Rate(0.001, 3))) as service:
        service.create("poll")
        reader, other = (Study(service, "poll", service.key("poll", "read")) for _ in range(2))
        statuses = [reader.client.get(f"{reader.path}/progress").status_code for _ in range(4)]
        assert statuses == [200, 200, 200, 429]
        assert other.client.get(f"{other.path}/progress").status_code == 200
