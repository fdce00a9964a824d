"""Defines the tables of what brokers report, beside those of the logs."""

from typing import Final

import pyarrow as pa

_PLACE: Final = [pa.field("topic", pa.string()), pa.field("partition", pa.int32())]
_PRODUCER: Final = [pa.field("producer_id", pa.int64()), pa.field("producer_epoch", pa.int32())]

OF_FILES: Final = (
    "checkpoint-offset", "high-watermark-beyond-end", "index-offset", "index-time", "index-transaction",
    "leader-epoch-checkpoint", "leader-epoch-entries", "meta-properties", "partition-missing", "partition-twice",
    "producer-snapshot", "replica-differs", "segment-files",
)  # fmt: skip
"""Checks that need a broker's own files, which a copy of its logs does not have."""
TABLES: Final = {
    "live_partitions": pa.schema(
        [
            *_PLACE,
            pa.field("topic_id", pa.string()),
            pa.field("log_start", pa.int64()),
            pa.field("last_stable_offset", pa.int64()),
            pa.field("high_watermark", pa.int64()),
            pa.field("has_producers", pa.bool_()),  # whether the leader reported its producers
            pa.field("has_transactions", pa.bool_()),  # whether all coordinators reported all transactions
        ]
    ),
    "live_producers": pa.schema(
        [
            *_PLACE,
            *_PRODUCER,
            pa.field("last_sequence", pa.int32()),
            pa.field("last_timestamp_ms", pa.int64()),
            pa.field("coordinator_epoch", pa.int32()),
            pa.field("transaction_offset", pa.int64()),  # start of its open transaction; -1 if none
        ]
    ),
    "live_transactions": pa.schema(
        [
            pa.field("transactional_id", pa.string()),
            *_PRODUCER,
            pa.field("state", pa.string()),
            pa.field("timeout_ms", pa.int32()),
            pa.field("start_ms", pa.int64()),  # -1 if none is open
            pa.field("coordinator", pa.int32()),
            *_PLACE,  # null if no partition is in it
            pa.field("age_ms", pa.int64()),  # since its start; null if none is open
            pa.field("in_state_ms", pa.int64()),  # since the step that first saw it in this state
        ]
    ),
    "live_commits": pa.schema([pa.field("group_id", pa.string()), *_PLACE, pa.field("committed_offset", pa.int64())]),
    "live_changes": pa.schema(
        [
            *_PLACE,
            pa.field("what", pa.string()),  # log_start, high_watermark, last_stable_offset
            pa.field("offset", pa.int64()),  # the value that it went back to
            pa.field("before", pa.int64()),
            pa.field("step", pa.int64()),
        ]
    ),
}
"""Rows of the last step; `live_changes` has those of all steps: bounds that went back."""
