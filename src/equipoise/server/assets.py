"""Files that pages need: scripts and styles, with versions in their addresses, so that browsers keep them."""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from fastapi import Request, Response

from equipoise import chart
from equipoise.server.problems import HTTPProblem

VEGA: Final = "vega.js"
_TYPES: Final = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
# Files of fewer bytes are not compressed.
_LARGE: Final = 2_000


class _File(NamedTuple):
    content: bytes
    packed: bytes | None
    tag: str


class Assets:
    """
    The static files of the pages.

    Parameters
    ----------
    paths
        Where each file is, by name. Vega comes from its package and is put together when it is first asked for.
    """

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._files = {name: _file(path.read_bytes()) for name, path in paths.items()}
        self._guard = threading.Lock()

    def version(self, name: str) -> str:
        """Return what changes with the content of a file."""
        return chart.javascript_version() if name == VEGA else self._files[name].tag

    def response(self, request: Request, name: str) -> Response:
        """Return a file; a browser that has it already is told so."""
        if name == VEGA:
            with self._guard:
                if VEGA not in self._files:
                    self._files[VEGA] = _file(chart.javascript().encode())
        found = self._files.get(name)
        if found is None:
            raise HTTPProblem(404, f"there is no file {name!r}")
        right = request.query_params.get("v") == self.version(name)
        headers = {
            "ETag": f'"{found.tag}"',
            "Cache-Control": "public, max-age=31536000, immutable" if right else "no-cache",
            "Vary": "Accept-Encoding",
        }
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        content = found.content
        if found.packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
            content = found.packed
            headers["Content-Encoding"] = "gzip"
        return Response(content, headers=headers, media_type=_TYPES[Path(name).suffix])


def _file(content: bytes) -> _File:
    packed = gzip.compress(content, mtime=0) if len(content) >= _LARGE else None
    return _File(content, packed, hashlib.blake2b(content, digest_size=12).hexdigest())
