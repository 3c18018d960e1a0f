"""A service elsewhere."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from http import HTTPStatus
from typing import Any

from equipoise.base.errors import Refused
from equipoise.base.inputs import Names, number_of_seconds
from equipoise.base.keywords import suggests_keywords
from equipoise.base.patience import Patience
from equipoise.client.remote import RemoteStudy
from equipoise.client.transport import Transport
from equipoise.problem import Contrasts, Stratified
from equipoise.study.options import savable


def connect(url: str, key: str, *, patience: float = 60.0) -> Service:
    """
    Connect to a service that `equipoise serve` runs.

    Parameters
    ----------
    url
        Where it is, such as "http://127.0.0.1:8000".
    key
        The administrator's token, or the key of a study.
    patience
        Seconds for which a request is repeated while the service is unavailable.

    Returns
    -------
    Service
        The service, which lists, opens and creates studies.

    Examples
    --------
    >>> import equipoise as eq
    >>> service = eq.connect("http://127.0.0.1:8000", key="eqk_...")
    >>> study = service.study("poll")  # doctest: +SKIP
    >>> ticket = study.ask()  # doctest: +SKIP
    >>> study.tell(ticket, 1)  # doctest: +SKIP
    """
    return Service(Transport(url, key, Patience(number_of_seconds("patience", patience))))


class Service:
    """A service; made by `connect`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        return f"<Service at {self._transport.url}>"

    def close(self) -> None:
        """End the connection."""
        self._transport.close()

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def study(self, name: str) -> RemoteStudy:
        """Return the study of this name."""
        return RemoteStudy(self._transport, name)

    def studies(self) -> list[str]:
        """Return the names of all studies; this needs the administrator's token."""
        return [each["name"] for each in self._transport.get("/studies").json()["studies"]]

    @suggests_keywords
    def create(
        self,
        name: str,
        arms: int | Iterable[Hashable],
        budget: float | None = None,
        *,
        title: str = "",
        strategy: str = "auto",
        support: Any = None,
        objective: float | Stratified = math.inf,
        weights: Iterable[float] | Mapping[Any, float] | None = None,
        costs: Iterable[float] | Mapping[Any, float] | None = None,
        populations: Iterable[int] | Mapping[Any, int] | None = None,
        precision: Any = None,
        level: float = 0.95,
        interval: str = "fixed-width",
        poll: Mapping[str, Any] | None = None,
    ) -> RemoteStudy:
        """
        Create a study; this needs the administrator's token.

        Parameters
        ----------
        name
            A part of its address: letters, digits, dots, dashes and underscores.
        arms, budget, strategy, support, objective, weights, costs, populations, precision, level, interval
            As in `equipoise.open`; names of arms are texts.
        title
            For people.
        poll
            What web pages show: `question`, `answer`, `arms`, `respect_dnt` and `origins`.

        Returns
        -------
        RemoteStudy
            The study, with the methods of `Study`.
        """
        names = Names.of(arms).names
        body: dict[str, Any] = {
            "name": name,
            "arms": len(names) if isinstance(names, range) else list(names),
            "budget": budget,
            "title": title,
            "strategy": strategy,
            "support": list(support) if isinstance(support, tuple) else support,
            "objective": _objective(objective),
            "weights": savable(weights),
            "costs": savable(costs),
            "populations": savable(populations),
            "precision": precision.to_dict() if isinstance(precision, Contrasts) else savable(precision),
            "level": level,
            "interval": interval,
            "poll": None if poll is None else dict(poll),
        }
        try:
            self._transport.post("/studies", {key: value for key, value in body.items() if value is not None})
        except Refused as error:
            if error.status != HTTPStatus.CONFLICT or not error.repeated:  # else a lost response was that of a success
                raise
        return self.study(name)


def _objective(given: float | Stratified) -> Any:
    if isinstance(given, Stratified):
        return {"shares": savable(given.shares)}
    return "inf" if given == math.inf else given
