"""The tables of the pipeline: their columns, as Arrow types and as Spark reads them.

`kafka_segments` begins with the columns of Spark's own Kafka source, in its order and types; more columns of a record
can be requested by name. Timestamps are Kafka's milliseconds; where a column is a Spark `timestamp`, it is null for
times that 64 bits of microseconds cannot hold, and `timestamp_ms` has them unchanged.
"""

from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa

INSTANT: Final = pa.timestamp("us", tz="UTC")
HEADERS: Final = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))

KAFKA: Final = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", INSTANT),
        pa.field("timestampType", pa.int32()),
    ]
)
"""Columns of `format("kafka")`; `headers` follows them if requested."""

EXTRA: Final = pa.schema(
    [
        pa.field("headers", HEADERS),  # null for a record without headers, like Spark's Kafka source
        pa.field("timestamp_ms", pa.int64()),
        pa.field("producer_id", pa.int64()),  # -1: none, as in the batch header
        pa.field("producer_epoch", pa.int16()),
        pa.field("sequence", pa.int32()),
        pa.field("is_transactional", pa.bool_()),
        pa.field("is_control", pa.bool_()),
        pa.field("aborted", pa.bool_()),  # its transaction was aborted
        pa.field("leader_epoch", pa.int32()),
        pa.field("batch_base_offset", pa.int64()),
        pa.field("segment", pa.string()),  # path of the file
        pa.field("position", pa.int64()),  # position of its batch in the file, in bytes
        pa.field("damage", pa.string()),  # why there is no record; null for a valid one
    ]
)
"""Optional columns of `kafka_segments`."""

BATCHES: Final = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("segment", pa.string()),
        pa.field("position", pa.int64()),
        pa.field("size", pa.int64()),  # bytes, including the header
        pa.field("base_offset", pa.int64()),
        pa.field("last_offset", pa.int64()),
        pa.field("record_count", pa.int32()),
        pa.field("magic", pa.int8()),
        pa.field("attributes", pa.int32()),  # the bits in the header, as an unsigned number
        pa.field("crc", pa.int64()),  # from the batch header; null for magic 0 and 1
        pa.field("leader_epoch", pa.int32()),
        pa.field("codec", pa.string()),  # none, gzip, snappy, lz4, zstd
        pa.field("timestampType", pa.int32()),  # 0 CreateTime, 1 LogAppendTime, -1 for magic 0, which has no timestamp
        pa.field("base_timestamp_ms", pa.int64()),
        pa.field("max_timestamp_ms", pa.int64()),
        pa.field("delete_horizon_ms", pa.int64()),  # null unless the cleaner has set one
        pa.field("producer_id", pa.int64()),
        pa.field("producer_epoch", pa.int16()),
        pa.field("base_sequence", pa.int32()),
        pa.field("last_sequence", pa.int32()),
        pa.field("is_transactional", pa.bool_()),
        pa.field("is_control", pa.bool_()),
        pa.field("control_type", pa.string()),  # ABORT, COMMIT, LEADER_CHANGE, ...; null in data batches
        pa.field("coordinator_epoch", pa.int32()),  # of control batches
        pa.field("damage", pa.string()),  # null for a valid batch; else untrusted columns are null
    ]
)
"""`kafka_batches`: one row per batch, and one per range of bytes that is not a batch."""

_PLACE: Final = [
    pa.field("topic", pa.string()),  # offset in the internal topic
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
    pa.field("timestamp_ms", pa.int64()),
    pa.field("producer_id", pa.int64()),
    pa.field("is_transactional", pa.bool_()),
    pa.field("aborted", pa.bool_()),
    pa.field("is_tombstone", pa.bool_()),
]
_TOPIC_PARTITION: Final = pa.struct([pa.field("topic", pa.string()), pa.field("partition", pa.int32())])
_MEMBER: Final = pa.struct(
    [
        pa.field("member_id", pa.string()),
        pa.field("group_instance_id", pa.string()),
        pa.field("client_id", pa.string()),
        pa.field("client_host", pa.string()),
        pa.field("rebalance_timeout_ms", pa.int32()),
        pa.field("session_timeout_ms", pa.int32()),
        pa.field("subscription", pa.binary()),
        pa.field("assignment", pa.binary()),
        # For the protocol type `consumer`; null if the bytes are not an assignment.
        pa.field("assigned", pa.list_(_TOPIC_PARTITION)),
        pa.field("has_user_data", pa.bool_()),
    ]
)

