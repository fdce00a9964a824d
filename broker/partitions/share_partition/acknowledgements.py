"""Acknowledgements of ShareAcknowledge and ShareFetch: validated, then applied by partition (groups D.6)."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from broker.coordination.share_state.persister import SharePartitionKey
from broker.partitions.share_partition.machine.acknowledge import Acknowledgement, AcknowledgeType, Change
from broker.partitions.share_partition.partition import SharePartition
from broker.partitions.share_partition.partitions import SharePartitions
from broker.partitions.share_partition.sessions import PartitionKey, SessionKey
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.share_groups import ERROR_TEXTS
from broker.time.clock import all_of
from protocol import features
from protocol.errors import ErrorCode, KafkaError


class AckResult(NamedTuple):
    """The result of acknowledgements for one partition."""

    code: ErrorCode = ErrorCode.NONE
    message: str | None = None


class _Begun(NamedTuple):
    partition: SharePartition
    change: Change


class _Request(Protocol):
    is_renew_ack: bool

    @property
    def topics(self) -> Sequence[Any]: ...


class Acknowledging:
    """The acknowledgements of one request, begun immediately; the records change state when the changes are written.

    Partitions are independent; those without batches are in the response only if others have batches (groups D.6).
    """

    def __init__(
        self, request: _Request, ctx: RequestContext, shares: SharePartitions, group_id: str, member_id: str
    ) -> None:
        self._refused: dict[PartitionKey, AckResult] = {}
        self._empty: dict[PartitionKey, AckResult] = {}
        self._begun: dict[PartitionKey, _Begun | AckResult] = {}
        self.failure: KafkaError | None = None
        """The error that fails the whole request, after the changes of earlier partitions are written."""
        for key, batches in _by_partition(request).items():
            error = _refusal(key, batches, request, ctx)
            if error is not None:
                self._refused[key] = AckResult(error)
            elif not batches:
                self._empty[key] = AckResult()
            elif self.failure is None:
                self._begin(shares, SessionKey(group_id, member_id), key, batches)

    def _begin(
        self, shares: SharePartitions, member: SessionKey, key: PartitionKey, batches: Sequence[Acknowledgement]
    ) -> None:
        try:
            self._begun[key] = _begin(shares, member.group_id, member.member_id, key, batches)
        except KafkaError as error:
            self.failure = error

    async def written(self) -> dict[PartitionKey, AckResult]:
        """Write all changes concurrently; return the result of each partition.

        Raises:
            KafkaError: UNKNOWN_SERVER_ERROR if a partition fails the request, as in Kafka (groups D.6 A2).
        """
        written = await all_of(map(_written, self._begun.values()))
        results = {**self._refused, **dict(zip(self._begun, written, strict=True))}
        if self.failure is not None:
            raise self.failure
        return {**results, **self._empty} if self._begun else results


def _by_partition(request: _Request) -> Mapping[PartitionKey, list[Acknowledgement]]:
    return {
        PartitionKey(topic.topic_id, partition.partition_index): [
            Acknowledgement(batch.first_offset, batch.last_offset, tuple(batch.acknowledge_types or ()))
            for batch in partition.acknowledgement_batches
        ]
        for topic in request.topics
        for partition in topic.partitions
    }


def _refusal(
    key: PartitionKey, batches: Sequence[Acknowledgement], request: _Request, ctx: RequestContext
) -> ErrorCode | None:
    image = ctx.cluster.image
    topic = None if key.topic_id is None else image.topics_by_id.get(key.topic_id)
    # The id, the batches, then READ: KafkaApis validates the batches while it collects them (groups D.6).
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    newest = AcknowledgeType.RENEW if features.share_groups_renew_locks(ctx.version) else AcknowledgeType.REJECT
    if not _valid(batches, newest, renews=request.is_renew_ack):
        return ErrorCode.INVALID_REQUEST
    if not ctx.authorized(AclOperation.READ, ResourceType.TOPIC, topic.name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return None if key.partition in topic.partitions else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _valid(batches: Sequence[Acknowledgement], newest: int, *, renews: bool) -> bool:
    """Return whether the batches are valid (``validateAcknowledgementBatches``).

    Quirk: adjacent ones may share an offset (groups D.6).
    """
    before = -1
    for first, last, types in batches:
        count_differs = len(types) > 1 and len(types) != last - first + 1
        if not before <= first <= last or not types or count_differs:
            return False
        if any(not AcknowledgeType.GAP <= each <= newest for each in types):
            return False
        if AcknowledgeType.RENEW in types and not renews:
            return False
        before = last
    return True


def _begin(
    shares: SharePartitions, group_id: str, member_id: str, key: PartitionKey, batches: Sequence[Acknowledgement]
) -> _Begun | AckResult:
    assert key.topic_id is not None
    partition = shares.get(SharePartitionKey(group_id, key.topic_id, key.partition))
    if partition is None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return AckResult(code, ERROR_TEXTS[code])
    try:
        return _Begun(partition, partition.begin_acknowledging(member_id, batches))
    except KafkaError as error:
        if error.code is ErrorCode.UNKNOWN_SERVER_ERROR:
            raise
        return AckResult(error.code, error.message)


async def _written(begun: _Begun | AckResult) -> AckResult:
    if isinstance(begun, AckResult):
        return begun
    try:
        await begun.partition.write(begun.change)
    except KafkaError as error:
        return AckResult(error.code, error.message)
    return AckResult()
