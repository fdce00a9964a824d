"""Shared by the handlers of group APIs: authorization, access to the coordinator, checks of topics."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar, cast
from uuid import UUID

from broker.coordination.coordinators import GROUP_TOPIC
from broker.coordination.group.responses import error_for_clients
from broker.coordination.metadata.image import ClusterImage
from broker.coordination.runtime import Token
from broker.request.answers import Disconnect
from broker.request.connection import Connection
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.response_budget import Allowance
from broker.settings.releases import Behaviour
from broker.time.clock import Slices
from protocol.deferred import dataclass
from protocol.errors import ErrorCode, KafkaError
from protocol.java import computed_order, copied_capacity, reserved_capacity, string_hash, table_order
from protocol.scala import topic_partition_hash

if TYPE_CHECKING:
    from broker.coordination.coordinators import GroupCoordinator
    from broker.coordination.group.machine import GroupMachine
    from broker.coordination.group.outcome_builder import GroupOutcome

R = TypeVar("R")


def require_group(operation: AclOperation, group_id: str, ctx: RequestContext, *, named: bool = True) -> None:
    """Check authorization and group id, before the coordinator is looked up (groups 0.6).

    Raises:
        KafkaError: GROUP_AUTHORIZATION_FAILED; INVALID_GROUP_ID for "", unless the API accepts it (``named=False``).
    """
    if not ctx.authorized(operation, ResourceType.GROUP, group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if named and not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)


async def ask_coordinator(
    group_id: str, ctx: RequestContext, operation: "Callable[[GroupMachine, int, Token[R]], GroupOutcome]"
) -> R:
    """Send an operation to the group's coordinator on this broker.

    The operation is performed in any case. A response that takes long, such as JoinGroup's, is awaited only while the
    client is connected: otherwise a client that joins and disconnects repeatedly would leave a connection each time.

    Raises:
        Disconnect: the client has disconnected.
        KafkaError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, the coordinator's own error, or its log's error as
            the
            code that clients know (groups 0.6.3).
    """
    try:
        answer = ctx.node.group_coordinator(group_id).begin(operation, ctx)
        return await (answer if answer.done() else _while_there(answer, ctx.connection))
    except KafkaError as error:
        raise KafkaError(error_for_clients(error.code), error.message) from error


def serves_consumer_groups(ctx: RequestContext) -> bool:
    """Whether this broker supports the consumer group protocol (groups C.2.1)."""
    level = ctx.cluster.image.features.get("group.version", 0)
    return level >= 1 and "consumer" in ctx.node.settings.list("group.coordinator.rebalance.protocols")


def serves_streams_groups(ctx: RequestContext) -> bool:
    """Whether this broker supports the streams group protocol (groups E.1.1)."""
    level = ctx.cluster.image.features.get("streams.version", 0)
    return level >= 1 and "streams" in ctx.node.settings.list("group.coordinator.rebalance.protocols")


_GONE = object()


async def _while_there(answer: "Token[R]", connection: Connection) -> R:
    def give_up() -> None:
        if not answer.done():
            answer.set_result(cast("R", _GONE))  # an exception and this frame would reference each other

    connection.watch(give_up)
    if connection.lost:
        give_up()
    try:
        outcome = await answer
    finally:
        connection.unwatch(give_up)
    if outcome is _GONE:
        raise Disconnect("the client left before the group's answer")
    return outcome


class _Described(Protocol):
    @property
    def members(self) -> Sequence[Any]: ...


D = TypeVar("D", bound=_Described)


async def described(
    group_ids: Sequence[str], ctx: RequestContext, describe: Callable[[str, RequestContext], D]
) -> list[D]:
    """Describe each group as often as it is listed, serving other requests in between.

    Raises:
        KafkaError: INVALID_REQUEST if the response would have too many members.
    """
    groups: list[D] = []
    allowance, slices = Allowance(), Slices()
    for group_id in in_order_described(group_ids, ctx):
        await slices.pause()
        groups.append(describe(group_id, ctx))
        allowance.take(len(groups[-1].members))
    return groups


def in_order_described(group_ids: Sequence[str], ctx: RequestContext) -> list[str]:
    """Order groups as in Kafka's describe responses: denied ones first, then by the hash of offsets partitions.

    Follows ``KafkaApis.handleDescribeGroupsRequest`` and ``GroupCoordinatorService.describeGroups``, which collects the
    groups of each partition of the offsets topic, repeated ones included.
    """
    if not ctx.release.has(Behaviour.GROUPS_DESCRIBED_BY_PARTITION):
        return list(group_ids)
    denied: list[str] = []
    described: list[str] = []
    for group_id in group_ids:
        may = ctx.authorized(AclOperation.DESCRIBE, ResourceType.GROUP, group_id)
        (described if may else denied).append(group_id)
    return [*denied, *chain.from_iterable(_by_partition(described, ctx))]


def in_order_deleted(group_ids: Iterable[str], ctx: RequestContext) -> list[str]:
    """Order groups as in Kafka's DeleteGroups responses: by the hash of offsets partitions, then denied ones.

    Follows ``KafkaApis.handleDeleteGroupsRequest`` and ``GroupCoordinatorService.deleteGroups``, which keeps the groups
    of a partition in a set.
    """
    denied: list[str] = []
    deleted: list[str] = []
    for group_id in group_ids:
        may = ctx.authorized(AclOperation.DELETE, ResourceType.GROUP, group_id)
        (deleted if may else denied).append(group_id)
    if not ctx.release.has(Behaviour.GROUPS_DESCRIBED_BY_PARTITION):
        return [*deleted, *denied]
    hashed = [table_order(each, string_hash, copied_capacity(len(each))) for each in _by_partition(deleted, ctx)]
    return [*chain.from_iterable(hashed), *denied]


def coordinators_in_order(ctx: RequestContext) -> "list[GroupCoordinator]":
    """Return this broker's group coordinators in Java's order of partitions (``CoordinatorRuntime.partitions``)."""
    shards = ctx.node.coordinators.groups
    order = table_order(list(shards), _hash_of_offsets_partition, copied_capacity(len(shards)))
    return [shards[partition] for partition in order]


def _by_partition(group_ids: Iterable[str], ctx: RequestContext) -> list[list[str]]:
    by_partition: dict[int, list[str]] = {}
    for group_id in group_ids:
        by_partition.setdefault(ctx.node.coordinating_partition(GROUP_TOPIC, group_id), []).append(group_id)
    order = computed_order(by_partition, _hash_of_offsets_partition, reserved_capacity(0))
    return [by_partition[partition] for partition in order]


def _hash_of_offsets_partition(partition: int) -> int:
    return topic_partition_hash((GROUP_TOPIC, partition))


def coordinator(group_id: str, ctx: RequestContext) -> "GroupMachine":
    """Return the group's coordinator on this broker, for read-only operations.

    Raises:
        KafkaError: NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
    """
    runtime = ctx.node.group_coordinator(group_id)
    runtime.check_active()
    return runtime.machine


# --- topics of a request ---------------------------------------------------------------------------------------------


class _Topic(Protocol):
    name: str
    partitions: Sequence[Any]

    def changed(self, **values: Any) -> Self: ...


T = TypeVar("T", bound=_Topic)
A = TypeVar("A", bound=_Topic)


@dataclass(slots=True)
class TopicSplit(Generic[T]):
    """A request's topics: those for the coordinator, and failed ones with the error of some partitions."""

    passed: list[T] = field(default_factory=list)
    failed: list[tuple[T, Sequence[Any], ErrorCode]] = field(default_factory=list)


