"""Topics, partitions, records."""

from dataclasses import dataclass, field
from typing import Annotated, Literal, TypedDict

from control_api.fields import About, Int64, Short

Offset = Annotated[int, About("at the leader; -1: no broker with a replica is running")]


@dataclass(frozen=True, slots=True)
class Producer:
    """State of an idempotent producer in a partition; `txn_start_offset` is -1 without an open transaction."""

    producer_id: Int64
    producer_epoch: int = -1
    last_sequence: int = -1
    last_timestamp_ms: Int64 = -1
    coordinator_epoch: int = -1
    txn_start_offset: Annotated[int, About("-1: no transaction is open")] = -1


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """A range of offsets that read_committed readers skip for this producer."""

    producer_id: Int64
    first_offset: int
    last_offset: int = -1


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment of a partition's log."""

    base_offset: int
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition: `leader` is -1 without one; offsets as the leader sees them."""

    partition: int
    leader: Annotated[int, About("-1: no leader")] = -1
    leader_epoch: int = -1
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    held: Annotated[tuple[int, ...], About("followers that do not replicate", detail=True)] = ()
    log_start_offset: Offset = 0
    high_watermark: Offset = 0
    last_stable_offset: Offset = 0
    log_end_offset: Offset = 0
    size_bytes: Offset = 0
    segments: Annotated[tuple[Segment, ...], About(detail=True)] = ()
    producers: Annotated[tuple[Producer, ...], About(detail=True)] = ()
    open_transactions: Annotated[tuple[Producer, ...], About(detail=True)] = ()
    aborted_transactions: Annotated[tuple[AbortedTransaction, ...], About(detail=True)] = ()


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic with its partitions and the configs that differ from the defaults."""

    name: str
    id: str = ""
    internal: bool = False
    partitions: tuple[Short[Partition], ...] = ()
    configs: dict[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Header:
    """One header of a record; a record may carry the same key twice."""

    key: str
    value: bytes | None = None


@dataclass(frozen=True, slots=True)
class Decoded:
    """The schema of a key or value, and its decoded data; `problem` is the reason if it cannot be decoded."""

    json: Annotated[str | None, About("the decoded data as JSON, with numbers unchanged")] = None
    type: Annotated[str | None, About("AVRO, JSON or PROTOBUF; null: unknown schema")] = None
    magic: Annotated[int | None, About("magic byte: 0, a schema id follows; 1, a GUID; null: none")] = None
    schema_id: int | None = None
    schema_guid: str | None = None
    subjects: Annotated[tuple[str, ...], About("such as orders-value version 1; the topic's subject first")] = ()
    source: Annotated[str | None, About("URL of the registry, or file, that has the schema")] = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One record of the log."""

    offset: int
    partition: int = 0
    timestamp_ms: Int64 = -1
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[Header, ...] = ()
    producer_id: Int64 = -1
    producer_epoch: int = -1
    sequence: Annotated[int, About("-1: none")] = -1
    transactional: bool = False
    control: Annotated[Literal["commit", "abort"] | None, About("of a transaction marker")] = None
    key_decoded: Annotated[Decoded | None, About("with `decode`; null: the data has no schema")] = None
    value_decoded: Annotated[Decoded | None, About("like `key_decoded`")] = None


@dataclass(frozen=True, slots=True)
class Written:
    """Partition and offset of a record that was written through the control plane."""

    partition: int
    offset: int


class Topics(TypedDict):
    """All topics, by name."""

    topics: list[Topic]


class Records(TypedDict):
    """Records of a partition, and the range of its offsets."""

    records: list[Record]
    high_watermark: int
    log_start_offset: int


class RecordsWritten(TypedDict):
    """Partitions and offsets of the records, in the order of the request."""

    written: list[Written]
