"""Decodes messages of formats before v2 into rows, one by one, since such logs are old and rare."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from pipeline.decoding import columns
from pipeline.decoding.batch_scan import MAGIC_POSITION, Messages
from pipeline.decoding.damage import Damage
from pipeline.decoding.records import Wanted
from pipeline.decoding.varints import Bytes
from protocol.records.batch import TIMESTAMP_TYPE_BIT, batch_size
from protocol.records.errors import RecordsError
from protocol.records.message_set import read_messages
from protocol.records.records import Record

_ATTRIBUTES_POSITION = 17  # after offset, size, CRC and magic (`protocol.records.message_set`)


def messages(data: Bytes, run: Messages) -> Iterator[tuple[int, int]]:
    """Return positions and sizes of the messages; a compressed wrapper message counts as one."""
    view = data.data
    at = run.start
    while at < run.stop:
        size = batch_size(view, at)
        yield at, size
        at += size


def decode_messages(
    data: Bytes, run: Messages, wanted: Wanted, path: str, origin: int
) -> Iterator[pa.RecordBatch | Damage]:
    """Decode messages: yield their records in order, and damage. Arguments as in `records.decode`."""
    view = data.data
    for at, size in messages(data, run):
        try:
            records = list(read_messages(view[at : at + size], wanted.limit))
        except RecordsError as error:
            yield Damage(origin + at, size, str(error).partition(": ")[2] or str(error))
            continue
        kept = [each for each in records if _is_wanted(each, wanted)]
        if kept:
            kind = (
                -1 if view[at + MAGIC_POSITION] == 0 else int(view[at + _ATTRIBUTES_POSITION] & TIMESTAMP_TYPE_BIT > 0)
            )
            yield _rows(kept, kind, records[0].offset, wanted, path, origin + at)


def _is_wanted(record: Record, wanted: Wanted) -> bool:
    return (
        wanted.start_offset <= record.offset < wanted.stop_offset
        and (wanted.start_ms is None or record.timestamp_ms >= wanted.start_ms)
        and (wanted.stop_ms is None or record.timestamp_ms < wanted.stop_ms)
    )


def _rows(
    records: list[Record], kind: int, base_offset: int, wanted: Wanted, path: str, position: int
) -> pa.RecordBatch:
    times = np.array([each.timestamp_ms for each in records], np.int64)
    same = {
        "topic": wanted.topic,
        "partition": wanted.partition,
        "timestampType": kind,
        "producer_id": -1,
        "producer_epoch": -1,
        "sequence": -1,
        "is_transactional": False,
        "is_control": False,
        "aborted": False,
        "leader_epoch": -1,
        "batch_base_offset": base_offset,
        "segment": path,
        "position": position,
    }
    ready = {
        "key": pa.array([each.key for each in records], pa.binary()),
        "value": pa.array([each.value for each in records], pa.binary()),
        "offset": pa.array([each.offset for each in records], pa.int64()),
        "timestamp": columns.instants(times),
        "timestamp_ms": pa.array(times),
    }
    arrays = [
        ready[field.name] if field.name in ready else columns.repeated(same.get(field.name), field.type, len(records))
        for field in wanted.schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=wanted.schema)
