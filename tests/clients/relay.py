"""An address that leads to one cluster, then to another, as a load balancer or a reassigned host may."""

import socket
import threading
from contextlib import suppress


class Relay:
    """Passes bytes to and fro between its clients and the port that it leads to at that time."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._to = 0
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listener.getsockname()[1])

    def lead_to(self, port: int) -> None:
        """From now on there; connections that are open end."""
        self._to = port
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def close(self) -> None:
        """No more."""
        self._listener.close()
        self.lead_to(0)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self._to))
                except OSError:
                    client.close()
                    continue
                self._open += client, server
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=_pass, args=ends, daemon=True).start()


def _pass(one: socket.socket, other: socket.socket) -> None:
    """Until either ends."""
    with suppress(OSError):
        while received := one.recv(65536):
            other.sendall(received)
    for each in (one, other):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()
