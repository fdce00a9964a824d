"""Metrics of groups and partitions with the names of kafka_exporter, which dashboards and alerts for Kafka expect."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from broker.control.coordinators import group_coordinators
from broker.control.topics import log_of

if TYPE_CHECKING:
    from prometheus_client.core import GaugeMetricFamily, Metric

    from broker.cluster.cluster import Cluster

T = TypeVar("T")
_STEP = 64
"""The number of samples in a part of a family, between two pauses.

Few, so that clients do not wait; asking the clock at each would cost more.
"""
_PARTITION = ("topic", "partition")
_OFFSET = ("consumergroup", "topic", "partition")


def groups_and_partitions(cluster: "Cluster") -> "Iterator[Metric]":
    """Yield the families; one with many samples comes in parts."""
    yield _family("brokers", "Running brokers", [], [([], sum(node.up for node in cluster.nodes.values()))])
    topics = [([name], float(len(topic.partitions))) for name, topic in sorted(cluster.image.topics.items())]
    for part in _parts(topics):
        yield _family("topic_partitions", "Partitions of a topic", ["topic"], part)
    yield from _partitions(cluster)
    yield from _groups(cluster)


def _partitions(cluster: "Cluster") -> "Iterator[Metric]":
    places = sorted(cluster.partitions)
    names = (
        ("topic_partition_current_offset", "High watermark"),
        ("topic_partition_oldest_offset", "Log start offset"),
        ("topic_partition_under_replicated_partition", "1 if not all replicas are in sync"),
    )
    for at, (name, text) in enumerate(names):
        for part in _parts(places):
            samples = [([topic, str(index)], _values(cluster, (topic, index))[at]) for topic, index in part]
            yield _family(name, text, _PARTITION, [(labels, value) for labels, value in samples if value is not None])


def _values(cluster: "Cluster", place: tuple[str, int]) -> Sequence[float | None]:
    """Return the values of a partition in the order of the metrics' names; None if unknown."""
    partition = cluster.partitions.get(place)
    if partition is None:  # deleted meanwhile
        return None, None, None
    state, log = partition.state, log_of(partition)
    ends = (None, None) if log is None else (log.high_watermark, log.log_start_offset)
    return *ends, float(len(state.isr) < len(state.replicas))


def _groups(cluster: "Cluster") -> "Iterator[Metric]":
    members: list[tuple[list[str], float]] = []
    offsets: list[tuple[list[str], float]] = []
    lags: list[tuple[list[str], float]] = []
    for _, coordinator in group_coordinators(cluster):
        for group_id, group in coordinator.machine.groups.items():
            name = str(group_id)
            members.append(([name], float(len(getattr(group, "members", ())))))  # simple groups have no members
            for topic, partitions in coordinator.machine.offsets.topics(group_id).items():
                for index, offset in partitions.items():
                    hosted = cluster.partitions.get((topic, index))
                    log = None if hosted is None else log_of(hosted)
                    labels, committed = [name, topic, str(index)], offset.commit.offset
                    offsets.append((labels, committed))
                    lags.append((labels, -1 if log is None else max(log.high_watermark - committed, 0)))
    for name, text, names, samples in (
        ("consumergroup_members", "Members of a group", ("consumergroup",), members),
        ("consumergroup_current_offset", "Committed offset", _OFFSET, offsets),
        ("consumergroup_lag", "Records from the committed offset to the high watermark; -1 if unknown", _OFFSET, lags),
    ):
        for part in _parts(sorted(samples)):
            yield _family(name, text, names, part)


def _parts(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield parts of rows, at least one, so that a family without samples is present too."""
    for at in range(0, max(len(rows), 1), _STEP):
        yield rows[at : at + _STEP]


def _family(
    name: str, text: str, labels: Sequence[str], samples: Sequence[tuple[Sequence[str], float]]
) -> "GaugeMetricFamily":
    from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415 - slow to import

    family = GaugeMetricFamily(f"kafka_{name}", text, labels=labels)
    for each, value in samples:
        family.add_metric(each, value)
    return family