STATE: Final = {
    "offsets": pa.schema(
        [
            *_PLACE,
            pa.field("group_id", pa.string()),
            pa.field("committed_topic", pa.string()),
            pa.field("committed_partition", pa.int32()),
            pa.field("committed_offset", pa.int64()),
            pa.field("committed_leader_epoch", pa.int32()),
            pa.field("metadata", pa.string()),
            pa.field("commit_timestamp_ms", pa.int64()),
            pa.field("expire_timestamp_ms", pa.int64()),
            pa.field("topic_id", pa.string()),
        ]
    ),
    "groups": pa.schema(
        [
            *_PLACE,
            pa.field("group_id", pa.string()),
            pa.field("protocol_type", pa.string()),
            pa.field("generation", pa.int32()),
            pa.field("protocol", pa.string()),
            pa.field("leader", pa.string()),
            pa.field("current_state_timestamp_ms", pa.int64()),
            pa.field("members", pa.list_(_MEMBER)),
        ]
    ),
    "transactions": pa.schema(
        [
            *_PLACE,
            pa.field("transactional_id", pa.string()),
            pa.field("transaction_producer_id", pa.int64()),
            pa.field("transaction_producer_epoch", pa.int16()),
            pa.field("timeout_ms", pa.int32()),
            pa.field("state", pa.string()),  # Empty, Ongoing, PrepareCommit, ...
            pa.field("partitions", pa.list_(_TOPIC_PARTITION)),
            pa.field("last_update_ms", pa.int64()),
            pa.field("start_ms", pa.int64()),
            pa.field("previous_producer_id", pa.int64()),
            pa.field("next_producer_id", pa.int64()),
            pa.field("client_transaction_version", pa.int16()),
        ]
    ),
    "group_records": pa.schema(
        [
            *_PLACE,
            pa.field("group_id", pa.string()),
            pa.field("group_type", pa.string()),  # consumer, share, streams
            pa.field("type", pa.string()),  # of these groups: GROUP_METADATA, CURRENT_MEMBER, ...
            pa.field("name", pa.string()),  # a member id, or a regular expression
            pa.field("record", pa.string()),  # its fields as JSON; null in a tombstone
        ]
    ),
    "share": pa.schema(
        [
            *_PLACE,
            pa.field("group_id", pa.string()),
            pa.field("topic_id", pa.string()),
            pa.field("shared_partition", pa.int32()),
            pa.field("type", pa.string()),  # ShareSnapshot, ShareUpdate
            pa.field("record", pa.string()),  # its fields as JSON; null in a tombstone
        ]
    ),
    "metadata": pa.schema(
        [
            *_PLACE,
            pa.field("type", pa.string()),  # TopicRecord, PartitionChangeRecord, ...
            pa.field("record", pa.string()),  # its fields as JSON
        ]
    ),
    "unknown": pa.schema(
        [
            *_PLACE,
            pa.field("kind", pa.int32()),  # from the key; null if it has no type
            pa.field("reason", pa.string()),  # why a record of a known type cannot be read; null for an unknown type
            pa.field("key", pa.binary()),
            pa.field("value", pa.binary()),
        ]
    ),
}
"""Tables of `kafka_state` by option `kind`: `__consumer_offsets` (offsets, groups, group_records),
`__transaction_state`, `__share_group_state` (share), `__cluster_metadata`, and `unknown` for everything else, so that
nothing is lost.
"""

