"""Makes the table `partition_files`: each partition's directory with the contents of its small files."""

from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa

from pipeline.audits.sidecar_files import PartitionFiles

PARTITION_FILES: Final = pa.schema(
    [
        pa.field("directory", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("topic_id", pa.string()),
        pa.field("log_start", pa.int64()),
        pa.field("high_watermark", pa.int64()),
        pa.field("cleaner_offset", pa.int64()),
        pa.field("first_segment_base", pa.int64()),
        pa.field("last_segment_base", pa.int64()),
        pa.field("last_segment_bytes", pa.int64()),  # its size before the coordinators were read
    ]
)
COMPACTED_TOPICS: Final = "SELECT DISTINCT topic FROM partitions WHERE is_compacted AND left(topic, 2) <> '__'"
"""The compacted topics except the internal ones."""


def partition_rows(files: Iterable[PartitionFiles]) -> list[dict[str, Any]]:
    """Return the rows of `PARTITION_FILES`.

    A log starts no earlier than its first segment, even if the checkpoint is lower: retention may have removed segments
    since it was written, and with tiered storage the checkpoint has the start of the remote segments.
    """
    rows = [
        (
            each.directory, each.topic, each.partition, each.topic_id,
            max(each.log_start or 0, each.first_segment_base),
            each.high_watermark, each.cleaned_to, each.first_segment_base, each.last_segment_base,
            each.last_segment_bytes,
        )
        for each in files
    ]  # fmt: skip
    return [dict(zip(PARTITION_FILES.names, row, strict=True)) for row in rows]
