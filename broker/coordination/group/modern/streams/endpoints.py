"""Topic partitions by the user endpoints of a group's members (groups E.7; ``EndpointToPartitionsManager``)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from broker.coordination.group.modern.streams.configuration import Configured
from broker.coordination.group.modern.streams.member import Member
from broker.coordination.group.modern.streams.tasks import Tasks, in_java_order
from broker.coordination.group.modern.topics import Topics
from broker.coordination.group.rules import STREAMS_HEARTBEAT
from broker.coordination.reasons import Refusal
from protocol.deferred import dataclass
from protocol.errors import ErrorCode
from protocol.java import copied_capacity, string_hash, table_order
from protocol.messages.streams_group_heartbeat import Endpoint, EndpointToPartitions, TopicPartition


class EndpointPartitions:
    """Lists the input partitions of members' tasks, for a topology and the topics that exist.

    ``newer``: as in 4.4, which lists the tasks' partitions that the topic has, and omits a topic without any. 4.3 lists
    the first tasks' partitions, as many as the topic has partitions.
    """

    def __init__(self, configured: Configured, topics: Topics, *, newer: bool) -> None:
        self.configured, self._topics, self._newer = configured, topics, newer

    def of(self, member: Member) -> EndpointToPartitions | None:
        """Return the entry of a member with an endpoint: input partitions of its active tasks, and of its replicas.

        Raises:
            KafkaError: UNKNOWN_SERVER_ERROR if a subtopology or input topic of a task is missing, as in Kafka.
        """
        if member.user_endpoint is None:
            return None
        return EndpointToPartitions(
            Endpoint(member.user_endpoint.host, member.user_endpoint.port),
            list(self._partitions(member.assigned.undated.active)),
            [
                *self._partitions(member.assigned.standby),
                *self._partitions(member.assigned.warmup if self._newer else {}),
            ],
        )

    def _partitions(self, tasks: Tasks) -> Iterator[TopicPartition]:
        subtopologies = self.configured.subtopologies
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


@dataclass(slots=True)
class Endpoints:
    """Cache of a group's endpoint entries, until a member changes or the topology is configured again.

    After ``StreamsGroup.getOrComputeEndpointToPartitions``. Members are immutable: a changed one is another object.
    """

    _configured: Configured | None = None
    _cached: dict[str, tuple[Member, EndpointToPartitions | None]] = field(default_factory=dict)

    def listed(
        self, partitions: EndpointPartitions, others: Iterable[Member], member: Member
    ) -> list[EndpointToPartitions]:
        """Return the entries of the other members, then that of the updated member.

        Raises:
            KafkaError: UNKNOWN_SERVER_ERROR, as :meth:`EndpointPartitions.of`.
        """
        if self._configured is not partitions.configured:
            self._configured, self._cached = partitions.configured, {}
        entries: list[EndpointToPartitions | None] = []
        for other in others:
            cached = self._cached.get(other.member_id)
            if cached is None or cached[0] is not other:
                cached = self._cached[other.member_id] = other, partitions.of(other)
            entries.append(cached[1])
        return [each for each in (*entries, partitions.of(member)) if each is not None]

    def forget(self, member_id: str) -> None:
        """Drop the entry of a removed member."""
        self._cached.pop(member_id, None)


def _unexpected() -> Refusal:
    return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, *STREAMS_HEARTBEAT.row(".5"))