STATE_TOPICS: Final = {
    "offsets": ("__consumer_offsets",),
    "groups": ("__consumer_offsets",),
    "transactions": ("__transaction_state",),
    "group_records": ("__consumer_offsets",),
    "share": ("__share_group_state",),
    "metadata": ("__cluster_metadata",),
    "unknown": ("__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"),
}

STATE_RECORDS: Final = (
    "topic", "partition", "offset", "timestamp_ms", "producer_id",
    "is_transactional", "aborted", "key", "value",
)  # fmt: skip
"""The columns of `kafka_segments` from which `kafka_state` is made."""


JOURNAL: Final = pa.schema(
    [
        *(pa.field(name, pa.int64()) for name in ("v", "era", "id", "lost", "ts_us", "duration_us", "at_ms")),
        pa.field("run", pa.string()),
        pa.field("cluster_id", pa.string()),
        pa.field("broker", pa.int32()),
        pa.field("listener", pa.string()),
        pa.field("connection", pa.int64()),
        *(pa.field(name, pa.string()) for name in ("client", "principal", "client_id", "software", "software_version")),
        pa.field("api_key", pa.int32()),
        pa.field("api", pa.string()),
        pa.field("version", pa.int32()),
        pa.field("correlation_id", pa.int32()),
        pa.field("outcome", pa.string()),
        pa.field("error_codes", pa.list_(pa.int16())),
        pa.field("error", pa.string()),
        pa.field("faults", pa.list_(pa.string())),
        pa.field("request_bytes", pa.int64()),
        pa.field("response_bytes", pa.int64()),
        pa.field("request", pa.string()),  # JSON; parse_json() makes a VARIANT of it
        pa.field("response", pa.string()),
        pa.field("file", pa.string()),
        pa.field("damage", pa.string()),  # null for a valid line
    ]
)
"""`wire_journal`: one row per request and response; docs/debugging.md describes the columns."""


def state_schema(kind: str, mode: str) -> pa.Schema:
    """Return the columns of a kind, and `damage` if it is reported. Raises ValueError for an unknown kind."""
    if kind not in STATE:
        raise ValueError(f"kind={kind}: there are {', '.join(STATE)}")
    damage = [pa.field("damage", pa.string())] if mode == "report" else []
    return pa.schema([*STATE[kind], *damage])


def segments(
    *, headers: bool = False, extra: Iterable[str] = (), values: bool = True, damage: bool = False
) -> pa.Schema:
    """Return the columns of `kafka_segments`.

    Args:
        headers: whether `headers` follows Spark's columns (`includeHeaders`).
        extra: names of `EXTRA`, in the order in which they are returned; "*" is all of them.
        values: False leaves out key, value and headers, and avoids decompression where possible.
        damage: whether `damage` comes last (`mode=report`).

    Raises:
        ValueError: a name that is not in `EXTRA`.
    """
    wanted = ["headers"] if headers else []
    for name in extra:
        names = EXTRA.names if name == "*" else [name]
        wanted += [each for each in names if each not in wanted]
    if damage and "damage" not in wanted:
        wanted.append("damage")
    if strange := [name for name in wanted if name not in EXTRA.names]:
        raise ValueError(f"no column {strange[0]!r}; there are: {', '.join(EXTRA.names)}")
    fields = [*KAFKA, *(EXTRA.field(name) for name in wanted)]
    return pa.schema([field for field in fields if values or field.name not in {"key", "value", "headers"}])


_SPARK_TYPES: Final[dict[Any, str]] = {
    pa.binary(): "binary",
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float64(): "double",
    INSTANT: "timestamp",
}


def ddl(schema: pa.Schema) -> str:
    """Return the schema as Spark's DDL, which a data source's `schema()` may return."""
    return ", ".join(f"`{field.name}` {_spark_type(field.type)}" for field in schema)


def _spark_type(kind: Any) -> str:
    if pa.types.is_list(kind):
        return f"array<{_spark_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'`{field.name}`: {_spark_type(field.type)}' for field in kind)}>"
    return _SPARK_TYPES[kind]
