"""Requests to a service, repeated where that is safe."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from equipoise.errors import EquipoiseError
from equipoise.inputs import install_hint, shown

if TYPE_CHECKING:
    import httpx

# A service that answers so may answer otherwise a moment later.
_AGAIN: Final = (408, 425, 429, 500, 502, 503, 504)
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 5.0
_TIMEOUT: Final = 30.0


@dataclass(frozen=True)
class Patience:
    """For how many seconds to repeat a request that gets no answer: soon, then less and less often."""

    seconds: float = 60.0
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep


class Refused(EquipoiseError):
    """
    What was asked for is not possible as the service stands, or not allowed.

    Attributes
    ----------
    status
        That of the response.
    repeated
        Whether the request was repeated, so that one of which the response was lost may be the reason.
    """

    def __init__(self, message: str, status: int, repeated: bool) -> None:
        super().__init__(message)
        self.status, self.repeated = status, repeated


class Transport:
    """
    A connection to a service. Every request can be repeated: asks have an idempotency key, and answers are told once.

    Parameters
    ----------
    url, key
        Where the service is, and the administrator's token or the key of a study.
    patience
        How long to repeat a request without an answer.
    """

    def __init__(self, url: str, key: str, patience: Patience) -> None:
        try:
            import httpx
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"connecting to a service needs {error.name}, which is not installed; {install_hint('client')}"
            ) from None
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            raise ValueError(f"url must be that of a service, such as http://127.0.0.1:8000, got {shown(url)}")
        if not isinstance(key, str) or not key or not key.isascii() or not key.isprintable():
            raise ValueError("key must be the administrator's token or the key of a study")
        self.url = url.rstrip("/")
        self._patience, self._failures = patience, httpx.TransportError
        self._client = httpx.Client(headers={"Authorization": f"Bearer {key}"}, timeout=_TIMEOUT)

    def close(self) -> None:
        """End the connection."""
        self._client.close()

    def get(self, path: str, **parameters: Any) -> httpx.Response:
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

    def _send(self, method: str, path: str, body: Any, parameters: dict[str, Any]) -> httpx.Response:
        patience = self._patience
        until, pause, repeated = patience.clock() + patience.seconds, _FIRST_PAUSE, False
        while True:
            wait = pause * random.uniform(0.5, 1.5)  # so that many clients do not come back together
            try:
                response = self._client.request(
                    method, f"{self.url}/api/v1{path}", json=body, params=parameters or None
                )
            except self._failures as error:
                problem = f"cannot reach {self.url}: {error or type(error).__name__}"
            else:
                if response.status_code not in _AGAIN:
                    return _checked(response, repeated)
                problem = _detail(response)
                wait = max(wait, _seconds(response.headers.get("retry-after")))
            if patience.clock() + wait > until:
                raise EquipoiseError(problem)
            patience.pause(wait)
            pause, repeated = min(2 * pause, _LONGEST_PAUSE), True


def _seconds(text: str | None) -> float:
    return float(text) if text is not None and text.isdigit() else 0.0


def _checked(response: httpx.Response, repeated: bool) -> httpx.Response:
    """Return an answer that is not a refusal; raise one that is."""
    if response.is_success:
        return response
    if response.status_code == 422:
        raise ValueError(_detail(response))
    raise Refused(_detail(response), response.status_code, repeated)


def _detail(response: httpx.Response) -> str:
    try:
        found = response.json()["detail"]
    except (ValueError, LookupError, TypeError):
        found = None
    return found if isinstance(found, str) else f"the service answered {response.status_code}"
