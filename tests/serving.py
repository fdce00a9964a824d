"""Servers for tests: one process per distinct set-up and session, as just started for each test.

The fixtures that hand them out are in ``tests/conftest.py``. Nothing here sleeps: a server is ready when its ready file
is there, time is pushed through the control plane, and what a test waits for it polls with a deadline.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from tests.forking import Started
from tests.server import Server, until
from understudy.launcher import ServerProcess, command_line

__all__ = ["Server", "Servers", "start", "until"]

MOST_PROCESSES = 3
"""How many set-ups live at the same time; the one that was unused for longest is stopped for a new one."""


class Servers:
    """The session's servers, by set-up."""

    def __init__(self) -> None:
        self._running: dict[str, Server] = {}

    def fresh(self, **options: Any) -> Server:
        """A server with these options of ``understudy.launcher.command_line``, as just started."""
        name = json.dumps(options, sort_keys=True)
        server = self._running.pop(name, None)
        if server is not None and not server.process.alive:
            server.process.stop()
            server = None
        if server is None:
            while len(self._running) >= MOST_PROCESSES:
                self._running.pop(next(iter(self._running))).process.stop()
            server = Server(start(**options))
        else:
            server.reset()
        self._running[name] = server
        return server

    @contextmanager
    def test(self) -> Iterator[Self]:
        """While a test runs; its connections are closed afterwards."""
        try:
            yield self
        finally:
            self.finish_test()

    def finish_test(self) -> None:
        """Close the connections that the test opened, to any server."""
        for server in self._running.values():
            server.finish_test()

    def close(self) -> None:
        """Stop all processes."""
        for server in self._running.values():
            server.finish_test()
            server.process.stop()
        self._running.clear()


def start(**options: Any) -> ServerProcess:
    """A server process of one's own, to be stopped by who asked for it."""
    all_options = {"port": 0, "control_port": 0, "log_format": "json", "seed": 1, **options}
    return Started(command_line(**all_options))
