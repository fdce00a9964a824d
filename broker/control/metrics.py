"""Prometheus metrics, computed at each scrape; serving requests costs nothing more."""

from collections.abc import Callable, Generator, Iterable, Iterator
from importlib import import_module
from itertools import accumulate, chain
from typing import TYPE_CHECKING

from anyio import to_thread
from starlette.responses import Response

from broker.control.coordinators import group_coordinators, transaction_coordinators
from broker.control.exporter_metrics import groups_and_partitions
from broker.control.request import ControlRequest
from broker.control.verbs import answers
from broker.control.watched import Watched
from broker.steering.journal.counts import LATENCY_BOUNDS_NS, Counts, Totals
from broker.steering.journal.entries import title
from broker.time.clock import in_slices
from protocol.log_records.transaction import TransactionState

if TYPE_CHECKING:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.samples import Sample

    from broker.cluster.cluster import Cluster
    from broker.control.hosting import Hosted

_STEP = 64
"""The number of partitions between two pauses.

Few, so that clients do not wait; asking the clock at each would cost more.
"""


@answers("metrics")
async def read(request: ControlRequest) -> Response:
    """Return the metrics in Prometheus' text format.

    At the address of the first cluster those of the others follow, with the label `cluster`, their id.
    """
    await to_thread.run_sync(import_module, "prometheus_client")  # slow, the first time
    from prometheus_client.exposition import CONTENT_TYPE_PLAIN_1_0_0  # noqa: PLC0415

    clusters = request.clusters
    others = () if clusters is None or request.source is not clusters.first.source else clusters.further
    return Response(await in_slices(_text(request.source, others)), media_type=CONTENT_TYPE_PLAIN_1_0_0)


def _text(source: Watched, others: "Iterable[Hosted]") -> Generator[None, None, bytes]:
    """Encode the metrics one family at a time; a family with many samples comes in parts."""
    from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415

    labelled: dict[str, list[Sample]] = {}
    for hosted in others:
        for family in _Gathered(hosted.source).collect():
            labelled.setdefault(family.name, []).extend(
                sample._replace(labels={**sample.labels, "cluster": hosted.id}) for sample in family.samples
            )
        yield
    text, name = bytearray(), ""
    for family in chain(_Gathered(source).collect(), _process()):
        family.samples += labelled.pop(family.name, ())
        registry = CollectorRegistry()
        registry.register(_One(family))
        lines = generate_latest(registry)
        if family.name == name:
            lines = lines.split(b"\n", 2)[2]  # without the HELP and TYPE lines
        text += lines
        name = family.name
        yield
    return bytes(text)


class _One:
    """A collector of one family."""

    def __init__(self, family: "Metric") -> None:
        self._family = family

    def collect(self) -> "Iterator[Metric]":
        """Yield the family."""
        yield self._family


class _Gathered:
    """The metrics of a cluster, as families of prometheus_client."""

    def __init__(self, source: Watched) -> None:
        self._source = source

    def collect(self) -> "Iterator[Metric]":
        """Yield all families, each computed when it is reached."""
        yield from self._requests()
        yield from self._answers()
        if self._source.own is not None:
            yield from _cluster_state(self._source.own)
            yield from _logs(self._source.own)
            yield from groups_and_partitions(self._source.own)
        yield from self._steering()

    def _requests(self) -> "Iterator[Metric]":
        totals_of_apis = sorted(self._source.journal.counts.by_api.items())
        rows: tuple[tuple[str, str, Callable[[Totals], float]], ...] = (
            ("requests", "Requests served", lambda totals: totals.requests),
            ("request_seconds", "Duration of requests, including waiting", lambda totals: totals.took_ns * 1e-9),
            ("received_bytes", "Bytes of requests", lambda totals: totals.in_bytes),
            ("sent_bytes", "Bytes of responses", lambda totals: totals.out_bytes),
        )
        for name, text, value in rows:
            family = _counter(name, text, ["api"])
            for key, totals in totals_of_apis:
                family.add_metric([title(key)], value(totals))
            yield family

    def _answers(self) -> "Iterator[Metric]":
        """Yield error codes of responses, requests to which faults applied, and latencies."""
        counts = self._source.journal.counts
        errors = _counter(
            "request_errors", "Responses with an error code; each distinct code in a response counts", ["api", "error"]
        )
        for (key, code), count in sorted(counts.errors.items()):
            errors.add_metric([title(key), code.name], count)
        yield errors
        faulted = _counter("faulted_requests", "Requests to which a fault applied", ["api"])
        for key, count in sorted(counts.faulted.items()):
            faulted.add_metric([title(key)], count)
        yield faulted
        yield _latencies(counts)

    def _steering(self) -> "Iterator[Metric]":
        source = self._source
        yield _one("faults", "Faults that are set", len(source.faults.faults))
        yield _one("fault_hits", "Hits of the faults that are set",
                   sum(fault.hits for fault in source.faults.faults.values()))  # fmt: skip
        yield _one("journal_entries", "Requests in the journal", source.journal.entries)
        yield _one("journal_bytes", "Memory that the journal takes", source.journal.bytes)


