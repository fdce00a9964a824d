"""Plants: every field of a batch's header, and of the records in it, with a value that no broker writes."""

from collections.abc import Callable, Mapping

from protocol.log_records import group
from protocol.records.batch import BATCH_HEADER_SIZE
from protocol.records.records import ControlType, Record, build_batch, build_marker, control_key
from tests.pipeline.fault_files import T0_MS, Planting, Shelf, restamped
from tests.pipeline.log_faults import PLANTS, Places, plant

TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x10, 0x20, 0x40
UNDEFINED_BIT, GZIP, UNDEFINED_CODEC = 0x80, 1, 6
NEGATIVE_MS = -86_400_000


def header(log: Shelf, **fields: int) -> int:
    """Append a batch of three records with other header fields, under a checksum that fits; returns its offset."""
    at, now_ms = log.next_offset, log.owner.tick()
    records = [Record(at + index, now_ms, b"k%d" % index, b"v") for index in range(3)]
    log.raw(restamped(build_batch(records, partition_leader_epoch=0), **fields), indexed=False)
    return at


FIELDS: Mapping[str, tuple[str, dict[str, int]]] = {
    "attributes-undefined-bit": ("batch-attributes", {"attributes": UNDEFINED_BIT}),
    "attributes-high-bit": ("batch-attributes", {"attributes": -0x8000}),
    "attributes-undefined-codec": ("batch-damaged", {"attributes": UNDEFINED_CODEC}),
    "codec-of-plain-records": ("records-unreadable", {"attributes": GZIP}),
    "delete-horizon-without-cleaner": ("records-missing", {"attributes": DELETE_HORIZON}),
    "count-too-small": ("records-unreadable records-missing", {"record_count": 2}),
    "count-zero": ("records-missing", {"record_count": 0}),
    "count-negative": ("batch-damaged", {"record_count": -1}),
    "last-offset-delta-negative": ("batch-damaged", {"last_offset_delta": -1}),
    "last-offset-delta-too-large": ("records-missing", {"last_offset_delta": 9}),
    "magic-of-the-future": ("batch-damaged", {"magic": 3}),
    "leader-epoch-unlisted": ("leader-epoch-entries leader-epoch-unknown", {"partition_leader_epoch": 7}),
    "base-timestamp-after-max": ("timestamp-invalid timestamp-header", {"max_timestamp_ms": 1000}),
    "base-timestamp-negative": ("timestamp-invalid timestamp-header", {"base_timestamp_ms": NEGATIVE_MS}),
    "max-timestamp-negative": (
        "timestamp-invalid timestamp-header",
        {"base_timestamp_ms": NEGATIVE_MS, "max_timestamp_ms": -5},
    ),
    "producer-id-below-none": ("producer-fields", {"producer_id": -2}),
    "producer-epoch-without-id": ("producer-fields", {"producer_epoch": 1}),
    "producer-epoch-of-no-client": ("producer-fields", {"producer_epoch": 0}),
    "sequence-without-id": ("producer-fields", {"base_sequence": 1}),
    "producer-id-without-epoch": ("producer-fields", {"producer_id": 600, "base_sequence": 0}),
    "producer-id-without-sequence": ("producer-fields", {"producer_id": 601, "producer_epoch": 0}),
    "transactional-without-id": ("producer-fields", {"attributes": TRANSACTIONAL}),
    "producer-id-never-given": (
        "producer-id-unallocated",
        {"producer_id": 99_000, "producer_epoch": 0, "base_sequence": 0},
    ),
}
"""Name -> the checks that have to find it, and the fields."""


def _of_field(checks: str, fields: dict[str, int]) -> Callable[[Planting, str], Places]:
    def make(where: Planting, topic: str) -> Places:
        log = where.shelf(topic)
        log.data(3)
        places = {(0, header(log, **fields))}
        return dict.fromkeys(checks.split(), places)

    return make


PLANTS.update({name: _of_field(*answer) for name, answer in FIELDS.items()})


def _body(change: Callable[[bytearray], None]) -> Callable[[Planting, str], Places]:
    """A batch whose records were changed byte by byte, under a checksum that fits."""

    def make(where: Planting, topic: str) -> Places:
        log = where.shelf(topic)
        log.data(3)
        at, now_ms = log.next_offset, where.tick()
        batch = bytearray(build_batch(
            [Record(at + index, now_ms + index, b"k%d" % index, b"value") for index in range(3)],
            partition_leader_epoch=0,
        ))  # fmt: skip
        change(batch)
        log.raw(restamped(batch), indexed=False)
        return {"records-unreadable": {(0, at)}}

    return make


RECORD = BATCH_HEADER_SIZE + len(b"\x18\x00\x00\x00\x04k0\x0avalue\x00")
"""Where the second record begins: length, attributes, timestamp delta, offset delta, key, value, headers."""


def _at(place: int, value: int) -> Callable[[bytearray], None]:
    def change(batch: bytearray) -> None:
        batch[place] = value

    return change


