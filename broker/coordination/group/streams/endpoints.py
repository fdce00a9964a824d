"""The topic partitions behind the endpoints of a group's members (groups E.7; ``EndpointToPartitionsManager``)."""

from collections.abc import Iterable, Iterator, Sequence

from broker.coordination.group.modern.topics import Topics
from broker.coordination.group.rules import STREAMS_HEARTBEAT
from broker.coordination.group.streams.configuration import Configured
from broker.coordination.group.streams.member import Member
from broker.coordination.group.streams.tasks import Tasks, in_java_order
from broker.coordination.reasons import Refusal
from protocol.errors import ErrorCode
from protocol.java import copied_capacity, string_hash, table_order
from protocol.messages.streams_group_heartbeat import Endpoint, EndpointToPartitions, TopicPartition


class EndpointPartitions:
    """Lists the inputs of members' tasks, for a topology and the topics that exist.

    ``newer``: as in 4.4, which leaves out a topic that has no partition of the tasks' numbers. 4.3 lists as many of the
    numbers as the topic has partitions.
    """

    def __init__(self, configured: Configured, topics: Topics, *, newer: bool) -> None:
        self._configured, self._topics, self._newer = configured, topics, newer

    def of_members(self, members: Iterable[Member]) -> list[EndpointToPartitions]:
        """One entry for each member with an endpoint: the inputs of its active tasks, and of its copies.

        Raises:
            KafkaError: UNKNOWN_SERVER_ERROR, as Kafka, which expects subtopologies and all inputs of assigned tasks.
        """
        return [
            EndpointToPartitions(
                Endpoint(member.user_endpoint.host, member.user_endpoint.port),
                list(self._partitions(member.assigned.undated.active)),
                [
                    *self._partitions(member.assigned.standby),
                    *self._partitions(member.assigned.warmup if self._newer else {}),
                ],
            )
            for member in members
            if member.user_endpoint is not None
        ]

    def _partitions(self, tasks: Tasks) -> Iterator[TopicPartition]:
        subtopologies = self._configured.subtopologies
        if subtopologies is None:
            raise _unexpected()
        for name, partitions in in_java_order(tasks):
            if name not in subtopologies:
                raise _unexpected()
            inputs = subtopologies[name].inputs
            for topic in table_order(inputs, string_hash, copied_capacity(len(inputs))):
                listed = self._listed(topic, sorted(partitions))
                if listed or not self._newer:
                    yield TopicPartition(topic, listed)

    def _listed(self, topic: str, partitions: Sequence[int]) -> list[int]:
        known = self._topics.named(topic)
        if known is None:
            raise _unexpected()
        if self._newer:
            return [each for each in partitions if each < known.partition_count]
        return list(partitions[: known.partition_count])


def _unexpected() -> Refusal:
    return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, *STREAMS_HEARTBEAT.row(".5"))
