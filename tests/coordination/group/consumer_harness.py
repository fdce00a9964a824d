"""Members of consumer groups on the machine's bench, and a cluster of topics that tests make and grow."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from broker.coordination.group.modern.consumer import validation
from broker.coordination.group.modern.consumer.group import ConsumerGroup
from broker.coordination.group.modern.consumer.heartbeat import Sender
from broker.coordination.group.modern.consumer.member import Member
from broker.coordination.group.modern.target_assignment import assignor_names
from broker.coordination.group.outcome_builder import GroupOutcome
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from tests.coordination.group.harness import Answer, Context, G


@dataclass(frozen=True)
class Topic:
    """A topic; its partitions' racks are empty."""

    name: str
    id: UUID
    partition_count: int

    @property
    def racks(self) -> Iterable[Iterable[str]]:
        """None."""
        return [()] * self.partition_count


@dataclass
class Cluster:
    """Topics by name; every change is a version."""

    by_name: dict[str, Topic] = field(default_factory=dict)
    version: int = 0
    newest_version: int = 0

    def create(self, name: str, partitions: int) -> UUID:
        """A new topic's id."""
        self.version += 1
        self.newest_version = self.version
        self.by_name[name] = Topic(name, UUID(int=self.version << 64 | 7), partitions)
        return self.by_name[name].id

    def grow(self, name: str, partitions: int) -> None:
        """More partitions."""
        self.version += 1
        self.by_name[name] = Topic(name, self.by_name[name].id, partitions)

    def delete(self, name: str) -> None:
        """No such topic."""
        self.version += 1
        del self.by_name[name]

    def named(self, name: str) -> Topic | None:
        """The topic of that name."""
        return self.by_name.get(name)

    def of_id(self, topic_id: UUID) -> Topic | None:
        """The topic of that id."""
        return next((topic for topic in self.by_name.values() if topic.id == topic_id), None)

    def names(self) -> Iterable[str]:
        """All of them."""
        return self.by_name


Owned = dict[UUID, list[int]]


@dataclass
class Consumer:
    """A member; ``epoch`` and ``owned`` are those of its last answer."""

    context: Context
    member_id: str = "m1"
    topics: Sequence[str] | None = ("foo",)
    instance_id: str | None = None
    regex: str | None = None
    rebalance_ms: int = 60_000
    epoch: int = 0
    owned: Owned = field(default_factory=dict)

    def ask(self, epoch: int | None = None, **fields: Any) -> Answer:
        """Send one heartbeat; fields that are not given are null."""
        if isinstance(fields.get("topic_partitions"), dict):
            fields["topic_partitions"] = [TopicPartitions(*each) for each in fields["topic_partitions"].items()]
        fields.setdefault("topic_partitions", None)
        member_epoch = self.epoch if epoch is None else epoch
        request = ConsumerGroupHeartbeatRequest(G, self.member_id, member_epoch, self.instance_id, **fields)
        sender = Sender("client", "/127.0.0.1", lambda _: True)
        context = self.context

        def heartbeat(to: Answer) -> GroupOutcome:
            assignors = assignor_names(context.settings)
            validation.check(request, assignors, makes_own_id=True)  # as the handler does
            return context.machine.consumers.heartbeat(request, sender, context.now_ms, to)

        return context.ask(heartbeat)

    def beat(self, epoch: int | None = None, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """Send a heartbeat that succeeds, and take over its epoch and assignment."""
        answer = self.ask(epoch, **fields).message
        assert isinstance(answer, ConsumerGroupHeartbeatResponse), answer
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            reported = answer.assignment.topic_partitions
            self.owned = {each.topic_id: list(each.partitions) for each in reported if each.topic_id is not None}
        return answer

    def join(self, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """The first heartbeat."""
        return self.beat(0, **{**self._all, "topic_partitions": [], **fields})

    @property
    def _all(self) -> dict[str, Any]:
        return {
            "rebalance_timeout_ms": self.rebalance_ms,
            "subscribed_topic_names": self.topics,
            "subscribed_topic_regex": self.regex,
        }

    def refused(self, epoch: int | None = None, **fields: Any) -> ErrorCode:
        """The code of a heartbeat that is refused."""
        answer = self.ask(epoch, **fields).message
        assert isinstance(answer, KafkaError), answer
        return answer.code

    def keeps_up(self) -> ConsumerGroupHeartbeatResponse:
        """Send a heartbeat that confirms the last assignment."""
        return self.beat(topic_partitions=dict(self.owned))

    @property
    def seen(self) -> Member:
        """The member as the coordinator has it."""
        return group(self.context).member(self.member_id)


def group(context: Context) -> ConsumerGroup:
    """The consumer group."""
    consumer_group = context.machine.groups[G]
    assert isinstance(consumer_group, ConsumerGroup)
    return consumer_group


def held_by_two(context: Context) -> list[tuple[UUID, int]]:
    """Partitions that two members have; one of them may be giving them up."""
    seen: set[tuple[UUID, int]] = set()
    twice = []
    for member in group(context).members.values():
        for each in (member.assigned, member.revoking):
            for topic_id, partitions in each.items():
                for partition in partitions:
                    if (topic_id, partition) in seen:
                        twice.append((topic_id, partition))
                    seen.add((topic_id, partition))
    return twice