PLANTS.update(
    {
        "record-length-too-large": _body(_at(RECORD, 0x7E)),
        "record-length-too-small": _body(_at(RECORD, 0x06)),
        "record-offset-delta-repeated": _body(_at(RECORD + 3, 0x00)),
        "record-offset-delta-beyond": _body(_at(RECORD + 3, 0x7E)),
        "record-offset-delta-negative": _body(_at(RECORD + 3, 0x01)),
        "record-key-length": _body(_at(RECORD + 4, 0x7E)),
        "record-key-length-negative": _body(_at(RECORD + 4, 0x03)),
        "record-value-length": _body(_at(RECORD + 7, 0x7E)),
        "record-headers-count": _body(_at(RECORD + 13, 0x02)),
        "record-headers-negative": _body(_at(RECORD + 13, 0x01)),
    }
)


def _marker(expected: str, **fields: int) -> Callable[[Planting, str], Places]:
    """A marker with other header fields, behind the records that it ends."""

    def make(where: Planting, topic: str) -> Places:
        log = where.shelf(topic)
        log.data(3, producer=610, transactional=True)
        at = log.next_offset
        marker = build_marker(
            610,
            0,
            committed=True,
            coordinator_epoch=0,
            timestamp_ms=where.tick(),
            base_offset=at,
            partition_leader_epoch=0,
        )
        log.raw(restamped(marker, **fields))
        return {expected: {(0, at)}}

    return make


PLANTS.update(
    {
        "marker-with-sequence": _marker("producer-fields", base_sequence=3),
        "marker-of-another-time": _marker("marker-malformed", base_timestamp_ms=T0_MS - 1),
        "marker-not-transactional": _marker("marker-malformed", attributes=CONTROL),
    }
)


@plant
def producer_epoch_in_an_internal_topic(where: Planting, topic: str) -> Places:
    """As KafkaJS writes it into other topics; no client writes into this one."""
    where.shelf(topic).data(3)
    offsets = where.shelf("__consumer_offsets", cleanup_policy="compact")
    at, commit = offsets.next_offset, group.OffsetCommit(topic, topic, 0, 1, commit_timestamp_ms=where.tick())
    record = Record(at, where.tick(), *group.encode(commit))
    offsets.raw(build_batch([record], producer_epoch=0, base_sequence=0, partition_leader_epoch=0))
    return {"producer-fields": {("__consumer_offsets", 0, at)}}


@plant
def leader_epoch_none(where: Planting, topic: str) -> Places:
    """No leader stamped the log's first batch."""
    log = where.shelf(topic)
    at = header(log, partition_leader_epoch=-1)
    log.data(3)
    return {"batch-attributes": {(0, at)}}


@plant
def marker_at_another_offset(where: Planting, topic: str) -> Places:
    """The record of a marker has the offset behind that of its batch."""
    log = where.shelf(topic)
    log.data(3, producer=612, transactional=True)
    at = log.next_offset
    record = Record(at + 1, where.tick(), control_key(ControlType.COMMIT), b"\0\0\0\0\0\0")
    batch = build_batch(
        [record],
        base_offset=at,
        last_offset=at,
        producer_id=612,
        producer_epoch=0,
        transactional=True,
        control=True,
        partition_leader_epoch=0,
    )
    log.raw(batch)
    return {"marker-malformed": {(0, at)}}


@plant
def marker_coordinator_epoch_negative(where: Planting, topic: str) -> Places:
    """A marker of coordinator epoch -1."""
    log = where.shelf(topic)
    log.data(3, producer=611, transactional=True)
    return {"marker-malformed": {(0, log.marker(611, 0, committed=True, coordinator_epoch=-1))}}


@plant
def records_lost_inside(where: Planting, topic: str) -> Places:
    """The middle record is gone from a batch where no cleaner has been."""
    log = where.shelf(topic)
    log.data(3)
    return {"records-missing": {(0, log.data(3, drop=(1,)))}}


@plant
def segment_lost_at_the_end(where: Planting, topic: str) -> Places:
    """The newest segment begins behind the end of the one before, and is empty."""
    log = where.shelf(topic)
    log.data(3)
    log.roll(9)
    log.next_offset = 9
    return {"offset-hole": {(0, 9)}}


@plant
def segment_lost_in_the_middle(where: Planting, topic: str) -> Places:
    """A segment file was removed."""
    log = where.shelf(topic)
    for _ in range(3):
        log.data(3)
        log.roll()
    after = log.data(3)
    (where.root / log.closed[2].path_of(".log")).unlink()
    for kind in (".index", ".timeindex", ".txnindex"):
        (where.root / log.closed[2].path_of(kind)).unlink(missing_ok=True)
    return {"offset-hole": {(0, after)}}


@plant
def key_null_in_a_table(where: Planting, topic: str) -> Places:
    """A record without a key, which a broker refuses where it compacts."""
    log = where.shelf(topic, cleanup_policy="compact")
    log.data(2)
    at = log.records([(b"a", b"1"), (None, b"2")])
    return {"compacted-key": {(0, at + 1)}}


@plant
def key_twice_below_the_cleaner(where: Planting, topic: str) -> Places:
    """Two values of a key where the cleaner has been."""
    log = where.shelf(topic, cleanup_policy="compact")
    first = log.records([(b"a", b"1"), (b"b", b"2")])
    log.records([(b"a", b"3")])
    log.roll()
    log.records([(b"a", b"4")])
    where.cleaned(topic, 0, 3)
    return {"compacted-key": {(0, first)}}
