"""Access to share coordinators, for partition leaders, group coordinators and requests (groups D.9)."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar
from uuid import UUID

from broker.coordination.coordinators import SHARE_TOPIC
from broker.coordination.group.responses import error_for_clients
from broker.coordination.share_state.machine import ShareMachine, ShareOutcome, StateWrite
from broker.coordination.share_state.persister import (
    Persister,
    ReadResult,
    SharePartitionKey,
    StateBatch,
    StateResult,
    SummaryResult,
)
from broker.request.context import AclOperation, ClusterView, RequestContext
from broker.request.topology import may_on_cluster
from broker.time.clock import Waiter, all_of
from protocol.deferred import dataclass
from protocol.errors import ErrorCode, KafkaError, texts_of
from protocol.java import HashTable, integer_hash, uuid_hash
from protocol.types import ZERO_UUID

if TYPE_CHECKING:
    from broker.coordination.coordinators import GroupCoordinator, ShareCoordinator
    from broker.coordination.group.modern.share.context import Offsets
    from broker.coordination.group.outcome_builder import InitializeShareState

ATTEMPTS = 5
"""The number of attempts while the share coordinator is unavailable, loading, or does not know the partition yet.

As in Kafka's ``PersisterStateManager``.
"""
BACKOFF_MS = 2000
"""The pause before the second attempt, in ms; it doubles with each further one.

