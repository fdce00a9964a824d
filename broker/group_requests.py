"""What the handlers of group APIs share: permission, the way to the coordinator, topics it cannot be asked about."""

import asyncio
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, Self, TypeVar
from uuid import UUID

from broker.chain import Disconnect
from broker.context import AclOperation, Connection, RequestContext, ResourceType
from broker.coordination.group.answers import told_to_clients
from broker.coordination.group.machine import GroupMachine
from broker.coordination.outcome import Outcome
from protocol.errors import ErrorCode, KafkaError

_GROUP_OPERATIONS = (
    AclOperation.READ,
    AclOperation.DESCRIBE,
    AclOperation.DELETE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)


def require_group(operation: AclOperation, group_id: str, ctx: RequestContext, *, named: bool = True) -> None:
    """The checks that come before a group's coordinator is looked for (groups 0.6).

    Raises:
        KafkaError: GROUP_AUTHORIZATION_FAILED; INVALID_GROUP_ID for "", unless the API takes it (``named=False``).
    """
    if not ctx.authorized(operation, ResourceType.GROUP, group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if named and not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)


async def ask_coordinator(
    group_id: str, ctx: RequestContext, operation: Callable[[GroupMachine, int, Hashable], Outcome]
) -> Any:
    """Ask the group's coordinator on this broker.

    What is asked is done in any case. An answer that takes long, as JoinGroup's does, is waited for only as long as the
    peer is there: else a peer that joins and hangs up, over and over, would leave a connection each time.

    Raises:
        Disconnect: the peer has gone meanwhile.
        KafkaError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, what the coordinator says, or, under the name that
            clients know, what its log says (groups 0.6.3).
    """
    try:
        answer = ctx.node.groups_for(group_id).begin(operation)
        return await (answer if answer.done() else _while_there(answer, ctx.connection))
    except KafkaError as error:
        raise KafkaError(told_to_clients(error.code), error.message) from error


def serves_consumer_groups(ctx: RequestContext) -> bool:
    """Whether groups may use the consumer protocol here (groups C.2.1)."""
    level = ctx.cluster.image.features.get("group.version", 0)
    return level >= 1 and "consumer" in ctx.node.settings.list("group.coordinator.rebalance.protocols")


_GONE = object()


async def _while_there(answer: asyncio.Future[Any], connection: Connection) -> Any:
    def give_up() -> None:
        if not answer.done():
            answer.set_result(_GONE)  # an exception would hold this frame, and this frame the exception

    connection.watch(give_up)
    if connection.lost:
        give_up()
    try:
        found = await answer
    finally:
        connection.unwatch(give_up)
    if found is _GONE:
        raise Disconnect("the client left before the group's answer")
    return found


def coordinator(group_id: str, ctx: RequestContext) -> GroupMachine:
    """The group's coordinator on this broker, for questions that change nothing.

    Raises:
        KafkaError: NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
    """
    runtime = ctx.node.groups_for(group_id)
    runtime.check_active()
    return runtime.machine


def group_operations(group_id: str, ctx: RequestContext) -> int:
    """The operations that the requester may do on a group, as the bits of core B.3."""
    allowed = (op for op in _GROUP_OPERATIONS if ctx.authorized(op, ResourceType.GROUP, group_id))
    return sum(1 << op for op in allowed)


# --- topics of a request ---------------------------------------------------------------------------------------------


class _Topic(Protocol):
    name: str
    partitions: Sequence[Any]

    def changed(self, **values: Any) -> Self: ...


T = TypeVar("T", bound=_Topic)


@dataclass(slots=True)
class Sifted(Generic[T]):
    """A request's topics: those that the coordinator is asked about, and the others with the reason."""

    passed: list[T] = field(default_factory=list)
    failed: list[tuple[T, Sequence[Any], ErrorCode]] = field(default_factory=list)


def sift(topics: Iterable[T], ctx: RequestContext, *, by_id: bool = False) -> Sifted[T]:
    """Let pass what exists and may be read; ``by_id`` where topics are named by id (groups B.1).

    Topics that pass get name and id filled in; of a topic some of whose partitions do not exist, the others pass.
    """
    sifted: Sifted[T] = Sifted()
    image = ctx.cluster.image
    for topic in topics:
        topic_id: UUID | None = getattr(topic, "topic_id", None)
        known = image.topics_by_id.get(topic_id) if by_id and topic_id is not None else image.topics.get(topic.name)
        if by_id and known is None:
            sifted.failed.append((topic, topic.partitions, ErrorCode.UNKNOWN_TOPIC_ID))
            continue
        name = topic.name if known is None else known.name
        if not ctx.authorized(AclOperation.READ, ResourceType.TOPIC, name):
            sifted.failed.append((topic, topic.partitions, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            continue
        if known is None:
            sifted.failed.append((topic, topic.partitions, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        topic.name = known.name
        if hasattr(topic, "topic_id"):
            topic.topic_id = known.id
        missing = [each for each in topic.partitions if each.partition_index not in known.partitions]
        if missing:
            sifted.failed.append((topic, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            there = [each for each in topic.partitions if each.partition_index in known.partitions]
            topic = topic.changed(partitions=there)  # noqa: PLW2901
        if topic.partitions:
            sifted.passed.append(topic)
    return sifted


A = TypeVar("A", bound=_Topic)


def merged(
    failed: list[tuple[T, Sequence[Any], ErrorCode]], answered: Sequence[A], answer: "Answering[T, A]"
) -> list[A]:
    """The topics of a response: the failed ones first, then what the coordinator answered, one entry per topic."""
    topics = [answer(topic, partitions, code) for topic, partitions, code in failed]
    if not topics:
        return list(answered)
    places = {_identity(topic): topic for topic in topics}
    for topic in answered:
        known = places.get(_identity(topic))
        if known is None:
            topics.append(topic)
        else:
            known.partitions = [*known.partitions, *topic.partitions]
    return topics


Answering = Callable[[T, Sequence[Any], ErrorCode], A]
"""A topic of the response: that code for those partitions of a topic of the request."""


def _identity(topic: _Topic) -> tuple[str, UUID | None]:
    return topic.name, getattr(topic, "topic_id", None)
