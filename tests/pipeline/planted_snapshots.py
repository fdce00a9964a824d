"""The snapshot of producers that a broker would leave at the end of a planted log, however strange its batches are."""

from pathlib import Path
from typing import Any

from protocol.records.batch import RecordBatch, checked_batches
from protocol.records.errors import RecordsError
from protocol.records.records import parse_marker
from storage.producers.snapshot import encode_snapshot
from storage.producers.state import BatchRange, ProducerEntry


def at_the_end(folder: Path) -> tuple[str, bytes] | None:
    """Name and content of the snapshot at the end of a log; None: it has no batch of a producer, or cannot be read."""
    entries: dict[int, dict[str, Any]] = {}
    end = 0
    try:
        for path in sorted(folder.glob("*.log")):
            end = max(end, int(path.stem))
            for batch in checked_batches(path.read_bytes()):
                end = max(end, batch.next_offset)
                known = entries.setdefault(batch.producer_id, {}) if batch.producer_id >= 0 else None
                if known is not None and (batch.is_control or batch.base_sequence >= 0):
                    _add(known, batch)
    except RecordsError:
        return None
    content = bytes(encode_snapshot(_entry(each, known) for each, known in entries.items() if known))
    return (f"{end:020d}.snapshot", content) if entries else None


def _add(known: dict[str, Any], batch: RecordBatch) -> None:
    known |= {"epoch": batch.producer_epoch, "time_ms": batch.max_timestamp_ms}
    if batch.is_control:
        marker = parse_marker(batch)
        known["begun"] = None
        known["coordinator"] = known.get("coordinator", -1) if marker is None else marker.coordinator_epoch
        return
    last = (batch.base_sequence + batch.last_offset_delta) & 0x7FFFFFFF
    known["data_epoch"] = batch.producer_epoch
    known["batch"] = BatchRange(
        batch.base_sequence, last, batch.base_offset, batch.base_offset + batch.last_offset_delta, 0
    )
    if batch.is_transactional and known.get("begun") is None:
        known["begun"] = batch.base_offset


def _entry(producer_id: int, known: dict[str, Any]) -> ProducerEntry:
    kept = (known["batch"],) if known.get("data_epoch") == known["epoch"] else ()
    coordinator = known.get("coordinator", -1)
    return ProducerEntry(producer_id, known["epoch"], kept, coordinator, known["time_ms"], known.get("begun"))
