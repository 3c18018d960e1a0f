"""HTTP as uvicorn reads it, with a limit on what it has to keep before there is a request."""

from __future__ import annotations

from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# The most bytes of a request line with its headers, or of headers that follow a body, beyond those of the last packet.
HEAD: Final = 1 << 16

_REFUSAL: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class Protocol(HttpToolsProtocol):
    """
    Closes a connection that sends very many bytes of headers.

    Bodies are counted by whoever reads them (`edge`). Nobody reads a request that has not begun: a parser would keep
    its headers for as long as they come, whoever sends them.
    """

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        # Bytes since a head, a part of a body or a request came to its end; and whether one did in the last packet.
        self._kept, self._ended = 0, False

    def data_received(self, data: bytes) -> None:
        """Read a packet."""
        self._ended = False
        super().data_received(data)
        self._kept = 0 if self._ended else self._kept + len(data)
        if self._kept > HEAD and not self.transport.is_closing():
            if self.cycle is None or self.cycle.response_complete:
                self.transport.write(_REFUSAL)
            self.transport.close()

    def on_headers_complete(self) -> None:
        """Begin a request."""
        self._ended = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Pass on a part of a body."""
        self._ended = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        self._ended = True
        super().on_message_complete()
