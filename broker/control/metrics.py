"""Prometheus metrics, gathered when they are asked for: serving requests pays nothing for them."""

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from starlette.responses import Response

from broker.control.asked import Asked
from broker.control.coordinators import runtimes
from broker.control.entries import title
from broker.node import GROUP_TOPIC, TRANSACTION_TOPIC

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from broker.cluster import Cluster


async def read(asked: Asked) -> Response:
    """Prometheus metrics in its text format."""
    await to_thread.run_sync(import_module, "prometheus_client")  # it takes its time, once
    from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415
    from prometheus_client.exposition import CONTENT_TYPE_PLAIN_1_0_0  # noqa: PLC0415

    registry = CollectorRegistry()
    registry.register(_Gathered(asked.cluster))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_1_0_0)


class _Gathered:
    """What a cluster is doing, as a collector of prometheus_client."""

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster

    def collect(self) -> "Iterator[Metric]":
        """All metrics, as of now."""
        yield from self._requests()
        yield from self._cluster_state()
        yield from self._logs()

    def _requests(self) -> "Iterator[Metric]":
        counted = self._cluster.journal.by_api
        rows = (
            ("requests", "Requests served", 0, 1),
            ("request_seconds", "Time that requests took, waiting included", 1, 1e-9),
            ("received_bytes", "Bytes of requests", 2, 1),
            ("sent_bytes", "Bytes of responses", 3, 1),
        )
        for name, text, at, unit in rows:
            family = _counter(name, text, ["api"])
            for key, counts in sorted(counted.items()):
                family.add_metric([title(key)], counts[at] * unit)
            yield family

    def _cluster_state(self) -> "Iterator[Metric]":
        cluster = self._cluster
        yield _one("brokers_up", "Brokers that run", sum(node.up for node in cluster.nodes.values()))
        connections = _gauge("connections", "Open connections", ["broker"])
        for node in cluster.nodes.values():
            connections.add_metric([str(node.id)], 0 if node.server is None else len(node.server.connections.open))
        yield connections
        yield _one("topics", "Topics", len(cluster.image.topics))
        yield _one("partitions", "Partitions", len(cluster.partitions))
        leaderless = sum(state.leader == -1 for _, _, state in cluster.image.all_partitions())
        yield _one("partitions_without_leader", "Partitions that nobody leads", leaderless)
        yield _one("groups", "Groups", sum(len(r.machine.groups) for _, r in runtimes(cluster, GROUP_TOPIC)))
        states = _gauge("transactional_ids", "Transactional ids, by the state of their transactions", ["state"])
        counts: dict[str, int] = {}
        for _, runtime in runtimes(cluster, TRANSACTION_TOPIC):
            for record in runtime.machine.transactions.values():
                counts[record.state.text] = counts.get(record.state.text, 0) + 1
        for state, count in sorted(counts.items()):
            states.add_metric([state], count)
        yield states
        yield _one("faults", "Faults that are set", len(cluster.faults.faults))
        yield _one("fault_hits", "Requests that the faults set now have met",
                   sum(fault.hits for fault in cluster.faults.faults.values()))  # fmt: skip
        yield _one("journal_entries", "Requests in the journal", cluster.journal.entries)
        yield _one("journal_bytes", "Memory that the journal takes", cluster.journal.bytes)
        yield _one("clock_ahead_seconds", "How far the cluster's clock is ahead", cluster.clock.pushed_ms / 1000)

    def _logs(self) -> "Iterator[Metric]":
        ends = _gauge("log_end_offset", "End of the leader's log", ["topic", "partition"])
        size = _gauge("log_size_bytes", "Size of the leader's log", ["topic", "partition"])
        for (topic, index), partition in sorted(self._cluster.partitions.items()):
            log = partition.logs.get(partition.state.leader)
            if log is not None:
                ends.add_metric([topic, str(index)], log.log_end_offset)
                size.add_metric([topic, str(index)], log.size_bytes)
        yield ends
        yield size


def _counter(name: str, text: str, labels: list[str]) -> Any:
    from prometheus_client.core import CounterMetricFamily  # noqa: PLC0415 - as above

    return CounterMetricFamily(f"understudy_{name}", text, labels=labels)


def _gauge(name: str, text: str, labels: list[str]) -> Any:
    from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415 - as above

    return GaugeMetricFamily(f"understudy_{name}", text, labels=labels)


def _one(name: str, text: str, value: float) -> Any:
    family = _gauge(name, text, [])
    family.add_metric([], value)
    return family
