"""Writes a data directory of any size within seconds, as a broker leaves it, for benchmarks and tests of large data.

    python tools/fill_directory.py DIR --records 10000000 [--partitions 4] [--per-batch 80] [--codec zstd] ...

Records have keys of 12 and values of 180 bytes of JSON, every tenth a header. Some thousand different batches are
repeated with other offsets and times, so each batch costs only a checksum. With `--transactions N`, a transactional
producer writes them, N batches to a transaction; every tenth transaction is aborted.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from uuid import UUID

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from protocol.records.batch import TRANSACTIONAL_BIT, RecordBatch
from protocol.records.compression import Codec, compress
from protocol.records.records import Record, build_marker, frame_batch, write_record
from protocol.types import uuid_text
from storage.checkpoints import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARK,
    LEADER_EPOCHS,
    LOG_START,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINT,
    EpochEntry,
    encode_clean_shutdown,
    encode_epochs,
    encode_offsets,
    encode_partition_metadata,
    encode_properties,
)
from storage.files import DiskFiles
from storage.indexes.txn_index import AbortedTransaction
from storage.log.segment import Segment
from storage.producers.snapshot import encode_snapshot
from storage.producers.state import BatchRange, ProducerEntry

NOW_MS = 1_700_000_000_000
TOPIC = "filled"
ABORTED_OF = 10
_MIB = 1 << 20
_INDEX_BYTES, _INDEX_INTERVAL_BYTES = 10 * _MIB, 4096
_DIFFERENT = 300_000
"""Records before they repeat: about 60 MB, more than the window of any codec."""


@dataclass(frozen=True, slots=True)
class Filling:
    """Contents of a data directory.

    Attributes:
        records: in total, without markers.
        partitions: of the only topic `TOPIC`; each gets the same share.
        per_batch: records in a batch.
        value_bytes: size of each value.
        codec: of all batches.
        transactions: batches of one transaction; 0: a producer without transactions and without an id.
        segment_bytes: maximum size of a segment.
    """

    records: int
    partitions: int = 1
    per_batch: int = 80
    value_bytes: int = 180
    codec: int = Codec.NONE
    transactions: int = 0
    segment_bytes: int = 256 * _MIB

    @property
    def batches(self) -> int:
        """Number of record batches in one partition."""
        return -(-self.records // self.partitions // self.per_batch)


def parts(filling: Filling) -> list[bytes]:
    """Encode the records of the different batches, compressed with the codec; offsets and times start at 0."""
    chance = Random(1)  # noqa: S311 - the same directory each time
    encoded = []
    for number in range(max(1, min(filling.batches, _DIFFERENT // filling.per_batch))):
        data = bytearray()
        for offset in range(filling.per_batch):
            text = f'{{"id":{offset},"user":"user-{chance.randrange(10**6)}","amount":{chance.random() * 1000}'
            value = f'{text},"note":"{chance.getrandbits(320):080x}'.ljust(filling.value_bytes - 2)
            headers = [("trace", b"%016x" % chance.getrandbits(64))] if offset % 10 == 0 else ()
            key = b"key-%08d" % (number * filling.per_batch + offset)
            value_bytes = (value[: filling.value_bytes - 2] + '"}').encode()
            write_record(data, Record(offset, offset // 50, key, value_bytes, headers), 0, 0)
        encoded.append(bytes(compress(filling.codec, data, None)) if filling.codec else bytes(data))
    return encoded


def fill(folder: Path, filling: Filling) -> int:
    """Write the directory; return its size in bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty: its checkpoints and partitions would be overwritten")
    files = DiskFiles(str(folder))
    encoded = parts(filling)
    ends = {(TOPIC, number): _partition(files, number, filling, encoded) for number in range(filling.partitions)}
    for name in (HIGH_WATERMARK, RECOVERY_POINT):
        files.replace(name, encode_offsets(ends))
    properties = {"version": "1", "cluster.id": "filled", "node.id": "1", "directory.id": uuid_text(UUID(int=109))}
    files.replace(LOG_START, encode_offsets({}))
    files.replace(META_PROPERTIES, encode_properties(properties))
    files.replace(CLEAN_SHUTDOWN, encode_clean_shutdown(1))
    files.close()
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _partition(files: DiskFiles, number: int, filling: Filling, encoded: list[bytes]) -> int:
    """Write one partition's folder; return its log end offset."""
    directory = f"{TOPIC}-{number}"
    (Path(files.root) / directory).mkdir()
    segment = Segment(files, directory, 0, _INDEX_BYTES)
    end = opened = 0
    last = BatchRange(0, 0, 0, 0, 0)
    last_ms = 0
    for batch, turn in _batches(number, filling, encoded):
        header = RecordBatch(batch)
        if segment.size + len(batch) > filling.segment_bytes:
            segment.close_indexes()
            segment = Segment(files, directory, header.base_offset, _INDEX_BYTES)
        segment.append(batch, header, _INDEX_INTERVAL_BYTES)
        end, last_ms = header.next_offset, header.max_timestamp_ms
        if not header.is_control:
            final = (header.base_sequence + header.last_offset_delta) & 0x7FFFFFFF
            last = BatchRange(header.base_sequence, final, header.base_offset, end - 1, 0)
        if header.is_control:
            if _is_aborted(turn):
                aborted = AbortedTransaction(header.producer_id, opened, header.base_offset, end)
                segment.txn_index.append(aborted)
            opened = end
    segment.close_indexes()
    if filling.transactions:
        entry = ProducerEntry(1000 + number, 0, (last,), 0, last_ms, None)
        files.replace(f"{directory}/{end:020d}.snapshot", encode_snapshot([entry]))
    files.replace(f"{directory}/{PARTITION_METADATA}", encode_partition_metadata(UUID(int=100)))
    files.replace(f"{directory}/{LEADER_EPOCHS}", encode_epochs([EpochEntry(0, 0)]))
    return end