Kafka's backoff begins with 1 s, but it counts an attempt before it asks how long to wait after it.
"""
_AGAIN = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
_TEXTS = texts_of(
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
)
(_UNEXPECTED,) = texts_of(ErrorCode.UNKNOWN_SERVER_ERROR).values()
_NOT_FOUND = "Error in find coordinator. Exhausted max retries to find coordinator without success."

R = TypeVar("R", bound=StateResult)
P = TypeVar("P")
Response = TypeVar("Response")
Operation = Callable[[ShareMachine, int, Hashable], ShareOutcome]


class SharePersister:
    """The :class:`~broker.coordination.share_state.persister.Persister` of one broker's process."""

    def __init__(self, cluster: ClusterView) -> None:
        self._cluster, self._closed = cluster, False

    def close(self) -> None:
        """See :class:`Persister`."""
        self._closed = True

    async def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> StateResult:
        """See :class:`Persister`."""
        return await self._ask(
            "initialize state",
            key,
            StateResult,
            lambda machine, now_ms, to: machine.initialize(key, state_epoch, start_offset, now_ms, to),
        )

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> ReadResult:
        """See :class:`Persister`."""
        return await self._ask(
            "read state", key, ReadResult, lambda machine, now_ms, to: machine.read(key, leader_epoch, now_ms, to)
        )

    async def write(
        self,
        key: SharePartitionKey,
        *,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> StateResult:
        """See :class:`Persister`."""
        change = StateWrite(state_epoch, leader_epoch, start_offset, delivery_complete_count, tuple(batches))
        return await self._ask(
            "write state", key, StateResult, lambda machine, now_ms, to: machine.write(key, change, now_ms, to)
        )

    async def delete(self, key: SharePartitionKey) -> StateResult:
        """See :class:`Persister`."""
        return await self._ask(
            "delete state", key, StateResult, lambda machine, now_ms, to: machine.delete(key, now_ms, to)
        )

    async def read_summary(self, key: SharePartitionKey, leader_epoch: int) -> SummaryResult:  # noqa: ARG002
        """See :class:`Persister`; like Kafka's coordinator, it ignores the leader epoch."""
        return await self._ask(
            "read state summary", key, SummaryResult, lambda machine, _now_ms, to: machine.summarize(key, to)
        )

    async def _ask(self, rpc: str, key: SharePartitionKey, kind: type[R], operation: Operation) -> R:
        """Call the coordinator until one answers, with pauses by the cluster's clock; errors name the RPC."""
        clock, runtime = self._cluster.clock, None
        for attempt in range(ATTEMPTS):
            if self._closed:
                return kind(ErrorCode.COORDINATOR_NOT_AVAILABLE, _NOT_FOUND)
            runtime = self._coordinator(key)
            result = await ask_share_coordinator(runtime, kind, operation)
            if result.error not in _AGAIN:
                message = f"Error in {rpc} RPC. {result.message or _UNEXPECTED}"
                return replace(result, message=message) if result.failed else result
            if attempt < ATTEMPTS - 1:
                await Waiter().wait(clock, clock.now_ms() + (BACKOFF_MS << attempt))
        if runtime is None:
            return kind(ErrorCode.COORDINATOR_NOT_AVAILABLE, _NOT_FOUND)
        return kind(result.error, f"Error in {rpc} RPC. Exhausted max retries to complete {rpc} RPC without success.")

    def _coordinator(self, key: SharePartitionKey) -> "ShareCoordinator | None":
        """Return the runtime at the leader of the key's partition; the topic is created when first needed."""
        cluster = self._cluster
        if SHARE_TOPIC not in cluster.image.topics:
            machine = cluster.metadata.machine
            cluster.metadata.submit(lambda _now_ms: machine.create_internal_topic(SHARE_TOPIC))
        for node in cluster.nodes.values():
            index = node.coordinating_partition(SHARE_TOPIC, key.coordinator_key)
            partition = cluster.image.partition(SHARE_TOPIC, index)
            leader = None if partition is None else cluster.nodes.get(partition.leader)
            return None if leader is None or leader.silent else leader.coordinators.share_states.get(index)
        return None


async def initialize_partitions(
    persister: Persister, group_id: str, state_epoch: int, offsets: "Offsets"
) -> dict[UUID, dict[int, StateResult]]:
    """Create the state of share partitions with these start offsets, concurrently, as Kafka's persister does.

    Returns the results by topic id and partition.
    """
    results = iter(
        await all_of(
            persister.initialize(SharePartitionKey(group_id, topic_id, partition), state_epoch, start)
            for topic_id, starts in offsets.items()
            for partition, start in starts.items()
        )
    )
    return {topic_id: {partition: next(results) for partition in starts} for topic_id, starts in offsets.items()}


async def delete_partitions(
    persister: Persister, group_id: str, partitions: Mapping[UUID, Iterable[int]]
) -> dict[UUID, list[StateResult]]:
    """Delete the state of share partitions, concurrently; return the results by topic id."""
    indexes = {topic_id: sorted(of_topic) for topic_id, of_topic in partitions.items()}
    results = iter(
        await all_of(
            persister.delete(SharePartitionKey(group_id, topic_id, partition))
            for topic_id, of_topic in indexes.items()
            for partition in of_topic
        )
    )
    return {topic_id: [next(results) for _ in of_topic] for topic_id, of_topic in indexes.items()}


async def initialize_state(persister: Persister, runtime: "GroupCoordinator", effect: "InitializeShareState") -> None:
    """Perform the effect of a group coordinator, and submit the result to its machine (groups D.2 I2)."""
    results = await initialize_partitions(persister, effect.group_id, effect.state_epoch, effect.offsets)
    partitions = {topic_id: list(by_partition) for topic_id, by_partition in results.items()}
    failed = any(result.failed for by_partition in results.values() for result in by_partition.values())
    runtime.submit(
        lambda now_ms: runtime.machine.shares.state_created(effect.group_id, partitions, now_ms, failed=failed)
    )


async def ask_share_coordinator(runtime: "ShareCoordinator | None", kind: type[R], operation: Operation) -> R:
    """Send an operation to a share coordinator; turn errors of its log, or its absence, into results."""
    try:
        if runtime is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        answer: R = await runtime.ask(operation)
    except KafkaError as error:
        code = error_for_clients(error.code)
        return kind(code, error.message)
    return answer


# --- the requests of other brokers -----------------------------------------------------------------------------------


class _Request(Protocol):
    group_id: str

    @property
    def topics(self) -> Sequence[Any]: ...


@dataclass(frozen=True, slots=True)
class StateRequests(Generic[R, P, Response]):
    """Answers one of the five requests about states of share partitions, at the share coordinator on this broker.

    ``rpc`` names the request in messages. A failure is ``partition_result(partition, error_code, message)``, a success
    ``success(partition, result)``, by default without fields. ``topic_result`` and ``response`` are the classes around.
    """

    rpc: str
    result: type[R]
    partition_result: Callable[[int, ErrorCode, str | None], P]
    topic_result: Callable[[UUID | None, list[P]], Any]
    response: Callable[[list[Any]], Response]
    success: Callable[[int, R], P] | None = None
    all_have_partitions: bool = True
    """Whether the response is empty if a topic has no partitions; as in KafkaApis, which misses it in one request."""

    async def handle(
        self, request: _Request, ctx: RequestContext, operation: Callable[[SharePartitionKey, Any], Operation]
    ) -> Response:
        """Do ``operation(key, partition of the request)`` for each partition.

        The results are in the order of Java's hash tables, by topic; of a partition named twice the last one counts.

        Raises:
            KafkaError: CLUSTER_AUTHORIZATION_FAILED; only brokers may send these requests.
        """
        # KafkaApis authorizes before it looks at the request: an empty one of a client is refused as well.
        if not may_on_cluster(ctx, AclOperation.CLUSTER_ACTION):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
        topics = request.topics
        if not request.group_id or (self.all_have_partitions and not all(topic.partitions for topic in topics)):
            return self.response([])
        partitions = [
            (SharePartitionKey(request.group_id, topic.topic_id or ZERO_UUID, each.partition), each)
            for topic in topics
            for each in topic.partitions
        ]
        results = await all_of(self._partition_result(ctx, key, operation(key, each)) for key, each in partitions)
        by_topic: HashTable[UUID, HashTable[int, P]] = HashTable(uuid_hash)
        for (key, _), result in zip(partitions, results, strict=True):
            by_topic.get_or_create(key.topic_id, _results_of_topic).put(key.partition, result)
        return self.response(
            [
                self.topic_result(topic_id, [each for _, each in of_topic.items()])
                for topic_id, of_topic in by_topic.items()
            ]
        )

    async def _partition_result(self, ctx: RequestContext, key: SharePartitionKey, operation: Operation) -> P:
        result = await self._ask(ctx, key, operation)
        if result.failed or self.success is None:
            return self.partition_result(key.partition, result.error, result.message)
        return self.success(key.partition, result)

    async def _ask(self, ctx: RequestContext, key: SharePartitionKey, operation: Operation) -> R:
        try:
            result: R = await ctx.node.share_coordinator(key.coordinator_key).ask(operation)
        except KafkaError as error:
            code = error_for_clients(error.code)
            return self.result(code, f"Unable to {self.rpc}: {error.message or _TEXTS.get(code, _UNEXPECTED)}")
        return result

    def refuse(self, request: _Request, error: KafkaError, version: int) -> Response:  # noqa: ARG002
        """Put the error on every partition."""
        return self.response(
            [
                self.topic_result(
                    topic.topic_id,
                    [self.partition_result(each.partition, error.code, error.message) for each in topic.partitions],
                )
                for topic in request.topics
            ]
        )


def _results_of_topic() -> HashTable[int, Any]:
    return HashTable(integer_hash)
