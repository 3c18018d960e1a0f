"""The protocol of everything with ask and tell: a study in memory, in a store, or of a service."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Protocol, SupportsFloat, TypeVar, overload

from equipoise.base.inputs import MISSING
from equipoise.result.result import Result


class TicketLike(Protocol):
    """One pull that a study handed out."""

    @property
    def arm(self) -> Hashable:
        """The arm's name."""


T = TypeVar("T", bound=TicketLike)


class StudyLike(Protocol[T]):
    """
    A study whose tickets are of type T: ask which arm to sample, tell the value of the sample.

    `equipoise.testing.StudyLaws` has the laws that every such study keeps.
    """

    @property
    def arms(self) -> Sequence[Hashable]:
        """The names of the arms, in order."""

    @property
    def support(self) -> Any:
        """The possible values."""

    @property
    def budget(self) -> float | None:
        """How many samples may be asked for in all, or with costs how much they may cost; None for no limit."""

    @property
    def spent(self) -> float:
        """
        The cost of all tickets that were handed out and not forgotten; their number without costs.

        Tickets whose real cost is not known are charged with what a sample of their arm is expected to cost.
        """

    @property
    def remaining(self) -> float:
        """How many tickets may still be handed out, or with costs how much is left; infinite without a budget."""

    @property
    def in_flight(self) -> int:
        """How many tickets are neither answered nor declined nor forgotten."""

    @property
    def done(self) -> bool:
        """Whether no further sample can be asked for. Tickets may still be in flight: their answers are taken."""

    @property
    def retired(self) -> tuple[Hashable, ...]:
        """The arms that are retired."""

    def result(self) -> Result:
        """Return what is known now; later samples do not change it."""

    @overload
    def ask(self) -> T: ...
    @overload
    def ask(self, m: int) -> list[T]: ...

    def ask(self, m: int | None = None) -> T | list[T]:
        """
        Return a ticket for the arm to sample next, or several.

        Parameters
        ----------
        m
            How many tickets to hand out at once. The same as asking m times with no answer in between.

        Returns
        -------
        Ticket, or a list of them
            One ticket without `m`. With `m`, a list of as many as the budget allows, none when it is spent.

        Raises
        ------
        EquipoiseError
            Without `m`, when the budget is spent or every arm is retired or used up.
        """

    def tell(self, ticket: T = MISSING, value: SupportsFloat = MISSING, *, cost: SupportsFloat | None = None) -> None:
        """
        Take the value of a sample.

        Parameters
        ----------
        ticket
            The ticket that was answered. Telling the same value again changes nothing. A forgotten ticket's answer is
            taken too, as long as the budget has a place for it.
        value
            The sample.
        cost
            What the sample really cost, in a study with `costs`. The budget is charged with it, and from then on the
            arm is planned with the mean of its real costs. None if that is not known.

        Raises
        ------
        ValueError, TypeError
            For a value that is not a finite number inside the support; a ticket of another study, or that was declined;
            a value different from the one already recorded; a forgotten ticket when the budget is spent; a cost that is
            negative. The study is left unchanged.
        """

    def tell_many(
        self, answers: Iterable[tuple[T, SupportsFloat] | tuple[T, SupportsFloat, SupportsFloat | None]]
    ) -> None:
        """
        Take many pairs (ticket, value) or triples (ticket, value, cost), in order: all of them or none.

        Raises
        ------
        ValueError, TypeError
            As `tell` does.
        """

    def decline(self, ticket: T, *, cost: SupportsFloat | None = None) -> None:
        """
        Record that a respondent declined to answer.

        It uses budget, unlike a forgotten one, and is not a sample: results count it by arm. An arm that never answers
        gets at most about an even split's share of the budget.

        Parameters
        ----------
        ticket
            The ticket. Declining it again changes nothing. A forgotten one can still be declined, as long as the budget
            has a place for it.
        cost
            What it really cost, in a study with `costs`; None if that is not known.

        Raises
        ------
        ValueError, TypeError
            For a ticket that was answered, or of another study; a forgotten one when the budget is spent; a cost that
            is negative. The study is left unchanged.
        """

    def forget(self, ticket: T) -> None:
        """
        Give back a ticket that will not be answered, so that its sample can be asked for again.

        A late answer is accepted as long as the budget has a place for it. A ticket of an arm that was retired
        meanwhile counts as withdrawn; any other as one that was never answered, which the certificate reports.
        """

    def retire(self, arm: Hashable) -> None:
        """Ask for no more samples of an arm. Its answers in flight are taken, and `reopen` makes it available again."""

    def reopen(self, arm: Hashable) -> None:
        """Ask for samples of a retired arm again."""

    def set_budget(self, budget: float | None) -> None:
        """
        Change how many samples may be asked for in all, or what they may cost.

        The strategy's parameters are updated.
        """