def _batches(number: int, filling: Filling, encoded: list[bytes]) -> Iterator[tuple[bytearray, int]]:
    """Yield batches and markers, with the number of their transaction."""
    offset = sequence = turn = 0
    last = filling.per_batch - 1
    producer, bits = (1000 + number, TRANSACTIONAL_BIT) if filling.transactions else (-1, 0)
    for index in range(filling.batches):
        at_ms = NOW_MS + offset // 50
        batch = frame_batch(
            encoded[index % len(encoded)], filling.per_batch, base_offset=offset, last_offset_delta=last,
            base_timestamp_ms=at_ms, max_timestamp_ms=at_ms + last // 50, attributes=bits | filling.codec,
            producer_id=producer, producer_epoch=0 if bits else -1, base_sequence=sequence if bits else -1,
            partition_leader_epoch=0,
        )  # fmt: skip
        yield batch, turn
        offset += filling.per_batch
        sequence = (sequence + filling.per_batch) & 0x7FFFFFFF
        ends = index == filling.batches - 1 or (filling.transactions and (index + 1) % filling.transactions == 0)
        if filling.transactions and ends:
            committed = not _is_aborted(turn)
            yield build_marker(producer, 0, committed, 0, at_ms, base_offset=offset, partition_leader_epoch=0), turn
            offset += 1
            turn += 1


def _is_aborted(turn: int) -> bool:
    return turn % ABORTED_OF == ABORTED_OF - 1


def main() -> None:
    """Write a directory, and print its size."""
    parser = argparse.ArgumentParser(description="Writes a data directory of any size within seconds.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--per-batch", type=int, default=80)
    parser.add_argument("--value-bytes", type=int, default=180)
    parser.add_argument("--codec", choices=[codec.name.lower() for codec in Codec], default="none")
    parser.add_argument("--transactions", type=int, default=0, help="batches of one transaction; 0: none")
    options = parser.parse_args()
    filling = Filling(
        options.records, options.partitions, options.per_batch, options.value_bytes, Codec[options.codec.upper()],
        options.transactions,
    )  # fmt: skip
    try:
        size = fill(options.folder, filling)
    except FileExistsError as error:
        parser.error(str(error))
    print(f"{filling.batches * filling.per_batch * filling.partitions} records, {size / 1e9:.2f} GB: {options.folder}")


if __name__ == "__main__":
    main()
