"""Thirty ways in which a log can be wrong: what producers and coordinators did."""

from protocol.log_records.transaction import TransactionState as State
from protocol.records.records import ControlType, Record, build_batch, control_key
from tests.pipeline.fault_files import LATER_MS, T0_MS, TIMEOUT_MS, Planting
from tests.pipeline.log_faults import Places, plant

# --- sequences and epochs -------------------------------------------------------------------------------------------


@plant
def sequence_duplicate(where: Planting, topic: str) -> Places:
    """A batch was appended twice: the broker forgot its producer between them."""
    log = where.shelf(topic)
    log.data(3, producer=30)
    log.data(3, producer=30)
    again = log.data(3, producer=30, sequence=3)
    log.data(3, producer=30)
    return {"sequence-duplicate": {(0, again)}}


@plant
def sequence_gap(where: Planting, topic: str) -> Places:
    """Five records never arrived."""
    log = where.shelf(topic)
    log.data(3, producer=31)
    after = log.data(3, producer=31, sequence=8)
    return {"sequence-gap": {(0, after)}}


@plant
def sequence_start(where: Planting, topic: str) -> Places:
    """A new epoch does not begin at 0."""
    log = where.shelf(topic)
    log.data(3, producer=32)
    first = log.data(3, producer=32, epoch=1, sequence=3)
    return {"sequence-start": {(0, first)}}


@plant
def epoch_regress(where: Planting, topic: str) -> Places:
    """A fenced producer's batch follows its successor's."""
    log = where.shelf(topic)
    log.data(3, producer=33)
    log.data(3, producer=33, epoch=1)
    zombie = log.data(3, producer=33, epoch=0)
    return {"epoch-regress": {(0, zombie)}}


# --- transactions ---------------------------------------------------------------------------------------------------


@plant
def transaction_open(where: Planting, topic: str) -> Places:
    """The coordinator knows of it: it is still going on."""
    log = where.shelf(topic)
    where.transaction("open", 34, 0, State.ONGOING, [(topic, 0)], at_ms=LATER_MS)
    first = log.data(3, producer=34, transactional=True)
    log.data(3)
    return {"transaction-open": {(0, first)}}


@plant
def transaction_overdue(where: Planting, topic: str) -> Places:
    """Its timeout is over for long, and the coordinator still calls it ongoing."""
    log = where.shelf(topic)
    where.transaction("overdue", 37, 0, State.ONGOING, [(topic, 0)], at_ms=T0_MS - 2 * TIMEOUT_MS)
    first = log.data(3, producer=37, transactional=True)
    log.data(3)
    return {"transaction-overdue": {(0, first)}}


@plant
def transaction_hanging(where: Planting, topic: str) -> Places:
    """Its coordinator has finished it, or never heard of it, and no marker came (KIP-664)."""
    log = where.shelf(topic)
    log.data(3)
    unknown = log.data(3, producer=35, transactional=True)
    log.data(3)
    second = where.shelf(topic, 1)
    where.transaction("hanging", 36, 0, State.ONGOING, [(topic, 1)], version=0)
    finished = second.data(3, producer=36, transactional=True)
    where.transaction("hanging", 36, 0, State.PREPARE_ABORT, [(topic, 1)], version=0)
    where.transaction("hanging", 36, 0, State.COMPLETE_ABORT, version=0)
    return {"transaction-hanging": {(0, unknown), (1, finished)}}


@plant
def marker_without_data(where: Planting, topic: str) -> Places:
    """A marker ends a transaction that never touched the partition."""
    log = where.shelf(topic)
    log.data(3)
    return {"marker-without-data": {(0, log.marker(37, 0, committed=True))}}


@plant
def marker_epoch(where: Planting, topic: str) -> Places:
    """The marker's epoch is below that of the records that it ends."""
    log = where.shelf(topic)
    log.data(3, producer=38, epoch=0, transactional=True)
    log.marker(38, 0, committed=True)
    log.data(3, producer=38, epoch=5, transactional=True)
    return {"marker-epoch": {(0, log.marker(38, 4, committed=True))}}


@plant
def coordinator_epoch_regress(where: Planting, topic: str) -> Places:
    """A coordinator that had been replaced wrote a marker all the same."""
    log = where.shelf(topic)
    log.data(3, producer=39, transactional=True)
    log.marker(39, 0, committed=True, coordinator_epoch=7)
    log.data(3, producer=39, transactional=True)
    return {"coordinator-epoch-regress": {(0, log.marker(39, 0, committed=True, coordinator_epoch=6))}}


@plant
def transaction_torn(where: Planting, topic: str) -> Places:
    """Committed on one partition, aborted on the other."""
    pairs = [(topic, 0), (topic, 1)]
    where.transaction("torn", 40, 0, State.ONGOING, pairs)
    for _, partition in pairs:
        where.shelf(topic, partition).data(3, producer=40, transactional=True)
    where.transaction("torn", 40, 1, State.PREPARE_COMMIT, pairs)
    where.shelf(topic, 0).marker(40, 1, committed=True)
    wrong = where.shelf(topic, 1).marker(40, 1, committed=False)
    where.transaction("torn", 40, 1, State.COMPLETE_COMMIT)
    return {"transaction-torn": {(1, wrong)}}


@plant
def transaction_mixed(where: Planting, topic: str) -> Places:
    """A batch outside the transaction, from a producer that has one open."""
    log = where.shelf(topic)
    log.data(3, producer=41, transactional=True)
    plain = log.data(3, producer=41)
    log.marker(41, 0, committed=True)
    return {"transaction-mixed": {(0, plain)}}


@plant
def marker_malformed(where: Planting, topic: str) -> Places:
    """A control batch has two records, and neither is a commit or an abort marker."""
    log = where.shelf(topic)
    log.data(3)
    at = log.next_offset
    key, value = control_key(ControlType.COMMIT), b"\0\0\0\0\0\0"
    records = [Record(at + index, where.tick(), key, value) for index in range(2)]
    batch = build_batch(
        records, producer_id=42, producer_epoch=0, transactional=True, control=True, partition_leader_epoch=0
    )
    log.raw(batch)
    return {"marker-malformed": {(0, at)}}