def split_topics(
    topics: Iterable[T], ctx: RequestContext, resolve: Callable[[T, ClusterImage], T | None] = lambda topic, _: topic
) -> TopicSplit[T]:
    """Split topics by existence and authorization; partitions that do not exist fail, the topic's others pass.

    ``resolve`` returns a copy of a topic with the name for its id, or ``None`` if the id is unknown. Id, permission,
    existence: the order of groups B.1 and transactions C.4 O3 to O5.
    """
    split: TopicSplit[T] = TopicSplit()
    image = ctx.cluster.image
    for requested in topics:
        topic = resolve(requested, image)
        if topic is None:
            split.failed.append((requested, requested.partitions, ErrorCode.UNKNOWN_TOPIC_ID))
            continue
        if not ctx.authorized(AclOperation.READ, ResourceType.TOPIC, topic.name):
            split.failed.append((topic, topic.partitions, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            continue
        known = image.topics.get(topic.name)
        existing = () if known is None else known.partitions
        missing = [each for each in topic.partitions if each.partition_index not in existing]
        if missing or known is None:
            split.failed.append((topic, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            topic = topic.changed(partitions=[each for each in topic.partitions if each.partition_index in existing])
        if topic.partitions:
            split.passed.append(topic)
    return split


def merge_topics(
    failed: list[tuple[T, Sequence[Any], ErrorCode]],
    answered: Sequence[A],
    answer: Callable[[T, Sequence[Any], ErrorCode], A],
) -> list[A]:
    """Build the topics of a response: failed ones first, then the coordinator's, with one entry per topic.

    If none failed, a topic that was listed twice has two entries (OffsetCommitResponse.Builder).

    ``answer`` builds a topic of the response: one code for some partitions of a topic of the request.
    """
    if not failed:
        return list(answered)
    topics: dict[tuple[str, UUID | None], A] = {}
    partitions: dict[tuple[str, UUID | None], list[Any]] = {}  # extended in place: a topic may be repeated often
    for topic in (*(answer(*each) for each in failed), *answered):
        identity = _identity(topic)
        if identity in topics:
            partitions[identity].extend(topic.partitions)
        else:
            topics[identity] = topic
            topic.partitions = partitions[identity] = list(topic.partitions)
    return list(topics.values())


def _identity(topic: _Topic) -> tuple[str, UUID | None]:
    return topic.name, getattr(topic, "topic_id", None)
