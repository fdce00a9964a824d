"""Every file kind, read by Kafka's own DumpLogSegments without a complaint."""

import re
from pathlib import Path
from typing import Any

import pytest

from protocol.records.compression import Codec
from protocol.records.records import Record, build_batch, build_marker
from storage.append_info import AppendOrigin
from storage.cleaner.cleaner import LogCleaner
from tests.storage.kafka_tools import dump_log, need_kafka
from tests.storage.logs import NOW_MS, Tree, append, records_batch, sized

pytestmark = pytest.mark.interop

# The tool prints this for the first record of every segment but the first, also for those that Kafka wrote.
FIRST_RECORD = re.compile(r"Non-consecutive offsets in \S+\n  -1 is followed by \d+\n")
COMPLAINTS = re.compile(
    r"isvalid: false|invalid|mismatch|corrupt|non-consecutive|exception|error|missing", re.IGNORECASE
)


def complaints(text: str) -> list[str]:
    """The lines with something to complain about."""
    lines = FIRST_RECORD.sub("", text).replace("isvalid: true", "").splitlines()
    return [line for line in lines if COMPLAINTS.search(line) and not line.startswith("Dumping ")]


@pytest.fixture(autouse=True)
def kafka() -> None:
    """Kafka's jars and Java."""
    need_kafka()


@pytest.fixture
def log_tree(disk: Tree) -> Tree:
    """A stopped directory with one partition of several segments: codecs, producers, transactions, epochs."""
    log = disk.log(internal_segment_bytes=8_000, index_interval_bytes=500)
    log.producers.rules.verification = False
    for round_ in range(12):
        for codec in Codec:
            values = [b"%d-%d" % (round_, index) * 20 for index in range(10)]
            records = [
                Record(i, NOW_MS + round_ * 100 + i, b"k", value, [("h", b"1")]) for i, value in enumerate(values)
            ]
            append(log, build_batch(records, codec=codec), epoch=round_ // 4)
        producer: dict[str, Any] = {"producer_id": 100 + round_, "producer_epoch": 1, "transactional": True}
        append(log, records_batch(b"t1", b"t2", base_sequence=0, **producer), epoch=round_ // 4)
        if round_ < 11:
            marker = build_marker(100 + round_, 1, round_ % 2 == 0, 3, NOW_MS + round_ * 100)
            append(log, marker, epoch=round_ // 4, origin=AppendOrigin.COORDINATOR)
    disk.stop()
    return disk


def of(tree: Tree, pattern: str) -> list[Path]:
    """The partition's files."""
    assert tree.root is not None
    paths = sorted((tree.root / "foo-0").glob(pattern))
    assert paths
    return paths


def test_segments_are_read_record_by_record(log_tree: Tree) -> None:
    """`--deep-iteration --print-data-log`: every batch valid, every record there."""
    text = dump_log("--deep-iteration", "--print-data-log", "--files", ",".join(map(str, of(log_tree, "*.log"))))
    assert len(re.findall(r"isvalid: true", text)) == 12 * 6 + 11
    assert text.count("payload: 11-9") == len(Codec)
    assert text.count("endTxnMarker: COMMIT") == 6
    assert text.count("endTxnMarker: ABORT") == 5
    assert complaints(text) == []


def test_indexes_are_sane(log_tree: Tree) -> None:
    """`--index-sanity-check` and the comparison with the log behind them."""
    files = of(log_tree, "*.index") + of(log_tree, "*.timeindex")
    assert len(files) > 4
    text = dump_log("--index-sanity-check", "--files", ",".join(map(str, files)))
    assert text.count("passed sanity check") == len(files)
    text = dump_log("--deep-iteration", "--files", ",".join(map(str, files)))
    assert complaints(text) == []
    assert text.count("offset: ") > 30


def test_transaction_indexes_and_snapshots_are_read(log_tree: Tree) -> None:
    """Aborted transactions and producers with their fields."""
    text = dump_log("--files", ",".join(map(str, of(log_tree, "*.txnindex"))))
    assert len(re.findall(r"producerId: \d+", text)) == 5
    text = dump_log("--files", str(of(log_tree, "*.snapshot")[-1]))
    assert text.count("producerId: ") == 12
    assert "producerId: 111 producerEpoch: 1 coordinatorEpoch: -1 currentTxnFirstOffset: Optional" in text
    assert complaints(text) == []


def test_a_killed_directory_is_read(disk: Tree) -> None:
    """Preallocated indexes of an active segment do not confuse the tool."""
    log = disk.log(index_interval_bytes=500)
    for index in range(50):
        append(log, sized(b"%d" % index, time_ms=NOW_MS + index))
    disk.stop(clean=False)
    text = dump_log("--deep-iteration", "--files", ",".join(map(str, of(disk, "0*.*"))))
    assert text.count("isvalid: true") == 50
    assert complaints(text) == []


def test_a_cleaned_log_is_read(disk: Tree) -> None:
    """Gaps, empty batches, delete horizons."""
    log = disk.log(internal_segment_bytes=1000, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0)
    append(log, sized(b"v", b"k0", producer_id=1, producer_epoch=0, base_sequence=0))
    for index in range(30):
        append(log, sized(None if index % 7 == 0 else b"%d" % index, b"k%d" % (index % 5)))
    assert disk.dir is not None
    LogCleaner(disk.dir).run(NOW_MS)
    disk.stop()
    text = dump_log("--deep-iteration", "--print-data-log", "--files", ",".join(map(str, of(disk, "*.log"))))
    assert "deleteHorizonMs: OptionalLong[" in text
    assert "count: 0" in text
    text = dump_log("--index-sanity-check", "--files", ",".join(map(str, of(disk, "*index"))))
    assert complaints(text) == []
