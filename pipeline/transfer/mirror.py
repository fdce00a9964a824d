"""Copies a running cluster's logs into a folder like a data directory, with every batch unchanged."""

from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

from pipeline.transfer.selection import Choice
from pipeline.transfer.wire import EARLIEST, LATEST, Cluster, batches_of
from protocol.records.batch import batches
from storage.checkpoints import (
    HIGH_WATERMARK,
    LOG_START,
    PARTITION_METADATA,
    encode_offsets,
    encode_partition_metadata,
)
from storage.log.segment import LOG_SUFFIX, offset_name

SEGMENT_BYTES = 1 << 30  # the default of segment.bytes


def mirror(
    cluster: Cluster, folder: Path, choice: Choice, goes_on: Mapping[tuple[str, int], int] | None = None
) -> dict[str, dict[str, str]]:
    """Fetch the selected topics into `folder`; return the topics' configurations. Raises WireError.

    Args:
        cluster: the source. Topics whose ids it knows are copied with them.
        folder: an empty folder.
        choice: which topics, and their names in the export.
        goes_on: name in the export and partition -> the first offset to fetch, unless it is the log start.
    """
    starts: dict[tuple[str, int], int] = {}
    ends: dict[tuple[str, int], int] = {}
    wanted = [topic for topic in cluster.topics.values() if choice.wants(topic.name)]
    for topic in wanted:
        for partition in topic.leaders:
            place = folder / f"{topic.name}-{partition}"
            place.mkdir(parents=True)
            if (topic_id := cluster.topic_ids.get(topic.name)) is not None:
                (place / PARTITION_METADATA).write_bytes(encode_partition_metadata(UUID(topic_id)))
            starts[topic.name, partition] = start = cluster.offset(topic.name, partition, EARLIEST)
            begin = max(start, (goes_on or {}).get((choice.name_of(topic.name), partition), start))
            if begin > start:  # no offset beyond the end, which would hide that the log was truncated
                begin = max(start, min(begin, cluster.offset(topic.name, partition, LATEST)))
            ends[topic.name, partition] = _copy(cluster, topic.name, partition, place, begin)
    (folder / LOG_START).write_bytes(encode_offsets(starts))
    (folder / HIGH_WATERMARK).write_bytes(encode_offsets(ends))
    return cluster.configs([topic.name for topic in wanted]) if wanted else {}


def _copy(cluster: Cluster, topic: str, partition: int, place: Path, start: int) -> int:
    """Copy a partition's batches; return the offset after the last. The first batch may begin before the log start."""
    end = start
    file: BinaryIO | None = None
    try:
        for piece in batches_of(cluster, topic, partition, start):
            if file is None or file.tell() + len(piece) > SEGMENT_BYTES:
                if file is not None:
                    file.close()
                # The base offset comes first.
                file = (place / offset_name(int.from_bytes(piece[:8]), LOG_SUFFIX)).open("wb")
            file.write(piece)
            end = max(batch.next_offset for batch in batches(piece))
    finally:
        if file is None:
            file = (place / offset_name(start, LOG_SUFFIX)).open("wb")
        file.close()
    return end
