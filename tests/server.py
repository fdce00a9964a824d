"""A running server as a test has it: its addresses, its control plane, and the connections that the test has opened.

``tests/serving.py`` starts those that are processes, ``tests/in_process.py`` those that run in the test's own.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from protocol.apis import ApiKey
from protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.wire import PATIENCE_S, Wire
from understudy.launcher import ServerProcess

T = TypeVar("T")
POLL_S = 0.01


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
    def brokers(self) -> Sequence[Mapping[str, Any]]:
        """The brokers as the ready file has them."""
        return self.process.ready.brokers

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
        return self.wire_to(self.addresses[broker - 1], client_id=client_id, patience_s=patience_s, source=source)

    def wire_to(self, address: str, **options: Any) -> Wire:
        """A connection to any listener of the server, with the options of :meth:`wire`."""
        wire = self.connected(address, **options)
        self.opened.append(wire)
        return wire

    def connected(
        self,
        address: str,
        *,
        client_id: str | None = "test",
        patience_s: float = PATIENCE_S,
        source: str | None = None,
    ) -> Wire:
        """Connect."""
        return Wire(address, client_id, patience_s, source)

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
        with self.connected(self.addresses[0]) as wire:
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

    # --- its end -----------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Stop it in order."""
        self.finish_test()
        self.process.stop()

    def kill(self) -> None:
        """Kill it."""
        self.finish_test()
        self.process.process.kill()
        self.process.process.wait()
        self.process.stop()

    def finish_test(self) -> None:
        """Close the connections that the test opened."""
        for wire in self.opened:
            wire.close()
        self.opened.clear()


def _parsed(lines: list[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        with suppress(ValueError):
            yield json.loads(line)


class Pausing:
    """How a poll waits before it asks again: as long as it takes, or, with a cluster in process, by its own time."""

    pause: Callable[[float], object] = staticmethod(threading.Event().wait)


def until(ask: Callable[[], T | None], what: str, patience_s: float = PATIENCE_S) -> T:
    """Ask again and again until the answer is true; fails the test when patience ends."""
    deadline = time.monotonic() + patience_s
    for _ in range(round(patience_s / POLL_S)):
        result = ask()
        if result:
            return result
        if time.monotonic() > deadline:
            break
        Pausing.pause(POLL_S)
    raise AssertionError(f"not seen within {patience_s} s: {what}")
