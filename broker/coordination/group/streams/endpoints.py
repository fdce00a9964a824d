"""The topic partitions behind the endpoints of a group's members (groups E.7; ``EndpointToPartitionsManager``)."""

from collections.abc import Iterable, Iterator, Mapping

from broker.coordination.group.modern.topics import Topics
from broker.coordination.group.streams.configuration import ConfiguredSubtopology
from broker.coordination.group.streams.member import Member
from broker.coordination.group.streams.tasks import Tasks, in_java_order
from protocol.java import copied_capacity, string_hash, table_order
from protocol.messages.streams_group_heartbeat import Endpoint, EndpointToPartitions, TopicPartition


def partitions_by_endpoint(
    members: Iterable[Member], subtopologies: Mapping[str, ConfiguredSubtopology], topics: Topics
) -> list[EndpointToPartitions]:
    """One entry for each member with an endpoint: the inputs of its active and of its standby tasks."""
    return [
        EndpointToPartitions(
            Endpoint(member.user_endpoint.host, member.user_endpoint.port),
            list(_partitions(member.assigned.undated.active, subtopologies, topics)),
            list(_partitions(member.assigned.standby, subtopologies, topics)),
        )
        for member in members
        if member.user_endpoint is not None
    ]


def _partitions(
    tasks: Tasks, subtopologies: Mapping[str, ConfiguredSubtopology], topics: Topics
) -> Iterator[TopicPartition]:
    for name, partitions in in_java_order(tasks):
        if name not in subtopologies:
            continue
        inputs = subtopologies[name].inputs
        for topic in table_order(inputs, string_hash, copied_capacity(len(inputs))):
            known = topics.named(topic)
            listed = sorted(partitions)
            if known is not None:
                yield TopicPartition(topic, listed[: known.partition_count])
