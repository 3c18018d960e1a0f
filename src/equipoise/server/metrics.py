"""What a process counts, in the text format of Prometheus."""

from __future__ import annotations

import os
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from equipoise.server.service import Service

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Requests that this process has answered."""

    def __init__(self) -> None:
        self.started = time.time()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: Counter[tuple[str, str]] = Counter()

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests[method, route, status] += 1
        self._seconds[method, route] += seconds  # type: ignore[assignment]

    def text(self, service: Service) -> str:
        """Return all numbers."""
        desks, count = service.desks, service.count
        lines = [
            *_series(
                "requests_total",
                "counter",
                "Requests answered.",
                [
                    ({"method": method, "route": route, "status": str(status)}, many)
                    for (method, route, status), many in sorted(self._requests.items())
                ],
            ),
            *_series(
                "request_seconds_total",
                "counter",
                "Seconds from the first byte of a request to the last of its response.",
                [
                    ({"method": method, "route": route}, spent)
                    for (method, route), spent in sorted(self._seconds.items())
                ],
            ),
            *_series("turns_total", "counter", "Turns taken.", [({}, count.turns)]),
            *_series("served_total", "counter", "Requests served in turns.", [({}, count.served)]),
            *_series("refused_total", "counter", "Requests refused in turns.", [({}, count.refused)]),
            *_series("waiting", "gauge", "Requests that wait for a turn.", [({}, sum(desk.waiting for desk in desks))]),
            *_series("desks", "gauge", "Studies open in this process.", [({}, len(desks))]),
            *_series("connections", "gauge", "Connections to the database.", [({}, service.registry.connections)]),
            *_series("viewers", "gauge", "Live views.", [({}, service.viewers)]),
            *_series("start_time_seconds", "gauge", "When this process began.", [({}, self.started)]),
        ]
        return "\n".join(lines) + "\n"


def _series(name: str, kind: str, about: str, samples: list[tuple[dict[str, str], float]]) -> list[str]:
    # With several workers, each scrape meets one of them.
    process = str(os.getpid())
    lines = [f"# HELP equipoise_{name} {about}", f"# TYPE equipoise_{name} {kind}"]
    for labels, value in samples:
        said = ",".join(f'{label}="{_escaped(text)}"' for label, text in {"process": process, **labels}.items())
        lines.append(f"equipoise_{name}{{{said}}} {value!r}")
    return lines


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
