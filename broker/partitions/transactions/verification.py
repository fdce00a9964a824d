"""Verifies with the transaction coordinator that a partition belongs to a producer's transaction (KIP-890).

Before the append, the partition's leader stores a guard for the producer, sends the request to the coordinator, and
appends under that guard; a marker written in between invalidates it. Older clients have added the partition themselves,
which is only verified; for newer ones the leader adds it (transactions D.5, C.4 O10).
"""

from collections.abc import Mapping, Sequence
from enum import Enum

from broker.coordination.coordinators import GROUP_TOPIC, TRANSACTION_TOPIC, TransactionCoordinator
from broker.coordination.metadata.image import NO_LEADER
from broker.coordination.reasons import Refusal
from broker.coordination.transaction.transitions import TV2, ProducerIdAndEpoch
from broker.replication.partition import ReplicatedPartition
from broker.request.context import RequestContext
from broker.request.produce_results import Admitted, Produced
from broker.settings import BrokerSettings
from broker.settings.releases import Behaviour, Release
from broker.time.clock import Waiter
from protocol import features
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.transaction import TopicPartition
from protocol.records.batch import NO_SEQUENCE
from storage.append_errors import RecordsRejectedError

_NOT_ADDED = "Partition was not added to the transaction"
_UNABLE = "Unable to verify the partition has been added to the transaction. Underlying error: {}"


def verifies(release: Release, settings: BrokerSettings) -> bool:
    """Whether a broker verifies transactions at all before it appends."""
    return release.has(Behaviour.VERIFICATION) and settings.boolean("transaction.partition.verification.enable")


class Mode(Enum):
    """The request to the coordinator: verify that a partition was added, or add it."""

    VERIFY = "verify"
    ADD = "add"


# --- Produce ---------------------------------------------------------------------------------------------------------


async def verify(
    transactional_id: str, entries: Sequence[Admitted | Produced], ctx: RequestContext
) -> list[Admitted | Produced]:
    """Give each transactional entry its guard, or the error with which its append is refused (transactions D.5).

    While the previous transaction is still completing, an add is retried for a short time, with new guards, so that a
    client that begins its next transaction immediately does not notice.
    """
    mode = Mode.ADD if features.produce_adds_partitions(ctx.version) else Mode.VERIFY
    if mode is Mode.VERIFY and not verifies(ctx.release, ctx.node.settings):
        return list(entries)
    deadline_ms: int | None = None
    while True:
        verified = [_guarded(each, mode, ctx) for each in entries]
        transactional = [each for each in verified if isinstance(each, Admitted) and each.guard is not None]
        if not transactional:
            return verified
        if deadline_ms is None:
            deadline_ms = ctx.now_ms + _retry_time_ms(ctx.node.settings)
        codes = await _answers(transactional_id, transactional, mode, ctx)
        completing = mode is Mode.ADD and ErrorCode.CONCURRENT_TRANSACTIONS in codes.values()
        if not completing or ctx.now_ms >= deadline_ms:
            return _with_errors(verified, codes, mode, ctx)
        backoff_ms = ctx.node.settings.int("add.partitions.to.txn.retry.backoff.ms")
        await Waiter().wait(ctx.cluster.clock, ctx.now_ms + backoff_ms)


def _retry_time_ms(settings: BrokerSettings) -> int:
    """Return for how long an add is retried, in ms."""
    return min(settings.int("add.partitions.to.txn.retry.backoff.max.ms"), settings.int("request.timeout.ms"))


def _with_errors(
    verified: list[Admitted | Produced], codes: Mapping[TopicPartition, ErrorCode], mode: Mode, ctx: RequestContext
) -> list[Admitted | Produced]:
    """Return the entries with the coordinator's errors applied."""
    knows_abortable = features.produce_knows_abortable(ctx.version)
    for at, each in enumerate(verified):
        if isinstance(each, Admitted) and each.guard is not None:
            code = codes[each.topic, each.index]
            if code is not ErrorCode.NONE:
                verified[at] = each.refused(_for_producer(code, mode, knows_abortable=knows_abortable))
    return verified


def _guarded(entry: Admitted | Produced, mode: Mode, ctx: RequestContext) -> Admitted | Produced:
    """Return a transactional entry with its guard; without one if the transaction is already open on the partition."""
    if not isinstance(entry, Admitted) or not entry.transactional:
        return entry
    batch = entry.batch
    try:
        guard = entry.partition.led_by(ctx.node.id).producers.start_verification(
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            supports_epoch_bump=mode is Mode.ADD,
            now_ms=ctx.now_ms,
        )
    except KafkaError as error:
        # The response carries no message (transactions D.13); a RecordsRejectedError has none, but has its rule.
        return entry.refused(error if isinstance(error, RecordsRejectedError) else KafkaError(error.code))
    return entry if guard is None else entry.guarded_by(guard)


def _for_producer(code: ErrorCode, mode: Mode, *, knows_abortable: bool) -> Refusal:
    """Map the coordinator's error to the one that the producer gets (transactions D.5)."""
    known_as, message = _known_as(code, mode, knows_abortable=knows_abortable)
    sentence = f"the transaction's coordinator answered {code.name}"
    return Refusal(known_as, "transactions D.5", "KIP-890", message, sentence=sentence)


