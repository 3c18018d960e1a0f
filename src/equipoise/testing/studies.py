"""The laws that everything with ask and tell keeps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

from equipoise.base.errors import EquipoiseError
from equipoise.ledger.ledger import TooLate
from equipoise.study import Study, StudyLike
from equipoise.testing.refusals import refused

_REFUSALS = (ValueError, TypeError)
_ARMS = ("calm", "rough")

Make = Callable[..., StudyLike[Any]]


def _sample(arm: Any, i: int) -> float:
    """Return the i-th sample of an arm."""
    return (3.0 if arm == "rough" else 1.0) * math.sin(1.0 + i)


def _view(study: StudyLike[Any]) -> dict[str, Any]:
    """Return what can be read of a study."""
    return {
        "spent": study.spent,
        "remaining": study.remaining,
        "in_flight": study.in_flight,
        "done": study.done,
        "retired": study.retired,
        "result": study.result().to_dict(),
    }


class StudyLaws:
    """
    The laws of `StudyLike`: inherit this class and define the pytest fixture `make`.

    `make` must give a function of arms and a budget, with `support`, `costs` and `strategy` as in `Study`, that creates
    a study, another one each time.

    Attributes
    ----------
    durable
        Whether asks take an `idempotency_key` and a `respondent`.
    """

    durable: bool = True

    # ---- asking

    def test_a_new_study(self, make: Make) -> None:
        study = make(_ARMS, 10, support=(-3.0, 3.0))
        assert (tuple(study.arms), study.support, study.budget) == (_ARMS, (-3.0, 3.0), 10)
        assert (study.spent, study.remaining, study.in_flight, study.done, study.retired) == (0, 10, 0, False, ())
        assert study.result().samples == 0

    def test_tickets_are_handed_out_up_to_the_budget(self, make: Make) -> None:
        study = make(_ARMS, 10, strategy="uniform")
        first = study.ask()
        others = study.ask(4)
        assert (study.spent, study.remaining, study.in_flight, study.done) == (5, 5, 5, False)
        last = study.ask(64)
        assert Counter(ticket.arm for ticket in [first, *others, *last]) == {"calm": 5, "rough": 5}
        assert len({first, *others, *last}) == 10
        assert (study.spent, study.remaining, study.in_flight, study.done) == (10, 0, 10, True)
        assert study.ask(3) == []
        with refused(EquipoiseError, "budget"):
            study.ask()
        for m in (0, -1, 1.5, "2"):
            with refused(_REFUSALS, "m must be"):
                study.ask(m)  # type: ignore[arg-type]

    def test_many_tickets_at_once_are_those_of_one_after_the_other(self, make: Make) -> None:
        one, other = make(_ARMS, 20), make(_ARMS, 20)
        assert [one.ask().arm for _ in range(12)] == [ticket.arm for ticket in other.ask(12)]

    def test_a_budget_can_be_raised(self, make: Make) -> None:
        study = make(_ARMS, 4)
        study.ask(4)
        study.set_budget(7)
        assert (study.budget, study.remaining, len(study.ask(10))) == (7, 3, 3)
        with refused(ValueError, "budget must be at least"):
            study.set_budget(6)
        study.set_budget(None)
        assert (study.budget, study.remaining, study.done) == (None, math.inf, False)

    def test_a_call_that_is_repeated_gets_the_same_tickets(self, make: Make) -> None:
        if not self.durable:
            return
        study: Any = make(_ARMS, 10)
        tickets = study.ask(3, idempotency_key="again")
        assert study.ask(3, idempotency_key="again") == tickets
        mine = study.ask(respondent="me")
        assert study.ask(respondent="me", idempotency_key="another") == mine
        study.tell(mine, 1.0)
        assert study.ask(respondent="me") == mine
        assert study.ask(1, respondent="me") == [mine]
        study.tell(mine, 1.0)
        assert study.ask(respondent="you") != mine
        with refused(_REFUSALS, "the number of tickets must be 1 with a respondent"):
            study.ask(2, respondent="they")
        assert (study.spent, study.in_flight) == (5, 4)

    # ---- telling

    def test_answers_are_counted(self, make: Make) -> None:
        study = make(_ARMS, 8, strategy="uniform")
        tickets = study.ask(8)
        for ticket in tickets[:2]:
            study.tell(ticket, 2.0)
        study.tell_many([(ticket, 4.0) for ticket in tickets[2:4]])
        study.tell_many([(tickets[4], 6.0, None), (tickets[5], 6.0)])
        study.tell_many([])
        result = study.result()
        assert dict(result.counts) == {"calm": 3, "rough": 3}
        assert dict(result.means) == {"calm": 4.0, "rough": 4.0}
        assert (study.in_flight, study.spent, study.done) == (2, 8, True)

    def test_an_answer_counts_once(self, make: Make) -> None:
        study = make(_ARMS, 8)
        one, other = study.ask(2)
        study.tell(one, 0.5)
        before = _view(study)
        study.tell(one, 0.5)
        study.tell_many([(one, 0.5), (one, 0.5)])
        with refused(ValueError, "already answered with 0.5"):
            study.tell(one, 0.6)
        assert _view(study) == before
        study.tell_many([(other, 1.0), (one, 0.5), (other, 1.0)])
        assert study.result().samples == 2

    def test_answers_that_are_refused_change_nothing(self, make: Make) -> None:
        study = make(_ARMS, 8, support="binary")
        (foreign,) = make(_ARMS, 8, support="binary").ask(1)
        ticket = study.ask()
        before = _view(study)
        for value in (2.0, math.nan, math.inf, "much", None):
            with refused(_REFUSALS):
                study.tell(ticket, value)  # type: ignore[arg-type]
        for strange in (foreign, None, 5, (), ("x", "calm")):
            with refused(_REFUSALS):
                study.tell(strange, 1.0)
        with refused(TypeError, "ticket is required"):
            study.tell(value=1.0)
        with refused(ValueError, "cost"):
            study.tell(ticket, 1.0, cost=2.0)
        assert _view(study) == before

    def test_many_answers_are_all_taken_or_none(self, make: Make) -> None:
        """Whichever answer of a call is refused, and wherever it stands, the study is as before."""
        study = make(_ARMS, 9, support="binary", strategy="uniform")
        (foreign,) = make(_ARMS, 9, support="binary").ask(1)
        tickets = study.ask(9)
        answered, declined, late = tickets[:3]
        study.tell(answered, 1.0)
        study.decline(declined)
        study.forget(late)
        study.ask()  # takes the place of the ticket that was given back
        good = [(ticket, 1.0) for ticket in tickets[3:7]]
        before = _view(study)
        for bad in (
            (tickets[7], 0.5),
            (tickets[7], math.nan),
            (tickets[7], "much"),
            (tickets[7], 1.0, 2.0),
            (tickets[7],),
            (foreign, 1.0),
            (answered, 0.0),
            (declined, 1.0),
            (good[0][0], 0.0),
            (late, 1.0),
            None,
        ):
            for place in (0, 2, len(good)):
                with refused(TooLate if bad == (late, 1.0) else _REFUSALS):
                    study.tell_many([*good[:place], bad, *good[place:]])  # type: ignore[list-item]
            assert _view(study) == before, bad
        study.tell_many(good)
        assert study.result().samples == 5

    def test_costs_that_are_known_afterwards(self, make: Make) -> None:
        study = make(_ARMS, 20.0, costs=[1.0, 2.0], strategy="uniform")
        one, other = study.ask(2)
        assert (study.spent, study.remaining) == (3.0, 17.0)
        study.tell(one, 1.0, cost=4.0)
        study.tell_many([(other, 1.0, 1.0)])
        assert (study.spent, study.remaining) == (5.0, 15.0)
        (third,) = study.ask(1)
        before = _view(study)
        with refused(ValueError, "cost"):
            study.tell(third, 1.0, cost=-1.0)
        with refused(ValueError, "cost"):
            study.tell_many([(third, 1.0, -1.0)])
        assert _view(study) == before

    # ---- tickets without an answer

    def test_a_ticket_that_is_declined_uses_budget(self, make: Make) -> None:
        study = make(_ARMS, 4)
        one, other = study.ask(2)
        study.decline(one)
        before = _view(study)
        study.decline(one)
        with refused(ValueError, "declined"):
            study.tell(one, 1.0)
        assert _view(study) == before
        assert (study.spent, study.in_flight, sum(study.result().declined.values())) == (2, 1, 1)
        study.tell(other, 1.0)
        with refused(ValueError, "answered"):
            study.decline(other)
        assert study.result().samples == 1

    def test_a_ticket_that_is_given_back_leaves_its_place(self, make: Make) -> None:
        study = make(_ARMS, 4, strategy="uniform")
        tickets = study.ask(4)
        study.forget(tickets[0])
        assert (study.remaining, study.in_flight, study.done) == (1, 3, False)
        study.tell(tickets[0], 1.0)  # its place is free
        assert (study.remaining, study.in_flight, study.done) == (0, 3, True)
        study.forget(tickets[1])
        study.ask()
        before = _view(study)
        with refused(TooLate, "nothing is left of the budget"):
            study.tell(tickets[1], 1.0)
        with refused(TooLate, "nothing is left of the budget"):
            study.decline(tickets[1])
        with refused(ValueError):
            study.forget(tickets[0])  # it was answered
        assert _view(study) == before

    def test_a_retired_arm_is_not_asked_for(self, make: Make) -> None:
        study = make(_ARMS, 20)
        tickets = study.ask(4)
        study.retire("calm")
        study.retire("calm")
        assert study.retired == ("calm",)
        assert {ticket.arm for ticket in study.ask(4)} == {"rough"}
        study.tell_many([(ticket, 1.0) for ticket in tickets])
        assert study.result().samples == 4
        study.retire("rough")
        assert (study.done, study.ask(2)) == (True, [])
        with refused(EquipoiseError, "every arm is retired"):
            study.ask()
        study.reopen("calm")
        assert (study.retired, study.done, study.ask().arm) == (("rough",), False, "calm")
        for change in (study.retire, study.reopen):
            with refused(_REFUSALS):
                change("unknown")

    # ---- one study

    def test_every_study_decides_and_results_alike(self, make: Make) -> None:
        """It asks for the arms that a study in memory asks for, and has its result."""
        study, here = make(_ARMS, 40), Study(_ARMS, 40)
        earlier = study.result()
        for i in range(20):
            one, other = study.ask(), here.ask()
            assert one.arm == other.arm
            study.tell(one, _sample(one.arm, i))
            here.tell(other, _sample(other.arm, i))
        pairs = list(zip(study.ask(12), here.ask(12), strict=True))
        assert all(one.arm == other.arm for one, other in pairs)
        study.decline(pairs[0][0])
        here.decline(pairs[0][1])
        study.forget(pairs[1][0])
        here.forget(pairs[1][1])
        samples = [_sample(one.arm, i) for i, (one, _) in enumerate(pairs)]
        study.tell_many([(one, value) for (one, _), value in zip(pairs[2:], samples[2:], strict=True)])
        here.tell_many([(other, value) for (_, other), value in zip(pairs[2:], samples[2:], strict=True)])
        assert _view(study) == _view(here)
        assert (earlier.samples, study.result().samples) == (0, 30)
