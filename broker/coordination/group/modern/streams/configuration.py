"""Configured topologies: partition counts and missing topics (groups E.4), after ``InternalTopicManager``."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from broker.coordination.group.modern.streams.partition_counts import (
    InvalidPartitioningError,
    PartitionCounts,
    copartition_groups,
)
from broker.coordination.group.modern.streams.topology import Topology, input_topics
from broker.coordination.group.modern.topics import Topics
from broker.coordination.group.rules import STREAMS_TOPOLOGY
from broker.coordination.reasons import Refusal
from protocol.errors import ErrorCode
from protocol.java import string_hash, table_order, utf16
from protocol.log_records.streams_group import Subtopology, TopicInfo

_NAMED_TOPICS = 3


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
