"""Requests to a service, repeated where that is safe."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from equipoise.base.errors import EquipoiseError, InvalidInput, Refused
from equipoise.base.inputs import install_hint, integer_in, shown
from equipoise.base.patience import Patience
from equipoise.ledger.ledger import TooLate

# A service that answers so may answer otherwise a moment later.
_AGAIN: Final = (408, 425, 429, 500, 502, 503, 504)
# The type of the problem that a ticket's place was taken.
_LATE: Final = "urn:equipoise:problem:late"
# The most characters of a refusal that are passed on.
_QUOTED: Final = 2000
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 5.0
_TIMEOUT: Final = 30.0
# The most bytes of an answer, unpacked: more than that of ten million arms has.
_LONGEST: Final = 1 << 30


@dataclass(frozen=True)
class Answer:
    """What a service answered: the status, the headers, and the body as it was before it was packed."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        """Return what the body says."""
        try:
            return json.loads(self.content)
        except (ValueError, RecursionError):
            raise EquipoiseError(f"the service answered {self.status} without JSON; is it equipoise?") from None


class Transport:
    """
    A connection to a service. Every request can be repeated: asks have an idempotency key, and answers are told once.

    Parameters
    ----------
    url, key
        Where the service is, and the administrator's token or the key of a study.
    patience
        How long to repeat a request without an answer.
    longest
        The most bytes of an answer.
    """

    def __init__(self, url: str, key: str, patience: Patience, longest: int = _LONGEST) -> None:
        try:
            import httpx
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"connecting to a service needs {error.name}, which is not installed; {install_hint('client')}"
            ) from None
        if not isinstance(url, str) or not _is_address(url):
            raise InvalidInput(f"url must be that of a service, such as http://127.0.0.1:8000, got {shown(url)}")
        if not isinstance(key, str) or not key or not key.isascii() or not key.isprintable():
            raise InvalidInput("key must be the administrator's token or the key of a study")
        self.url, self._longest = url.rstrip("/"), longest
        self._patience, self._failures = patience, (httpx.TransportError, httpx.DecodingError)
        self._client = httpx.Client(headers={"Authorization": f"Bearer {key}"}, timeout=_TIMEOUT)

    def close(self) -> None:
        """End the connection."""
        self._client.close()

    def get(self, path: str, **parameters: Any) -> Answer:
        """Read something."""
        return self._send("GET", path, None, parameters)

    def post(self, path: str, body: Any = None) -> Any:
        """Send something, and return what is answered; None where there is nothing."""
        response = self._send("POST", path, body, {})
        return response.json() if response.content else None

    def delete(self, path: str) -> None:
        """Remove something; it may be gone already where a response was lost."""
        try:
            self._send("DELETE", path, None, {})
        except Refused as error:
            if error.status != HTTPStatus.NOT_FOUND or not error.repeated:
                raise

    def _send(self, method: str, path: str, body: Any, parameters: dict[str, Any]) -> Answer:
        patience = self._patience
        until, pause, repeated = patience.clock() + patience.seconds, _FIRST_PAUSE, False
        while True:
            wait = pause * random.uniform(0.5, 1.5)  # so that many clients do not come back together
            try:
                response = self._answer(method, path, body, parameters)
            except self._failures as error:
                problem = f"cannot reach {self.url}: {error or type(error).__name__}"
            else:
                if response.status not in _AGAIN:
                    return _checked(response, repeated)
                problem = _detail(response)
                wait = max(wait, _seconds(response.headers.get("retry-after")))
            if patience.clock() + wait > until:
                raise EquipoiseError(problem)
            patience.pause(wait)
            pause, repeated = min(2 * pause, _LONGEST_PAUSE), True

    def _answer(self, method: str, path: str, body: Any, parameters: dict[str, Any]) -> Answer:
        """Send a request, and return the answer; one without an end is not waited for."""
        url, parts, many = f"{self.url}/api/v1{path}", [], 0
        with self._client.stream(method, url, json=body, params=parameters or None) as response:
            for part in response.iter_bytes():
                parts.append(part)
                many += len(part)
                if many > self._longest:
                    raise EquipoiseError(f"the answer of {self.url} has more than {self._longest:,} bytes")
        return Answer(response.status_code, response.headers, b"".join(parts))


def _is_address(url: str) -> bool:
    import httpx

    try:
        found = httpx.URL(url)
        found.host.encode("idna")  # as is done when the host is looked for
    except (httpx.InvalidURL, UnicodeError):
        return False
    return found.scheme in ("http", "https") and bool(found.host)


def _seconds(text: str | None) -> float:
    try:
        return max(0.0, float(integer_in(text or "")))
    except (ValueError, OverflowError):  # a date, which HTTP allows too, or nonsense
        return 0.0


def _checked(answer: Answer, repeated: bool) -> Answer:
    """Return an answer that is not a refusal; raise one that is."""
    if 200 <= answer.status < 300:
        return answer
    if answer.status == HTTPStatus.UNPROCESSABLE_ENTITY:
        raise InvalidInput(_detail(answer))
    if _member(answer, "type") == _LATE:
        raise TooLate(_detail(answer))
    raise Refused(_detail(answer), answer.status, repeated)


def _detail(answer: Answer) -> str:
    found = _member(answer, "detail")
    return f"the service answered {answer.status}" if found is None else found[:_QUOTED]


def _member(answer: Answer, name: str) -> str | None:
    """Return a text of the problem details; None without one."""
    try:
        found = answer.json()[name]
    except (EquipoiseError, LookupError, TypeError):
        return None
    return found if isinstance(found, str) else None
