"""Plants: every field of a batch's header, and of the records in it, with a value that no broker writes."""

from typing import Final

from aiokafka.record.legacy_records import LegacyRecordBatchBuilder

from protocol.log_records import group
from protocol.records.batch import BATCH_HEADER_SIZE
from protocol.records.records import ControlType, Record, build_batch, build_marker, control_key
from tests.pipeline.fault_files import T0_MS, Shelf, restamped
from tests.pipeline.planted_topic import OFFSETS, Place, Rows, Steps, Topic
from tests.protocol.records.test_message_set import gzipped, message

TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x10, 0x20, 0x40
UNDEFINED_BIT, GZIP, UNDEFINED_CODEC = 0x80, 1, 6
NEGATIVE_MS = -86_400_000


def _header(**fields: int) -> Steps:
    """A batch with other header fields, under a checksum that fits."""
    return lambda t: (t.data(), t.header(**fields))


OF_HEADERS: Final[Rows] = {
    "attributes-undefined-bit": ("batch-attributes", _header(attributes=UNDEFINED_BIT)),
    "attributes-high-bit": ("batch-attributes", _header(attributes=-0x8000)),
    "attributes-undefined-codec": ("batch-damaged", _header(attributes=UNDEFINED_CODEC)),
    "codec-of-plain-records": ("records-unreadable", _header(attributes=GZIP)),
    "delete-horizon-without-cleaner": ("records-missing", _header(attributes=DELETE_HORIZON)),
    "count-too-small": ("records-unreadable records-missing", _header(record_count=2)),
    "count-zero": ("records-missing", _header(record_count=0)),
    "count-negative": ("batch-damaged", _header(record_count=-1)),
    # more records than there are offsets
    "record-count": ("record-count", _header(record_count=5)),
    "last-offset-delta-negative": ("batch-damaged", _header(last_offset_delta=-1)),
    "last-offset-delta-too-large": ("records-missing", _header(last_offset_delta=9)),
    "magic-of-the-future": ("batch-damaged", _header(magic=3)),
    "leader-epoch-unlisted": ("leader-epoch-entries leader-epoch-unknown", _header(partition_leader_epoch=7)),
    "base-timestamp-after-max": ("timestamp-invalid timestamp-header", _header(max_timestamp_ms=1000)),
    "base-timestamp-negative": ("timestamp-invalid timestamp-header", _header(base_timestamp_ms=NEGATIVE_MS)),
    "max-timestamp-negative": (
        "timestamp-invalid timestamp-header", _header(base_timestamp_ms=NEGATIVE_MS, max_timestamp_ms=-5)),
    "producer-id-below-none": ("producer-fields", _header(producer_id=-2)),
    "producer-epoch-without-id": ("producer-fields", _header(producer_epoch=1)),
    "producer-epoch-of-no-client": ("producer-fields", _header(producer_epoch=0)),
    "sequence-without-id": ("producer-fields", _header(base_sequence=1)),
    "producer-id-without-epoch": ("producer-fields", _header(producer_id=600, base_sequence=0)),
    "producer-id-without-sequence": ("producer-fields", _header(producer_id=601, producer_epoch=0)),
    "transactional-without-id": ("producer-fields", _header(attributes=TRANSACTIONAL)),
    "producer-id-never-given": (
        "producer-id-unallocated", _header(producer_id=99_000, producer_epoch=0, base_sequence=0)),
    # no leader stamped the log's first batch
    "leader-epoch-none": ("batch-attributes", lambda t: (t.header(partition_leader_epoch=-1), t.data())[0]),
}  # fmt: skip


RECORD: Final = BATCH_HEADER_SIZE + len(b"\x18\x00\x00\x00\x04k0\x0avalue\x00")
"""Where the second record begins: length, attributes, timestamp delta, offset delta, key, value, headers."""


def _byte(place: int, value: int) -> tuple[str, Steps]:
    """Three records, one byte of which was changed, under a checksum that fits."""

    def steps(t: Topic) -> int:
        at, now_ms = t.data() + 3, t.where.tick()
        records = [Record(at + index, now_ms + index, b"k%d" % index, b"value") for index in range(3)]
        batch = bytearray(build_batch(records, partition_leader_epoch=0))
        batch[RECORD + place] = value
        t.log.raw(restamped(batch), indexed=False)
        return at

    return "records-unreadable", steps


