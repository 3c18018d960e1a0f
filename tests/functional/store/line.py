"""A way to a server that can fail: a process that carries bytes between a port of this machine and the server."""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import socket
import struct
import threading

# To drop every packet that comes, unacknowledged, by a filter that returns 0.
_ATTACH_FILTER = 26


class Line:
    """
    A process that carries what clients say to a server on a socket, and what it answers.

    Parameters
    ----------
    server
        The path of the server's socket.
    seed
        Decides which connections a fault hits.

    Attributes
    ----------
    port
        Where clients connect to.
    """

    def __init__(self, server: str, seed: int) -> None:
        door = socket.create_server(("127.0.0.1", 0))
        self.port: int = door.getsockname()[1]
        orders, self._orders = os.pipe()
        self._done, done = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            status = 1
            try:
                os.close(self._orders)
                _Carrier(server, door, random.Random(seed)).obey(orders, done)
                status = 0
            finally:
                os._exit(status)
        door.close()
        os.close(orders)
        os.close(done)

    def order(self, what: str) -> None:
        """
        Do something to some of the connections, and return when it is done.

        `cut` ends them for both sides; `silence` ends them for the server alone, and clients hear nothing; `lose` tells
        neither side.
        """
        os.write(self._orders, f"{what}\n".encode())
        assert os.read(self._done, 1) == b"."

    def close(self) -> None:
        """End the process and all connections."""
        os.close(self._orders)
        os.waitpid(self._child, 0)
        os.close(self._done)


class _Carrier:
    def __init__(self, server: str, door: socket.socket, chance: random.Random) -> None:
        self._server, self._door, self._chance = server, door, chance
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._mute: set[int] = set()
        self._filter = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0))

    def obey(self, orders: int, done: int) -> None:
        threading.Thread(target=self._let_in, daemon=True).start()
        with os.fdopen(orders) as lines:
            for line in lines:
                pairs = [pair for pair in self._pairs if pair[0].fileno() >= 0 and id(pair[0]) not in self._mute]
                hit = [pair for pair in pairs if self._chance.random() < 0.5] or pairs[:1]
                for client, server in hit:
                    with contextlib.suppress(OSError):
                        self._fail(line.strip(), client, server)
                os.write(done, b".")

    def _fail(self, how: str, client: socket.socket, server: socket.socket) -> None:
        if how == "cut":
            client.shutdown(socket.SHUT_RDWR)
            server.shutdown(socket.SHUT_RDWR)
            return
        self._mute.add(id(client))
        attached = struct.pack("HL", 1, ctypes.addressof(self._filter))
        client.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, attached)
        if how == "silence":
            server.shutdown(socket.SHUT_RDWR)

    def _let_in(self) -> None:
        while True:
            client, server = self._door.accept()[0], socket.socket(socket.AF_UNIX)
            try:
                server.connect(self._server)
            except OSError:  # it is being started
                client.close()
                continue
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._pairs.append((client, server))
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._carry, args=(client, source, target), daemon=True).start()

    def _carry(self, client: socket.socket, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while (said := source.recv(1 << 16)) and id(client) not in self._mute:
                target.sendall(said)
        if id(client) not in self._mute:
            with contextlib.suppress(OSError):
                target.shutdown(socket.SHUT_RDWR)
            source.close()
