"""Topology of a streams group as its members send it, after ``StreamsTopology``."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from protocol.deferred import dataclass
from protocol.java import string_hash, table_order
from protocol.log_records.streams_group import CopartitionGroup, KeyValue, StreamsTopology, Subtopology, TopicInfo
from protocol.messages.streams_group_heartbeat import TopicInfo as WireTopicInfo
from protocol.messages.streams_group_heartbeat import Topology as WireTopology


@dataclass(frozen=True, slots=True)
class Topology:
    """Subtopologies by id; ``readers``: input topic -> the subtopology that reads it.

    ``required_topics`` are all topics that the group needs, also changelogs, in the order of Kafka's hash table.
    """

    epoch: int
    subtopologies: Mapping[str, Subtopology]
    readers: Mapping[str, str] = field(compare=False)
    required_topics: Sequence[str] = field(compare=False)

    @classmethod
    def of(cls, value: StreamsTopology) -> "Topology":
        """Return the topology in a record; subtopologies in the order of Kafka's hash table."""
        by_id = {each.subtopology_id: each for each in value.subtopologies}
        ordered = {name: by_id[name] for name in table_order(list(by_id), string_hash)}
        readers = {topic: each.subtopology_id for each in ordered.values() for topic in input_topics(each)}
        named = (
            topic
            for each in ordered.values()
            for topic in (*input_topics(each), *(info.name for info in each.state_changelog_topics))
        )
        return cls(value.epoch, ordered, readers, table_order(list(dict.fromkeys(named)), string_hash))


def input_topics(subtopology: Subtopology) -> Iterator[str]:
    """Iterate over the input topics of a subtopology: source topics and repartition source topics."""
    yield from subtopology.source_topics
    for info in subtopology.repartition_source_topics:
        yield info.name


def recorded_topology(topology: WireTopology) -> StreamsTopology:
    """Return the record of a topology in a request."""
    return StreamsTopology(
        topology.epoch,
        tuple(
            Subtopology(
                each.subtopology_id,
                tuple(each.source_topics),
                tuple(each.source_topic_regex),
                _infos(each.state_changelog_topics),
                tuple(each.repartition_sink_topics),
                _infos(each.repartition_source_topics),
                tuple(
                    CopartitionGroup(
                        tuple(group.source_topics),
                        tuple(group.source_topic_regex),
                        tuple(group.repartition_source_topics),
                    )
                    for group in each.copartition_groups
                ),
            )
            for each in topology.subtopologies
        ),
    )


def named_topics(topology: WireTopology) -> list[str]:
    """Return all topics in a request's topology, each once, in the order of Kafka's checks (groups E.1.3)."""
    names: dict[str, None] = {}
    for each in topology.subtopologies:
        names.update(dict.fromkeys(each.source_topics))
        names.update(dict.fromkeys(each.repartition_sink_topics))
        names.update(dict.fromkeys(info.name for info in each.repartition_source_topics))
        names.update(dict.fromkeys(info.name for info in each.state_changelog_topics))
    return list(names)


def _infos(topics: Iterable[WireTopicInfo]) -> tuple[TopicInfo, ...]:
    return tuple(
        TopicInfo(
            each.name,
            each.partitions,
            each.replication_factor,
            tuple(KeyValue(config.key, config.value) for config in each.topic_configs),
        )
        for each in topics
    )
