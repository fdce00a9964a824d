"""A worker of Kafka Connect in distributed mode, with its REST interface."""

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.ecosystem.programs import java, running, until
from tests.ports import free_ports

MAIN = "org.apache.kafka.connect.cli.ConnectDistributed"
STRINGS = "org.apache.kafka.connect.storage.StringConverter"


def worker_properties(bootstrap: str, port: int) -> dict[str, str]:
    """Exactly-once sources; internal topics with three replicas; a worker that died is out of its group after 6 s."""
    topics = {f"{name}.storage.topic": f"connect-{name}" for name in ("config", "offset", "status")}
    factors = {f"{name}.storage.replication.factor": "3" for name in ("config", "offset", "status")}
    partitions = {"offset.storage.partitions": "3", "status.storage.partitions": "3"}
    return (
        topics
        | factors
        | partitions
        | {
            "bootstrap.servers": bootstrap,
            "group.id": "connect",
            "exactly.once.source.support": "enabled",
            "key.converter": STRINGS,
            "value.converter": STRINGS,
            "listeners": f"http://127.0.0.1:{port}",
            "session.timeout.ms": "6000",
            "heartbeat.interval.ms": "1000",
            "scheduled.rebalance.max.delay.ms": "0",
            "offset.flush.interval.ms": "1000",
            "plugin.discovery": "service_load",
        }
    )


@dataclass(slots=True)
class Worker:
    """A running worker."""

    process: subprocess.Popen[str]
    port: int
    folder: Path

    def request(self, method: str, path: str, body: Mapping[str, str] | None = None) -> Any:
        """Send one request; the JSON of its response, or None if the worker cannot serve it yet: ask again."""
        http_request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method)
        http_request.add_header("Content-Type", "application/json")
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(http_request, data, timeout=60) as response:  # noqa: S310
                text = response.read()
                return json.loads(text) if text else {}
        except urllib.error.HTTPError as refused:
            if refused.code in {404, 409, 503}:  # a rebalance is under way, or the status is not there yet
                return None
            raise AssertionError(refused.read().decode()) from refused
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None

    def put(self, connector: str, configuration: Mapping[str, str]) -> None:
        """Create the connector, or change its settings."""
        path = f"/connectors/{connector}/config"
        self.until(lambda: self.request("PUT", path, configuration) is not None)

    def configure(self, connector: str, configuration: Mapping[str, str]) -> None:
        """Create the connector, or change its settings, and wait until it and its tasks are RUNNING."""
        self.put(connector, configuration)
        # The connector, which has the first state, may be RUNNING before it has a task.
        self.until(lambda: len(states := self.states(connector)) > 1 and set(states) == {"RUNNING"})

    def states(self, connector: str) -> list[str]:
        """Return the state of the connector, then those of its tasks; nothing before there is a status."""
        status = self.request("GET", f"/connectors/{connector}/status")
        if status is None:
            return []
        assert "FAILED" not in json.dumps(status), status
        return [status["connector"]["state"], *(task["state"] for task in status["tasks"])]

    def until(self, condition: Any) -> None:
        """Wait for a condition, as long as the worker runs."""
        until(condition, self.process, self.folder)


@contextmanager
def worker(bootstrap: str, folder: Path, jars: str = "connect") -> Iterator[Worker]:
    """Start a worker of Kafka Connect with the jars of java/JARS, wait until it answers, and end it with the block."""
    (port,) = free_ports(1)
    properties = folder / "worker.properties"
    lines = (f"{name}={value}\n" for name, value in worker_properties(bootstrap, port).items())
    properties.write_text("".join(lines))
    with running(java(jars, properties, main=MAIN), folder) as process:
        new_worker = Worker(process, port, folder)
        new_worker.until(lambda: new_worker.request("GET", "/connectors") is not None)
        yield new_worker
