"""``TARGET=kafka pytest tests/scenarios/core tests/scenarios/groups``: the same rows, asked of a real Apache Kafka.

What steers a cluster (its clock, faults, brokers killed by the control plane) no Kafka can be asked for: such a row is
skipped there as `steered`. Scenarios that run a cluster inside the test's own loop (transactions) know nothing of this.
"""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from comparison.histories.settle import metadata_followed
from comparison.side import Side
from protocol.apis import ApiKey
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.metadata import MetadataRequest
from tests.clients import targets
from tests.conftest import BrokerWith
from tests.serving import Server, Servers
from tests.wire import PATIENCE_S, Wire

TARGET = os.environ.get("TARGET", "understudy")
MOST_CLUSTERS = 2
CLIENT_METRICS = 16
FOLLOWED = {
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
}
STEERED, OURS_ALONE = "steered", "ours alone"


def settled(address: str) -> None:
    """Return when a broker has followed its metadata; a subscription of client metrics is what is rung."""
    side = Side(address)
    metadata_followed(side, CLIENT_METRICS, "bell", "interval.ms")
    side.close()


class PatientWire(Wire):
    """A connection that comes back from an administrator's request when the broker has done it."""

    def call(self, key: ApiKey, version: int, request: Any) -> Any:
        """As any wire, and then some."""
        answer = super().call(key, version, request)
        if key in FOLLOWED:
            host, port = self.socket.getpeername()[:2]
            settled(f"{host}:{port}")
        return answer


class OnKafka(Server):
    """A real cluster behind the interface that the rows use."""

    def __init__(self, cluster: targets.Target) -> None:
        self._cluster, self.opened = cluster, []

    @property
    def addresses(self) -> tuple[str, ...]:
        """Of each broker."""
        return tuple(self._cluster.bootstrap_servers)

    @property
    def pid(self) -> int:
        """No row may look into Kafka's process."""
        pytest.skip(OURS_ALONE)

    def wire(self, broker: int = 1, *, client_id: str | None = "test", patience_s: float = PATIENCE_S) -> Wire:
        """A connection to a broker, closed when the test is over."""
        made = PatientWire(self.addresses[broker - 1], client_id, patience_s)
        self.opened.append(made)
        return made

    def control(self, *_arguments: Any, **_more: Any) -> Any:
        """There is no control plane."""
        pytest.skip(STEERED)

    def log_position(self) -> int:
        """What we log is ours."""
        pytest.skip(OURS_ALONE)

    def reset(self) -> None:
        """Without topics and groups, as if it had just started."""
        for address in self.addresses:
            side = Side(address)
            groups = [each.group_id for each in side.call(ApiKey.LIST_GROUPS, 4, ListGroupsRequest()).groups]
            side.call(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(groups))
            side.close()
        side = Side(self.addresses[0])
        found = side.call(ApiKey.METADATA, 12, MetadataRequest(None, False)).topics
        names = [DeleteTopicState(each.name) for each in found if not each.is_internal]
        side.call(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(timeout_ms=10_000, topics=names))
        side.close()
        for address in self.addresses:
            settled(address)

    def close(self) -> None:
        """End it."""
        self.finish_test()
        self._cluster.close()


class Kafkas(Servers):
    """Real clusters, by set-up."""

    def __init__(self) -> None:
        super().__init__()
        self._clusters: dict[str, OnKafka] = {}

    def fresh(self, **options: Any) -> Server:
        """A cluster with these settings and so many brokers, without topics and groups."""
        if set(options) - {"settings", "brokers"}:
            pytest.skip(OURS_ALONE)
        name = json.dumps(options, sort_keys=True)
        server = self._clusters.pop(name, None)
        if server is None:
            while len(self._clusters) >= MOST_CLUSTERS:
                self._clusters.pop(next(iter(self._clusters))).close()
            settings = {key: str(value) for key, value in options.get("settings", {}).items()}
            server = OnKafka(targets.start(options.get("brokers", 1), "kafka", settings))
        self._clusters[name] = server
        server.reset()
        return server

    def finish_test(self) -> None:
        """Hang up whatever the test opened, anywhere."""
        for server in self._clusters.values():
            server.finish_test()

    def close(self) -> None:
        """End all of them."""
        for server in self._clusters.values():
            server.close()
        self._clusters.clear()


@pytest.fixture(scope="session")
def kafkas() -> Iterator[Kafkas]:
    """The session's real clusters."""
    running = Kafkas()
    yield running
    running.close()


if TARGET == "kafka":

    @pytest.fixture
    def broker_with(kafkas: Kafkas) -> Iterator[BrokerWith]:
        """A factory of real clusters."""
        yield kafkas.fresh
        kafkas.finish_test()
