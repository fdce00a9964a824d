"""The same rows against a real Apache Kafka: ``TARGET=kafka``.

Rows that need what no Kafka offers from outside (its clock, faults, held markers) are skipped as `steered`. Time that
a row lets pass is waited for, as long as that is bearable.
"""

import json
import os
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import pytest

from comparison.connection import Closed as HungUp
from comparison.histories.quiescence import Restless
from protocol.apis import ApiKey
from tests.differential.cluster import KafkaCluster
from tests.scenarios import ready
from tests.serving import Server, Servers
from tests.wire import PATIENCE_S, Closed, Wire

TARGET = os.environ.get("TARGET", "understudy")
MOST_CLUSTERS = 2
MOST_WAITED_MS = 25_000
LONG_MS, SLACK_MS, MOMENT_MS = 9_000, 500, 10
FOLLOWED = {
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
    ApiKey.ALTER_CLIENT_QUOTAS,
}
STEERED, OURS_ALONE = "steered", "ours alone"
ALIKE_WITHIN_MS = 4_000


def steered(why: str) -> NoReturn:
    """No Kafka can be brought there from outside."""
    pytest.skip(f"{STEERED}: {why}")


def ours_alone(why: str) -> NoReturn:
    """The row speaks of what only Understudy has."""
    pytest.skip(f"{OURS_ALONE}: {why}")


class About(int):
    """A time that a broker read off its own clock: equal to the expected one, give or take some seconds."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int) and abs(int(self) - int(other)) <= ALIKE_WITHIN_MS

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = int.__hash__

    def __add__(self, other: int) -> "About":
        return About(int(self) + other)

    def __sub__(self, other: int) -> int:
        return int(self) - int(other)


def pause(ms: int) -> None:
    """Let real time pass: Kafka's clock cannot be advanced."""
    threading.Event().wait(ms / 1000)


def waited(ms: int) -> None:
    """Let real time pass where a row pushes the clock.

    Rows ask just before and just after a limit, as in `9999` and `1`. A real clock also passes while they ask, so what
    stops just short of a limit ends a moment earlier, and what crosses one a moment later.
    """
    if ms > MOST_WAITED_MS:
        steered(f"{ms / 60_000:.0f} minutes pass")
    if ms % 10 == 9:
        ms -= min(SLACK_MS, ms // 2)
    elif 0 < ms <= MOMENT_MS or ms >= LONG_MS:
        ms += SLACK_MS
    pause(ms)


class PatientWire(Wire):
    """A connection that comes back from an administrator's request when the brokers have done it."""

    addresses: tuple[str, ...] = ()
    kind = 0  # of the coordinator that was asked for last

    def send(self, key: ApiKey, version: int, request: Any, *, answered: bool = True) -> None:
        """As any wire."""
        if key is ApiKey.FIND_COORDINATOR:
            self.kind = request.key_type
        super().send(key, version, request, answered=answered)

    def answer(self) -> Any:
        """As any wire, and then some."""
        request = self.requests.pending[0] if self.requests.pending else None
        answer = super().answer()
        if request is not None and request.key in FOLLOWED:
            ready.followed(self.addresses)
        elif request is not None and request.key is ApiKey.FIND_COORDINATOR:
            self._loaded(answer)
        return answer

    def _loaded(self, answer: Any) -> None:
        for each in answer.coordinators:
            if self.kind < 2 and not each.error_code and each.key and each.node_id <= len(self.addresses):
                ready.coordinator_loaded(self.addresses[each.node_id - 1], each.key, self.kind)


class OnKafka(Server):
    """A real cluster behind the interface that the rows use."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self.cluster, self.opened = cluster, []

    @property
    def addresses(self) -> tuple[str, ...]:
        """Of each broker."""
        return self.cluster.addresses

    @property
    def pid(self) -> int:
        """No row may look into Kafka's process."""
        ours_alone("looks at the process")

    def connected(
        self,
        address: str,
        *,
        client_id: str | None = "test",
        patience_s: float = PATIENCE_S,
        source: str | None = None,
    ) -> Wire:
        """Connect."""
        wire = PatientWire(address, client_id, patience_s, source)
        wire.addresses = self.addresses
        return wire

    def control(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Brokers can be stopped, killed and started; there is no other control plane."""
        del body
        _, _, what, *more = path.split("/")
        if method != "POST" or what != "brokers" or more[1] not in {"stop", "kill", "start"}:
            steered(path)
        broker = int(more[0])
        if more[1] == "start":
            self.cluster.start(broker)
            ready.all_led(self.addresses)
            ready.followed(self.addresses)
            return None
        self.cluster.stop(broker, clean=more[1] == "stop")
        if len(self.addresses) > 1:
            self.cluster.missed(broker)
        return None

    def advance(self, ms: int) -> None:
        """Time passes by itself."""
        waited(ms)

    def freeze(self) -> int:
        """Time passes nonetheless; what it is now."""
        return self.now_ms()

    def now_ms(self) -> int:
        """The time."""
        return About(time.time() * 1000)

    def log_position(self) -> int:
        """What we log is ours."""
        ours_alone("looks at the log of the process")

    def reset(self) -> None:
        """Without topics and groups, as if it had just started; brokers that are down come up."""
        self.cluster.start()
        ready.emptied(self.addresses)

    def close(self) -> None:
        """End it."""
        self.finish_test()
        self.cluster.stop(clean=False)


class Kafkas(Servers):
    """Real clusters, by set-up."""

    def __init__(self) -> None:
        super().__init__()
        self._clusters: dict[str, OnKafka] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="rows-")
        self._count = 0

    def fresh(self, **options: Any) -> OnKafka:
        """A cluster with these settings, features, listeners and so many brokers, without topics and groups."""
        options.pop("lazy_coordinators", None)  # as Kafka is anyway
        if further := set(options) - {"settings", "brokers", "features", "listeners"}:
            ours_alone(", ".join(sorted(further)))
        name = json.dumps(options, sort_keys=True)
        server = self._clusters.pop(name, None)
        if server is None:
            server = self._started(options)
        try:
            server.reset()
        except (OSError, RuntimeError, Closed, HungUp, Restless):
            server.close()
            server = self._started(options)
        self._clusters[name] = server
        return server

    def _started(self, options: Mapping[str, Any]) -> OnKafka:
        while len(self._clusters) >= MOST_CLUSTERS:
            self._clusters.pop(next(iter(self._clusters))).close()
        self._count += 1
        settings = {key: str(value) for key, value in options.get("settings", {}).items()}
        cluster = KafkaCluster(
            Path(self._folder.name) / str(self._count),
            brokers=options.get("brokers", 1),
            settings=settings,
            features=options.get("features"),
            listeners=options.get("listeners", ()),
        )
        cluster.start()
        return OnKafka(cluster)

    def finish_test(self) -> None:
        """Close all connections that the test opened."""
        for server in self._clusters.values():
            server.finish_test()

    def close(self) -> None:
        """End all of them."""
        for server in self._clusters.values():
            server.close()
        self._clusters.clear()
        self._folder.cleanup()


_running: list[Kafkas] = []


def kafkas() -> Kafkas:
    """The real clusters of this process; :func:`end` ends them."""
    if not _running:
        _running.append(Kafkas())
    return _running[0]


def end() -> None:
    """End them."""
    for each in _running:
        each.close()
    _running.clear()
