"""What a process counts, in the text format of Prometheus."""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import dataclass
from typing import Final

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True)
class Gauges:
    """Counts of a service: turns taken, requests served and refused in them; and what is open now."""

    turns: int
    served: int
    refused: int
    waiting: int
    desks: int
    connections: int
    viewers: int


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

    def text(self, gauges: Gauges) -> str:
        """Return all numbers."""
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
            *_series("turns_total", "counter", "Turns taken.", [({}, gauges.turns)]),
            *_series("served_total", "counter", "Requests served in turns.", [({}, gauges.served)]),
            *_series("refused_total", "counter", "Requests refused in turns.", [({}, gauges.refused)]),
            *_series("waiting", "gauge", "Requests that wait for a turn.", [({}, gauges.waiting)]),
            *_series("desks", "gauge", "Studies open in this process.", [({}, gauges.desks)]),
            *_series("connections", "gauge", "Connections to the database.", [({}, gauges.connections)]),
            *_series("viewers", "gauge", "Live views.", [({}, gauges.viewers)]),
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