def _latencies(counted: Counts) -> "Metric":
    from prometheus_client.core import HistogramMetricFamily  # noqa: PLC0415 - as above

    name, text = "understudy_request_duration_seconds", "Duration of requests, including waiting"
    family = HistogramMetricFamily(name, text, labels=["api"])
    bounds = [*(f"{bound / 1e9:g}" for bound in LATENCY_BOUNDS_NS), "+Inf"]
    for key, counts in sorted(counted.latencies.items()):
        buckets = list(zip(bounds, map(float, accumulate(counts)), strict=True))
        family.add_metric([title(key)], buckets, counted.by_api[key].took_ns * 1e-9)
    return family


def _process() -> "Iterator[Metric]":
    """Yield memory, CPU time and open files, with the usual names of exporters; Linux only."""
    from prometheus_client import ProcessCollector  # noqa: PLC0415 - as above

    yield from ProcessCollector(registry=None).collect()


def _cluster_state(cluster: "Cluster") -> "Iterator[Metric]":
    yield _one("brokers_up", "Running brokers", sum(node.up for node in cluster.nodes.values()))
    connections = _gauge("connections", "Open connections", ["broker"])
    for node in cluster.nodes.values():
        connections.add_metric([str(node.id)], len(cluster.servers[node].connections.open))
    yield connections
    sessions = _gauge("fetch_sessions", "Fetch sessions of clients (KIP-227)", ["broker"])
    for node in cluster.nodes.values():
        sessions.add_metric([str(node.id)], len(node.sessions) if node.up else 0)
    yield sessions
    yield _one("topics", "Topics", len(cluster.image.topics))
    yield _one("partitions", "Partitions", len(cluster.partitions))
    leaderless = sum(state.leader == -1 for _, _, state in cluster.image.all_partitions())
    yield _one("partitions_without_leader", "Partitions without a leader", leaderless)
    yield _one("groups", "Groups", sum(len(r.machine.groups) for _, r in group_coordinators(cluster)))
    yield from _transactions(cluster)
    yield _one(
        "clock_ahead_seconds", "Seconds that the cluster's clock is ahead of real time", cluster.clock.pushed_ms / 1000
    )


def _transactions(cluster: "Cluster") -> "Iterator[Metric]":
    states = _gauge("transactional_ids", "Transactional ids by state of their transaction", ["state"])
    counts: dict[str, int] = {}
    began_ms = []
    for _, coordinator in transaction_coordinators(cluster):
        for record in coordinator.machine.transactions.values():
            counts[record.state.text] = counts.get(record.state.text, 0) + 1
            if record.state is TransactionState.ONGOING:
                began_ms.append(record.start_ms)
    for state, count in sorted(counts.items()):
        states.add_metric([state], count)
    yield states
    yield _one("open_transactions", "Open transactions", len(began_ms))
    age_ms = max(cluster.clock.now_ms() - min(began_ms), 0) if began_ms else 0
    yield _one(
        "oldest_open_transaction_seconds", "Age of the oldest open transaction, by the cluster's clock", age_ms / 1000
    )


def _logs(cluster: "Cluster") -> "Iterator[Metric]":
    places = sorted(cluster.partitions)
    for name, text in (
        ("log_end_offset", "Log end offset of the leader"),
        ("log_size_bytes", "Size of the leader's log"),
    ):
        for at in range(0, max(len(places), 1), _STEP):
            family = _gauge(name, text, ["topic", "partition"])
            for place in places[at : at + _STEP]:
                partition = cluster.partitions.get(place)
                log = None if partition is None else partition.logs.get(partition.state.leader)
                if log is not None:
                    value = log.segments.size if name == "log_size_bytes" else log.log_end_offset
                    family.add_metric([place[0], str(place[1])], value)
            yield family


def _counter(name: str, text: str, labels: list[str]) -> "CounterMetricFamily":
    from prometheus_client.core import CounterMetricFamily  # noqa: PLC0415 - as above

    return CounterMetricFamily(f"understudy_{name}", text, labels=labels)


def _gauge(name: str, text: str, labels: list[str]) -> "GaugeMetricFamily":
    from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415 - as above

    return GaugeMetricFamily(f"understudy_{name}", text, labels=labels)


def _one(name: str, text: str, value: float) -> "GaugeMetricFamily":
    family = _gauge(name, text, [])
    family.add_metric([], value)
    return family