def _known_as(code: ErrorCode, mode: Mode, *, knows_abortable: bool) -> tuple[ErrorCode, str | None]:
    match code:
        case ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH, None
        case ErrorCode.TRANSACTION_ABORTABLE if not knows_abortable:
            return ErrorCode.INVALID_TXN_STATE, _NOT_ADDED
        case ErrorCode.INVALID_TXN_STATE:
            return code, _NOT_ADDED
        case (
            ErrorCode.NETWORK_EXCEPTION
            | ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            | ErrorCode.COORDINATOR_NOT_AVAILABLE
            | ErrorCode.NOT_COORDINATOR
        ):
            return ErrorCode.NOT_ENOUGH_REPLICAS, _UNABLE.format(code.name)
        case ErrorCode.CONCURRENT_TRANSACTIONS if mode is Mode.VERIFY:
            return ErrorCode.NOT_ENOUGH_REPLICAS, _UNABLE.format(code.name)
        case _:
            return code, None


# --- TxnOffsetCommit -------------------------------------------------------------------------------------------------


async def verify_offsets(
    transactional_id: str, producer: ProducerIdAndEpoch, group_id: str, ctx: RequestContext
) -> object | None:
    """Return the guard for appending a group's offsets to the transaction; ``None``: it is already open there.

    Raises:
        KafkaError: as TxnOffsetCommit answers it on every partition (transactions C.4.1).
    """
    mode = Mode.ADD if features.txn_offset_commit_adds_partitions(ctx.version) else Mode.VERIFY
    if mode is Mode.VERIFY and not verifies(ctx.release, ctx.node.settings):
        return None
    index = ctx.node.coordinating_partition(GROUP_TOPIC, group_id)
    try:
        partition = _offsets_partition(index, ctx)
        guard = partition.led_by(ctx.node.id).producers.start_verification(
            *producer, NO_SEQUENCE, supports_epoch_bump=mode is Mode.ADD, now_ms=ctx.now_ms
        )
        if guard is None:
            return None
        place = (GROUP_TOPIC, index)
        code = (await _ask(transactional_id, producer, [place], mode, ctx))[place]
    except KafkaError as error:
        code = error.code
    if code is not ErrorCode.NONE:
        raise KafkaError(_for_committer(code, ctx.version))
    return guard


def _offsets_partition(index: int, ctx: RequestContext) -> ReplicatedPartition:
    try:
        return ctx.node.partition(GROUP_TOPIC, index)
    except KafkaError as error:
        raise KafkaError(ErrorCode.NOT_COORDINATOR) from error


_FOR_COMMITTER = {
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def _for_committer(code: ErrorCode, version: int) -> ErrorCode:
    """Map an error of the coordinator or of the append to the one that TxnOffsetCommit answers (transactions C.4.1)."""
    if code is ErrorCode.TRANSACTION_ABORTABLE and not features.txn_offset_commit_knows_abortable(version):
        return ErrorCode.INVALID_TXN_STATE
    return _FOR_COMMITTER.get(code, code)


# --- asking the coordinator ------------------------------------------------------------------------------------------


async def _answers(
    transactional_id: str, transactional: Sequence[Admitted], mode: Mode, ctx: RequestContext
) -> Mapping[TopicPartition, ErrorCode]:
    """Return the coordinator's error code for each partition; all entries are of one producer."""
    producer = ProducerIdAndEpoch(transactional[0].batch.producer_id, transactional[0].batch.producer_epoch)
    places = [(each.topic, each.index) for each in transactional]
    try:
        return await _ask(transactional_id, producer, places, mode, ctx)
    except KafkaError as error:
        return dict.fromkeys(places, error.code)


async def _ask(
    transactional_id: str, producer: ProducerIdAndEpoch, places: list[TopicPartition], mode: Mode, ctx: RequestContext
) -> dict[TopicPartition, ErrorCode]:
    """Send one AddPartitionsToTxn to the coordinator, as a function call: all brokers are in this process.

    On a simulated network between the brokers, the answer takes time.
    """
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    runtime = await _coordinator(transactional_id, ctx)
    if mode is Mode.VERIFY:
        codes: dict[TopicPartition, ErrorCode] = await runtime.ask(
            lambda machine, _now_ms, to: machine.verify_partitions(transactional_id, producer, places, to), cause=ctx
        )
    else:
        await runtime.ask(
            lambda machine, now_ms, to: machine.add_partitions(
                transactional_id, producer, frozenset(places), now_ms, to, client_transaction_version=TV2
            ),
            cause=ctx,
        )
        codes = dict.fromkeys(places, ErrorCode.NONE)
    if ctx.cluster.between_brokers is not None:
        await ctx.cluster.between_brokers()
    return codes


async def _coordinator(transactional_id: str, ctx: RequestContext) -> "TransactionCoordinator":
    index = ctx.node.coordinating_partition(TRANSACTION_TOPIC, transactional_id)
    partition = ctx.cluster.image.partition(TRANSACTION_TOPIC, index)
    # First whether there is a coordinator, then whether it can be reached (transactions D.5.3: 15, then 13).
    if partition is None or partition.leader == NO_LEADER:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    node = ctx.cluster.nodes.get(partition.leader)
    if node is not None and node.up and node.server.paused:
        # Wait until the paused broker resumes, but not longer than a request between brokers may take.
        await node.server.wait_for_resumption(ctx.now_ms + ctx.node.settings.int("request.timeout.ms"))
    if node is None or node.silent:
        raise KafkaError(ErrorCode.NETWORK_EXCEPTION)
    return node.transaction_coordinator(transactional_id)
