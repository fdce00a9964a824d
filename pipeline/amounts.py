"""Estimates how much a command has to read, from the sizes of the files and the first batches of a few segments."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from pipeline.decoding.batch_scan import Framed
from pipeline.directory import Segment, logs_below
from pipeline.locations import files_below, is_file, locate, size_of
from pipeline.segment_reader import Range, read_pieces

_SAMPLED: Final = 16
"""Segments, the largest ones: they have most of the data.

Ours, each costs a read.
"""
_SAMPLE_BYTES: Final = 256 * 1024  # of the beginning: dozens of batches, from which all are estimated
_JOURNAL: Final = (".jsonl", ".jsonl.open", ".jsonl.gz")


class Amount(NamedTuple):
    """Bytes of logs and journals; batches and records are estimates."""

    log_bytes: int = 0
    batches: int = 0
    records: int = 0
    journal_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        """Return the bytes of all."""
        return self.log_bytes + self.journal_bytes


def amount_of(paths: Iterable[str]) -> Amount:
    """Return the amount of all data below some paths. Raises FileNotFoundError: there is nothing at a path."""
    segments: list[Segment] = []
    journal_bytes = 0
    for path in paths:
        location = locate(path)
        if is_file(location):
            journal_bytes += size_of(location)
            continue
        segments += [segment for log in logs_below(location) for segment in log.segments]
        journal_bytes += sum(each.size for each in files_below(location) if each.location.path.endswith(_JOURNAL))
    log_bytes = sum(each.size for each in segments)
    read_bytes, batches, records = _sampled(sorted(segments, key=lambda each: -each.size)[:_SAMPLED])
    scale = log_bytes / read_bytes if read_bytes else 0
    return Amount(log_bytes, round(batches * scale), round(records * scale), journal_bytes)


def _sampled(segments: Sequence[Segment]) -> tuple[int, int, int]:
    """Return bytes, batches and records at the start of each segment."""
    read_bytes = batches = records = 0
    for segment in segments:
        span = Range(segment, 0, min(segment.size, _SAMPLE_BYTES))
        for chunk in read_pieces(span, crc=False, chunk_bytes=_SAMPLE_BYTES):
            if isinstance(chunk.piece, Framed):
                headers = chunk.piece.headers
                # Base offset and length precede what the length counts.
                read_bytes += int(headers["length"].sum()) + 12 * len(headers)
                batches += len(headers)
                records += int(headers["count"].sum())
    return read_bytes, batches, records
