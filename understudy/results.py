"""What the control plane answers, typed. Times are milliseconds of the cluster's clock since 1970; ids are Kafka's.

These names are the JSON's names too: a test holds them against the server's OpenAPI document.
"""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Health:
    """GET /v1/health."""

    status: str = "ok"


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker identity; `up` is false after kill and stop, `fenced` once the cluster has noticed."""

    id: int
    host: str = ""
    port: int = 0
    up: bool = True
    fenced: bool = False
    epoch: int = -1
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """GET /v1/cluster."""

    cluster_id: str
    controller: int = -1
    as_version: str = ""
    seed: int = 0
    topics: int = 0
    features: dict[str, int] = field(default_factory=dict)
    brokers: tuple[Broker, ...] = ()


@dataclass(frozen=True, slots=True)
class ClockState:
    """The cluster's clock: what it shows, how far it is ahead of the machine's, whether it stands still."""

    now_ms: int
    ahead_ms: int = 0
    frozen: bool = False


@dataclass(frozen=True, slots=True)
class Producer:
    """What a partition knows of an idempotent producer; `txn_start_offset` is -1 without an open transaction."""

    producer_id: int
    producer_epoch: int = -1
    last_sequence: int = -1
    last_timestamp_ms: int = -1
    coordinator_epoch: int = -1
    txn_start_offset: int = -1


@dataclass(frozen=True, slots=True)
class ProducerPlace:
    """What one partition, such as ``orders-0``, knows of a producer id."""

    partition: str
    producer_id: int = -1
    producer_epoch: int = -1
    last_sequence: int = -1
    last_timestamp_ms: int = -1
    coordinator_epoch: int = -1
    txn_start_offset: int = -1


@dataclass(frozen=True, slots=True)
class ProducerEvent:
    """One step in the life of a producer id: which sequences came, what the partition knew, the rule that decided.

    Accepted batches that follow each other are one event, from `at_ms` to `until_ms`.
    """

    at_ms: int
    event: str
    until_ms: int = -1
    partition: str = ""
    producer_epoch: int = -1
    epoch_before: int = -1
    epoch_after: int = -1
    first_sequence: int = -1
    last_sequence: int = -1
    known_sequence: int = -1
    batches: int = 0
    client_id: str | None = None
    connection: int | None = None
    broker: int | None = None
    api: str | None = None
    version: int | None = None
    error: str | None = None
    rule: str = ""
    detail: str = ""
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class ProducerLife:
    """A producer id, idempotent or transactional: the partitions that know it, and what has happened to it."""

    producer_id: int
    producer_epoch: int = -1
    transactional_id: str | None = None
    client_id: str | None = None
    partitions: tuple[ProducerPlace, ...] = ()
    timeline: tuple[ProducerEvent, ...] = ()


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """A range of offsets that read_committed readers skip for this producer."""

    producer_id: int
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
    leader: int = -1
    leader_epoch: int = -1
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    held: tuple[int, ...] = ()
    log_start_offset: int = 0
    high_watermark: int = 0
    last_stable_offset: int = 0
    log_end_offset: int = 0
    size_bytes: int = 0
    segments: tuple[Segment, ...] = ()
    producers: tuple[Producer, ...] = ()
    open_transactions: tuple[Producer, ...] = ()
    aborted_transactions: tuple[AbortedTransaction, ...] = ()


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic with its partitions and the configs that differ from the defaults."""

    name: str
    id: str = ""
    internal: bool = False
    partitions: tuple[Partition, ...] = ()
    configs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Header:
    """One header of a record; a record may carry the same key twice."""

    key: str
    value: bytes | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One record as it stands in the log."""

    offset: int
    partition: int = 0
    timestamp_ms: int = -1
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[Header, ...] = ()
    producer_id: int = -1
    producer_epoch: int = -1
    sequence: int = -1
    transactional: bool = False
    control: str | None = None  # "commit" or "abort" for a marker


@dataclass(frozen=True, slots=True)
class Written:
    """Where a record went that was written through the control plane."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """One step in the life of a transactional id: what happened, before and after, and the rule that decided."""

    at_ms: int
    event: str
    state_before: str = ""
    state_after: str = ""
    producer_id: int = -1
    epoch_before: int = -1
    epoch_after: int = -1
    client_id: str | None = None
    connection: int | None = None
    api: str | None = None
    version: int | None = None
    error: str | None = None
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transactional id and its transaction; `deadline_ms` is when the coordinator aborts it, None if none is open."""

    transactional_id: str
    state: str = ""
    producer_id: int = -1
    producer_epoch: int = -1
    last_producer_epoch: int = -1
    timeout_ms: int = -1
    deadline_ms: int | None = None
    coordinator: int = -1
    partitions: tuple[str, ...] = ()
    pending_offsets: dict[str, Any] = field(default_factory=dict)
    held_at: str | None = None
    timeline: tuple[TimelineEvent, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the last refusal happened, in words; `error` is None if nothing was refused yet."""

    why: str
    error: str | None = None
    at_ms: int | None = None
    rule: str = ""

    def __str__(self) -> str:
        """The words."""
        return self.why


@dataclass(frozen=True, slots=True)
class Member:
    """One member of a group."""

    member_id: str
    client_id: str = ""
    client_host: str = ""
    instance_id: str | None = None
    epoch: int = -1
    assignment: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """A committed offset and how far the group is behind the end of the partition."""

    topic: str
    partition: int
    offset: int
    metadata: str | None = None
    lag: int = -1


@dataclass(frozen=True, slots=True)
class GroupEvent:
    """One step in the life of a group: what was asked or happened, before and after; `epoch` is its generation."""

    at_ms: int
    event: str
    state_before: str = ""
    state_after: str = ""
    epoch_before: int = -1
    epoch_after: int = -1
    member_id: str = ""
    instance_id: str | None = None
    client_id: str | None = None
    connection: int | None = None
    broker: int | None = None
    api: str | None = None
    version: int | None = None
    error: str | None = None
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """One group; `epoch` is the generation of a classic group."""

    group_id: str
    type: str = "classic"
    state: str = ""
    protocol: str | None = None
    epoch: int = -1
    coordinator: int = -1
    members: tuple[Member, ...] = ()
    offsets: tuple[GroupOffset, ...] = ()
    timeline: tuple[GroupEvent, ...] = ()


@dataclass(frozen=True, slots=True)
class VersionRange:
    """The versions that ApiVersions advertises for an API."""

    min: int
    max: int


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """A state of the cluster that was kept, and when."""

    id: str
    at_ms: int = -1


@dataclass(frozen=True, slots=True)
class FaultState:
    """A fault as the server holds it."""

    id: str
    hits: int = 0
    match: dict[str, Any] = field(default_factory=dict)
    do: dict[str, Any] = field(default_factory=dict)
    skip: int = 0
    times: int | None = 1
    probability: float = 1.0

    @property
    def met(self) -> bool:
        """Whether a request has met it."""
        return self.hits > 0


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One request with its answer. `error` is the first error code in the answer, None without one.

    `outcome` says what became of it: "answered", "is being served" (`duration_ms` is None then), or why it was not.
    """

    id: int
    at_ms: int
    api: str
    version: int = 0
    broker: int = -1
    listener: str = ""
    connection: int = -1
    correlation_id: int = -1
    client_id: str | None = None
    software: str | None = None
    duration_ms: float | None = None
    outcome: str = "answered"
    error: str | None = None
    fault: str | None = None
    request: dict[str, Any] = field(default_factory=dict)
    response: dict[str, Any] | None = None
