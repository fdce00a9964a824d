"""Servers for tests: one process per distinct set-up and session, as just started for each test.

The fixtures that hand them out are in ``tests/conftest.py``. Nothing here sleeps: a server is ready when its ready file
is there, time is pushed through the control plane, and what a test waits for it polls with a deadline.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from protocol.apis import ApiKey
from protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.forking import Started
from tests.wire import PATIENCE_S, Wire
from understudy.launcher import ServerProcess, command_line

T = TypeVar("T")
MOST_PROCESSES = 3
"""How many set-ups live at the same time; the one that was unused for longest is stopped for a new one."""


@dataclass
class Server:
    """A running ``understudy serve`` and the connections that a test has opened to it."""

    process: ServerProcess
    opened: list[Wire] = field(default_factory=list)

    @property
    def addresses(self) -> tuple[str, ...]:
        """``HOST:PORT`` of each broker's first listener."""
        return self.process.ready.bootstrap_servers

    @property
    def pid(self) -> int:
        """The process's id."""
        return self.process.ready.pid

    def wire(
        self,
        broker: int = 1,
        *,
        client_id: str | None = "test",
        patience_s: float = PATIENCE_S,
        source: str | None = None,
    ) -> Wire:
        """A connection to a broker, closed when the test is over."""
        made = Wire(self.addresses[broker - 1], client_id, patience_s, source)
        self.opened.append(made)
        return made

    # --- steering ----------------------------------------------------------------------------------------------------

    def control(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """A call of the control plane; fails the test on any answer but 200 and 201."""
        assert self.process.ready.control_url is not None
        url = urlsplit(self.process.ready.control_url)
        connection = HTTPConnection(str(url.hostname), url.port, timeout=PATIENCE_S)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        assert response.status in {200, 201}, f"{method} {path}: {response.status} {content!r}"
        return json.loads(content)

    def advance(self, ms: int) -> None:
        """Push the cluster's clock; what became due has run."""
        self.control("POST", "/v1/clock/advance", {"ms": ms})

    def freeze(self) -> int:
        """Stop the clock until it is advanced or the test is over; return its time in ms."""
        return int(self.control("POST", "/v1/clock/freeze")["now_ms"])

    def now_ms(self) -> int:
        """The cluster's time."""
        return int(self.control("GET", "/v1/clock")["now_ms"])

    def reset(self) -> None:
        """As just started."""
        self.control("POST", "/v1/reset")

    def make_coordinators(self) -> None:
        """Make the coordinators' topics, as on a cluster that is in use: clients try again after a second only."""
        with Wire(self.addresses[0], "test") as wire:
            for key_type in (0, 1):
                request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["any"])
                wire.call(ApiKey.FIND_COORDINATOR, 4, request)

    # --- looking -----------------------------------------------------------------------------------------------------

    def log_lines(self, since: int = 0) -> list[dict[str, Any]]:
        """What the server logged from a position on: ``event``, ``level`` and the other fields of each line."""
        with self.process.log_file.open("rb") as file:
            file.seek(since)
            return list(_parsed(file.read().splitlines()))

    def log_position(self) -> int:
        """Where the log ends now."""
        return self.process.log_file.stat().st_size

    def resident_bytes(self) -> int:
        """The process's resident memory."""
        lines = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))

    def finish_test(self) -> None:
        """Close the connections that the test opened."""
        for wire in self.opened:
            wire.close()
        self.opened.clear()


def _parsed(lines: list[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        with suppress(ValueError):
            yield json.loads(line)


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
    given = {"port": 0, "control_port": 0, "log_format": "json", "seed": 1, **options}
    return Started(command_line(**given))


def until(ask: Callable[[], T | None], what: str, patience_s: float = PATIENCE_S) -> T:
    """Ask again and again until the answer is true; fails the test when patience ends."""
    pause, deadline = threading.Event(), time.monotonic() + patience_s
    while time.monotonic() < deadline:
        found = ask()
        if found:
            return found
        pause.wait(0.01)
    raise AssertionError(f"not seen within {patience_s} s: {what}")
