"""What the partitions of a Produce request must pass before the log sees their batch.

Transactions D.1 G1 to G8, core D.1.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from broker import message_format
from broker.context import AclOperation, RequestContext, ResourceType
from broker.coordination.metadata.image import INTERNAL_TOPICS
from broker.partition import ReplicatedPartition
from protocol import features
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.batch import RecordBatch
from storage.append import AppendInfo
from storage.rejection import RequestRejectedError
from storage.validation import check_partition_records, scan_first_batch

_ADMIN_CLIENT = "__admin_client"  # the one client id that may write to internal topics (core D.5.7)
CANDIDATES_NOTE = "candidates"
"""Under this name a Produce request's notes carry its candidates, for whoever wants to know what became of them."""


@dataclass(slots=True)
class Candidate:
    """One partition of the request on its way to the log.

    ``asked_name`` and ``topic_id`` are echoed as they were asked. ``guard`` comes from verification (KIP-890). In the
    end either ``info`` is set or ``error``, or both where an append failed afterwards. ``reached_log`` tells refusals
    of the append from those before it: the response fields differ (transactions D.13). ``overruled`` is what is told
    whatever becomes of the append: another entry of the request for this partition was no good.
    """

    asked_name: str
    topic_id: UUID | None
    topic: str
    index: int
    batch: RecordBatch | None = None
    records: memoryview | None = None
    partition: ReplicatedPartition | None = None
    guard: object | None = None
    info: AppendInfo | None = None
    error: KafkaError | None = None
    reached_log: bool = False
    overruled: KafkaError | None = None

    @property
    def transactional(self) -> bool:
        """Whether a batch of a producer's transaction is still to be appended."""
        return (
            self.error is None
            and self.batch is not None
            and self.batch.is_transactional
            and self.batch.producer_id >= 0
        )

    def fail(self, error: KafkaError) -> None:
        """Keep the error without the stack that it came through: that would keep the request in memory with it."""
        error.__traceback__ = error.__cause__ = error.__context__ = None
        self.error = error

    def overrule(self) -> None:
        """Tell of the other entry, once this one's fate is settled."""
        if self.overruled is not None:
            self.info, self.reached_log, self.error = None, False, self.overruled

    def check_writable(self, ctx: RequestContext) -> None:
        """G10: internal topics take records from Kafka's own admin client alone."""
        if self.topic in INTERNAL_TOPICS and ctx.client_id != _ADMIN_CLIENT:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)


def _last(known: Candidate | None, new: Candidate) -> Candidate:
    """Of two entries for one partition the later one is appended, unless it alone is no good; the refusal is told."""
    if known is None:
        return new
    if new.error is not None and known.error is None:
        known.overruled = new.error
        return known
    new.overruled = (known.overruled or known.error) if new.error is None else None
    return new


def candidates_of(request: ProduceRequest, ctx: RequestContext) -> list[Candidate]:
    """The request's partitions, each with its batch or with the reason against it; a repeated one counts once.

    Raises:
        KafkaError: the whole request is refused: CORRUPT_MESSAGE where some partition's first batch cannot even be
            scanned, TRANSACTIONAL_ID_AUTHORIZATION_FAILED, INVALID_PRODUCER_ID_MAPPING for two producers in one
            request.
    """
    _scan(request, ctx)
    places: dict[tuple[str, UUID | None, int], Candidate] = {}  # a later entry wins (core D.1 P5)
    for topic in request.topic_data:
        for data in topic.partition_data:
            candidate = Candidate(topic.name, topic.topic_id, topic.name, data.index)
            try:
                _admit(candidate, topic, data, ctx)
            except KafkaError as error:
                if isinstance(error, RequestRejectedError):
                    raise
                candidate.fail(error)
            place = (topic.name, topic.topic_id, data.index)
            places[place] = _last(places.get(place), candidate)
    candidates = list(places.values())
    if len(candidates) > 1 and len(_producers(candidates)) > 1:
        raise RequestRejectedError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING, "Transactional records contained more than one producer ID"
        )
    return candidates


def _producers(candidates: Iterable[Candidate]) -> set[tuple[int, int]]:
    """Ids and epochs of the transactional batches."""
    return {(c.batch.producer_id, c.batch.producer_epoch) for c in candidates if c.transactional and c.batch}


def _scan(request: ProduceRequest, ctx: RequestContext) -> None:
    """G1: look at the first batch of every partition before anything else."""
    transactional = False
    for topic in request.topic_data:
        for data in topic.partition_data:
            if isinstance(data.records, memoryview) and scan_first_batch(data.records):
                transactional = True
    if not transactional:
        return
    allowed = request.transactional_id is not None and ctx.authorized(
        AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id
    )
    if not allowed:
        raise RequestRejectedError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def _admit(candidate: Candidate, topic: TopicProduceData, data: PartitionProduceData, ctx: RequestContext) -> None:
    """G2 to G5 for one partition."""
    if features.produce_uses_topic_ids(ctx.version):
        found = ctx.cluster.image.topics_by_id.get(topic.topic_id) if topic.topic_id else None
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        candidate.topic = found.name
    if not ctx.authorized(AclOperation.WRITE, ResourceType.TOPIC, candidate.topic):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    candidate.partition = ctx.node.partition(candidate.topic, data.index)
    records = data.records
    if not isinstance(records, memoryview):
        raise KafkaError(ErrorCode.INVALID_RECORD)
    records = message_format.taken(records, ctx)
    candidate.batch = check_partition_records(records, zstd_allowed=features.produce_allows_zstd(ctx.version))
    size = candidate.batch.size
    candidate.records = records if size == len(records) else records[:size]
