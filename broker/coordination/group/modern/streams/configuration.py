"""Configured topologies: partition counts of internal topics, and missing topics (groups E.4).

After Kafka's ``InternalTopicManager``, ``RepartitionTopics``, ``CopartitionedTopicsEnforcer`` and ``ChangelogTopics``.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from enum import IntEnum
from heapq import heappop, heappush

from broker.coordination.group.modern.streams.topology import Topology, input_topics
from broker.coordination.group.modern.topics import Topics
from broker.coordination.group.rules import STREAMS_TOPOLOGY
from broker.coordination.reasons import Refusal
from protocol.deferred import dataclass
from protocol.errors import ErrorCode
from protocol.java import string_hash, table_order, utf16
from protocol.log_records.streams_group import CopartitionGroup, Subtopology, TopicInfo


class InvalidPartitioningError(Exception):
    """The partition counts of topics are incompatible: status 2 of a heartbeat."""


class PartitionCounts:
    """The partition counts of all topics of a topology; ``decided`` are those of internal topics.

    Raises:
        KafkaError: STREAMS_INVALID_TOPOLOGY.
        InvalidPartitioningError: if topics that must have equal counts do not.
    """

    def __init__(self, topology: Topology, copartitioned: Iterable[Sequence[str]], topics: Topics) -> None:
        """``copartitioned``: the result of :func:`copartition_groups`."""
        self._topics = topics
        self.decided: dict[str, int] = {}
        subtopologies = tuple(topology.subtopologies.values())
        self.decided.update(_repartition_counts(subtopologies, self))
        fixed = {info.name for each in subtopologies for info in each.repartition_source_topics if info.partitions != 0}
        flexible = {
            info.name for each in subtopologies for info in each.repartition_source_topics if info.partitions == 0
        }
        groups = tuple(copartitioned)
        counts_of_fixed = {topic: self.of(topic) for topic in fixed} if any(groups) else {}
        different = set(counts_of_fixed.values())
        common = different.pop() if len(different) == 1 else None
        for group in groups:
            self.decided.update(_enforced(group, counts_of_fixed, common, flexible, self))
        changelogs: dict[str, int] = {}
        for each in subtopologies:
            changelogs.update(_changelog_counts(each, self))
        self.decided.update(changelogs)  # last: a changelog may be an input of another subtopology

    def find(self, topic: str) -> int | None:
        """Return the count of an existing topic, else the decided one, or ``None``."""
        known = self._topics.named(topic)
        return self.decided.get(topic) if known is None else known.partition_count

    def of(self, topic: str) -> int:
        """Return the count of a topic. Raises UNKNOWN_SERVER_ERROR if it has none."""
        count = self.find(topic)
        if count is None:
            message = f"Number of partitions must be set for topic {topic}"
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, *STREAMS_TOPOLOGY, message)
        return count


def _repartition_counts(subtopologies: Sequence[Subtopology], counts: PartitionCounts) -> dict[str, int]:
    """Return the fixed counts, and for each other repartition sink topic the largest count of its inputs.

    Kafka iterates over all subtopologies until nothing changes; each decides its sinks once the count of an input is
    known, by the counts known then. Here a queue visits them in the same order, in linear time for a long chain.
    """
    decided = {
        info.name: info.partitions
        for each in subtopologies
        for info in each.repartition_source_topics
        if info.partitions != 0
    }
    known = ((index, _largest_input(each, decided, counts)) for index, each in enumerate(subtopologies))
    largest = {index: count for index, count in known if count is not None}
    readers: dict[str, list[int]] = {}
    for index, each in enumerate(subtopologies):
        for info in each.repartition_source_topics:
            readers.setdefault(info.name, []).append(index)
    due = [(1, index) for index in largest]  # (Kafka's round, subtopology)
    while due:
        turn, index = heappop(due)
        for sink in subtopologies[index].repartition_sink_topics:
            if sink in decided:
                continue
            decided[sink] = count = largest[index]
            for reader in readers.get(sink, ()):
                if reader not in largest:
                    heappush(due, (turn + (reader <= index), reader))
                largest[reader] = max(largest.get(reader, count), count)
    if any(sink not in decided for each in subtopologies for sink in each.repartition_sink_topics):
        raise _invalid(
            "Failed to compute number of partitions for all repartition topics. There may be loops in the topology "
            "that cannot be resolved."
        )
    if any(info.name not in decided for each in subtopologies for info in each.repartition_source_topics):
        raise _invalid(
            "Failed to compute number of partitions for all repartition topics, because a repartition source topic is "
            "never used as a sink topic."
        )
    return decided


def _largest_input(each: Subtopology, decided: Mapping[str, int], counts: PartitionCounts) -> int | None:
    known = [decided.get(info.name) for info in each.repartition_source_topics]
    known += [counts.find(topic) for topic in each.source_topics]
    return max((count for count in known if count is not None), default=None)


def copartition_groups(topology: Topology) -> list[list[str]]:
    """Return the topic names of each co-partition group, in the order of Kafka's hash set.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR if an index is out of range, as in Kafka.
    """
    groups: list[list[str]] = []
    for each in topology.subtopologies.values():
        repartitions = [info.name for info in each.repartition_source_topics]
        groups += [_names(each, group, repartitions) for group in each.copartition_groups]
    return groups


def _names(subtopology: Subtopology, group: CopartitionGroup, repartitions: Sequence[str]) -> list[str]:
    named: dict[str, None] = {}
    for indexes, topics in (
        (group.source_topics, subtopology.source_topics),
        (group.repartition_source_topics, repartitions),
    ):
        if any(not 0 <= at < len(topics) for at in indexes):
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, *STREAMS_TOPOLOGY)
        named.update(dict.fromkeys(topics[at] for at in indexes))
    return table_order(list(named), string_hash)


def _enforced(
    group: Sequence[str],
    fixed: Mapping[str, int],
    common: int | None,
    flexible: Collection[str],
    counts: PartitionCounts,
) -> dict[str, int]:
    """Return the common count of all repartition topics of a co-partition group (groups E.4.3).

    ``common`` is the count of all topics with a fixed count, if they agree. If several topics do not fit, the error
    names the first one in the order of Kafka's hash table.
    """
    if not group:
        return {}
    own = {topic: counts.of(topic) for topic in group if topic in fixed or topic in flexible}
    external = {topic: counts.of(topic) for topic in group if topic not in own}
    if external:
        count = _same(external)
    elif fixed:
        count = _same(fixed, shown=own) if common is None else common
    else:
        count = max(own.values())
    for topic in table_order(list(own), string_hash):
        before = own[topic]
        if topic in fixed and before != count:
            raise InvalidPartitioningError(
                f"Number of partitions [{before}] of repartition topic [{topic}] doesn't match number of partitions "
                f"[{count}] of the source topic."
            )
    return dict.fromkeys(own, count)


def _same(counts: Mapping[str, int], *, shown: Mapping[str, int] | None = None) -> int:
    if len(set(counts.values())) > 1:
        listed = counts if shown is None else shown
        pairs = ", ".join(f"{topic}={listed[topic]}" for topic in sorted(listed, key=utf16))
        raise InvalidPartitioningError(f"Following topics do not have the same number of partitions: [{{{pairs}}}]")
    return next(iter(counts.values()))


def _changelog_counts(each: Subtopology, counts: PartitionCounts) -> dict[str, int]:
    inputs = [counts.of(topic) for topic in input_topics(each)]
    if not inputs:
        raise _invalid(f"No source topics found for subtopology {each.subtopology_id}")
    return {info.name: max(inputs) for info in each.state_changelog_topics}


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.STREAMS_INVALID_TOPOLOGY, *STREAMS_TOPOLOGY, message)


_NAMED_TOPICS = 3  # in a status; the others are counted (groups E.4.1)


class Status(IntEnum):
    """Status codes of a heartbeat response (Kafka's ``StreamsGroupHeartbeatResponse.Status``)."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """An internal topic with its partition count; ``replication_factor`` is -1 for the broker's default."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ConfiguredSubtopology:
    """A subtopology with its number of tasks."""

    task_count: int
    source: Subtopology
    repartition_sources: tuple[TopicInfo, ...]
    changelogs: tuple[TopicInfo, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The topics that the subtopology's tasks read."""
        return tuple(dict.fromkeys(input_topics(self.source)))

    @property
    def is_stateful(self) -> bool:
        """Whether the subtopology's tasks have changelogs."""
        return bool(self.changelogs)


@dataclass(frozen=True, slots=True)
class Configured:
    """A configured topology: ready, or with the status that explains why it is not.

    ``subtopologies`` are sorted by id; ``None`` if partition counts could not be computed. ``missing`` are internal
    topics to create, ``requested`` those among them whose creation a heartbeat has requested (groups E.5).
    """

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    missing: tuple[InternalTopic, ...] = ()
    status: Status | None = None
    detail: str = field(default="")
    requested: set[str] = field(default_factory=set, compare=False)

    @property
    def is_ready(self) -> bool:
        """Whether tasks may be assigned."""
        return self.status is None


@dataclass(slots=True)
class Configuration:
    """The last configured topology of a group and the one before it, as in Kafka's ``TimelineObject``.

    ``writes`` counts the records of the shard. Requests that read committed state see a configuration only after a
    further record was written.
    """

    current: Configured | None = None
    _before: Configured | None = None
    _writes: int = -1

    def put(self, configured: Configured, writes: int) -> None:
        """Set the configured topology."""
        self._before = self.committed(writes)
        self.current, self._writes = configured, writes

    def committed(self, writes: int) -> Configured | None:
        """Return the configured topology that a StreamsGroupDescribe sees."""
        return self.current if writes > self._writes else self._before


def configure(topology: Topology, topics: Topics) -> Configured:
    """Compute the partition counts, and find the missing topics.

    Raises:
        KafkaError: STREAMS_INVALID_TOPOLOGY; UNKNOWN_SERVER_ERROR if a co-partition group has a topic that is not in
            the subtopology, even if source topics are missing, or if a subtopology lists a topic or setting twice.
    """
    groups = copartition_groups(topology)
    absent = {
        topic for each in topology.subtopologies.values() for topic in each.source_topics if topics.named(topic) is None
    }
    if absent:
        named = summarized(sorted(absent, key=utf16))
        return Configured(
            topology.epoch, None, status=Status.MISSING_SOURCE_TOPICS, detail=f"Source topics {named} are missing."
        )
    try:
        counts = PartitionCounts(topology, groups, topics)
        subtopologies = {
            name: _configured(topology.subtopologies[name], counts)
            for name in sorted(topology.subtopologies, key=utf16)
        }
        missing = _missing(topology, subtopologies, topics)
    except InvalidPartitioningError as error:
        return Configured(topology.epoch, None, status=Status.INCORRECTLY_PARTITIONED_TOPICS, detail=str(error))
    if not missing:
        return Configured(topology.epoch, subtopologies)
    return Configured(
        topology.epoch,
        subtopologies,
        missing,
        Status.MISSING_INTERNAL_TOPICS,
        f"Internal topics are missing: {summarized([topic.name for topic in missing])}",
    )


def summarized(names: Iterable[str]) -> str:
    """Return at most three of the names, and the number of the others."""
    listed = list(names)
    more = len(listed) - _NAMED_TOPICS
    return ", ".join(listed[:_NAMED_TOPICS]) + (f" and {more} additional topics" if more > 0 else "")


def _configured(subtopology: Subtopology, counts: PartitionCounts) -> ConfiguredSubtopology:
    return ConfiguredSubtopology(
        max(counts.of(topic) for topic in input_topics(subtopology)),
        subtopology,
        _counted_once(subtopology.repartition_source_topics, counts),
        _counted_once(subtopology.state_changelog_topics, counts),
    )


def _counted_once(infos: Sequence[TopicInfo], counts: PartitionCounts) -> tuple[TopicInfo, ...]:
    """Return topics in the order of Kafka's hash table, which refuses duplicate names."""
    by_name = {info.name: _counted(info, counts) for info in infos}
    if len(by_name) < len(infos):
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, *STREAMS_TOPOLOGY)
    return tuple(by_name[name] for name in table_order(list(by_name), string_hash))


def _counted(info: TopicInfo, counts: PartitionCounts) -> TopicInfo:
    """Return a topic with its partition count, and its settings in the order of Kafka's hash table."""
    partitions = info.partitions or counts.decided[info.name]
    configs = {config.key: config for config in info.topic_configs}
    if partitions < 1 or len(configs) < len(info.topic_configs):
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, *STREAMS_TOPOLOGY)
    in_order = tuple(configs[key] for key in table_order(list(configs), string_hash))
    return TopicInfo(info.name, partitions, info.replication_factor, in_order)


def _missing(
    topology: Topology, subtopologies: Mapping[str, ConfiguredSubtopology], topics: Topics
) -> tuple[InternalTopic, ...]:
    """Return the internal topics that do not exist, in the order of Kafka's hash table.

    Raises:
        InvalidPartitioningError: if one exists with another partition count.
    """
    wanted = {
        info.name: InternalTopic(
            info.name,
            info.partitions,
            info.replication_factor or -1,
            {config.key: config.value for config in info.topic_configs},
        )
        for each in subtopologies.values()
        for info in (*each.repartition_sources, *each.changelogs)
    }
    listed = table_order(list(wanted), string_hash)  # before existing topics are removed: Kafka's table does not shrink
    for name in topology.required_topics:
        topic = topics.named(name)
        expected = None if topic is None else wanted.pop(name, None)
        if topic is not None and expected is not None and topic.partition_count != expected.partitions:
            raise InvalidPartitioningError(
                f"Existing topic {name} has different number of partitions: expected {expected.partitions}, "
                f"found {topic.partition_count}"
            )
    return tuple(wanted[name] for name in listed if name in wanted)