OF_RECORDS: Final[Rows] = {
    "record-length-too-large": _byte(0, 0x7E),
    "record-length-too-small": _byte(0, 0x06),
    "record-offset-delta-repeated": _byte(3, 0x00),
    "record-offset-delta-beyond": _byte(3, 0x7E),
    "record-offset-delta-negative": _byte(3, 0x01),
    "record-key-length": _byte(4, 0x7E),
    "record-key-length-negative": _byte(4, 0x03),
    "record-value-length": _byte(7, 0x7E),
    "record-headers-count": _byte(13, 0x02),
    "record-headers-negative": _byte(13, 0x01),
}


def _marker(**fields: int) -> Steps:
    """A marker with other header fields, behind the records that it ends."""

    def steps(t: Topic) -> int:
        at = t.transactional(610) + 3
        marker = build_marker(610, 0, True, 0, t.where.tick(), base_offset=at, partition_leader_epoch=0)
        t.log.raw(restamped(marker, **fields))
        return at

    return steps


def _marker_of(producer: int, *offsets: int) -> Steps:
    """A control batch of commit records with these offsets, counted from its own; one ends a transaction."""

    def steps(t: Topic) -> int:
        at = (t.transactional(producer) if len(offsets) == 1 else t.data()) + 3
        key, value = control_key(ControlType.COMMIT), b"\0\0\0\0\0\0"
        t.log.raw(build_batch(
            [Record(at + each, t.where.tick(), key, value) for each in offsets], base_offset=at,
            last_offset=at + len(offsets) - 1, producer_id=producer, producer_epoch=0, transactional=True, control=True,
            partition_leader_epoch=0,
        ))  # fmt: skip
        return at

    return steps


OF_MARKERS: Final[Rows] = {
    "marker-with-sequence": ("producer-fields", _marker(base_sequence=3)),
    "marker-of-another-time": ("marker-malformed", _marker(base_timestamp_ms=T0_MS - 1)),
    "marker-not-transactional": ("marker-malformed", _marker(attributes=CONTROL)),
    # the record has the offset behind that of its batch
    "marker-at-another-offset": ("marker-malformed", _marker_of(612, 1)),
    "marker-malformed": ("marker-malformed", _marker_of(42, 0, 1)),
    "marker-coordinator-epoch-negative": ("marker-malformed", lambda t: (
        t.transactional(611), t.marker(611, coordinator_epoch=-1))),
}  # fmt: skip


def _producer_epoch_in_an_internal_topic(t: Topic) -> Place:
    """As KafkaJS writes it into other topics; no client writes into this one."""
    t.data()
    log = t.where.shelf(OFFSETS, cleanup_policy="compact")
    at, commit = log.next_offset, group.OffsetCommit(t.name, t.name, 0, 1, commit_timestamp_ms=t.where.tick())
    record = Record(at, t.where.tick(), *group.encode(commit))
    log.raw(build_batch([record], producer_epoch=0, base_sequence=0, partition_leader_epoch=0))
    return Place(OFFSETS, 0, at)


def old_format(log: Shelf, magic: int) -> int:
    """Append a message of a format before 2 (KIP-32); its offset."""
    offset = log.next_offset
    builder = LegacyRecordBatchBuilder(magic, 0, 100_000)
    builder.append(0, timestamp=log.owner.tick(), key=b"k", value=b"old")
    raw = bytearray(builder.build())
    raw[:8] = offset.to_bytes(8, "big")
    log.segment.log.append(bytes(raw))
    return log.skip_to(offset + 1) - 1


def wrapped(log: Shelf, magic: int, *inner: bytes) -> int:
    """Append a compressed message of a format before 2, with these inside; its offset."""
    offset = log.next_offset
    log.segment.log.append(message(offset, GZIP, gzipped(*inner), magic, log.owner.tick()))
    return log.skip_to(offset + 1) - 1


def _around(*inner: bytes) -> Steps:
    """Messages of format 1, one of which is compressed and has these inside."""
    return lambda t: (old_format(t.log, 1), wrapped(t.log, 1, *inner), old_format(t.log, 1))[1]


OF_OLD_FORMATS: Final[Rows] = {
    "compressed-message-within-another": ("batch-damaged", _around(message(0, GZIP, gzipped(message(0, 0, b"v"))))),
    "message-of-format-zero-within-one": ("batch-damaged", _around(message(0, 0, b"v", 0))),
    "compressed-message-of-nothing": ("batch-damaged", _around()),
    # a message of format 1 behind a batch of format 2
    "format-one-behind-two": ("format-regress", lambda t: (t.data(), old_format(t.log, 1), t.data())[1]),
}  # fmt: skip

PLANTS: Final[Rows] = {
    **OF_HEADERS,
    **OF_RECORDS,
    **OF_MARKERS,
    **OF_OLD_FORMATS,
    "producer-epoch-in-an-internal-topic": ("producer-fields", _producer_epoch_in_an_internal_topic),
}  # fmt: skip
