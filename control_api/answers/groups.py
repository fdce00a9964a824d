"""Groups and their timelines."""

from dataclasses import dataclass
from typing import Annotated, TypedDict

from control_api.answers.common import Citation, Count, FaultIds, Forgotten, Rule, TimeMs
from control_api.fields import About, Int64, Short


@dataclass(frozen=True, slots=True)
class Member:
    """One member of a group."""

    member_id: str
    client_id: str = ""
    client_host: str = ""
    instance_id: str | None = None
    epoch: int = -1
    assignment: Annotated[
        tuple[str, ...], About("such as topic-0; tasks of a streams group such as 0_1, or standby 0_2")
    ] = ()
    leads: Annotated[bool, About("whether it is the leader of a classic group")] = False


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """A committed offset and the lag of the group."""

    topic: str
    partition: int
    offset: Int64
    metadata: str | None = None
    lag: Annotated[int, About("-1: unknown", wide=True)] = -1
    committed_ms: TimeMs | None = None


@dataclass(frozen=True, slots=True)
class PendingOffset:
    """An offset that an open transaction has committed; it counts when the transaction is committed."""

    topic: str
    partition: int
    offset: Int64
    producer_id: Int64
    transactional_id: str | None = None
    since_ms: TimeMs | None = None
    until_ms: Annotated[int | None, About("when the transaction times out; null: it is ending, or unknown")] = None


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """A partition that a group reads, with its committed offset and its lag, as Kafka's tools show them."""

    topic: str
    partition: int
    offset: Annotated[
        int | None, About("committed offset; for a share group the start offset; null: none", wide=True)
    ] = None
    end_offset: Annotated[int | None, About("high watermark; null: unknown", wide=True)] = None
    lag: Annotated[int | None, About("null: unknown, for example without a committed offset", wide=True)] = None


@dataclass(frozen=True, slots=True)
class ShareRecords:
    """A run of records of a share group in the same state, and their previous acquisition, which has ended.

    `member_id`, `since_ms` and `lock_until_ms` are those of acquired records.
    """

    first_offset: Int64
    last_offset: Int64
    state: Annotated[str, About("available, acquired, acknowledged, archiving (for the dead-letter queue) or archived")]
    delivery_count: int = 0
    member_id: str | None = None
    since_ms: TimeMs | None = None
    lock_until_ms: Annotated[int | None, About("when the acquisition lock ends")] = None
    last_member_id: Annotated[
        str | None, About("member of the previous acquisition, since the leader loaded the partition")
    ] = None
    last_since_ms: TimeMs | None = None
    last_ended_ms: TimeMs | None = None
    last_end: Annotated[str | None, About("why the previous acquisition ended, and the record is delivered again")] = (
        None
    )


@dataclass(frozen=True, slots=True)
class SharePartition:
    """A share partition as loaded at its leader; records below `start_offset` are complete."""

    topic: str
    partition: int
    leader: Annotated[int, About("id of the broker")]
    start_offset: Int64
    next_offset: Annotated[int, About("the first offset that a member could acquire", wide=True)]
    records: tuple[ShareRecords, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupEvent:
    """One event of a group: a request or a state change.

    Old rebalances are folded into one event with a `count`, from `at_ms` to `until_ms`.
    """

    at_ms: TimeMs
    event: str
    until_ms: Annotated[int, About("time of the last one of merged events")] = -1
    count: Count = 1
    state_before: str = ""
    state_after: str = ""
    epoch_before: Annotated[int, About("generation or group epoch; -1: none")] = -1
    epoch_after: int = -1
    member_id: str = ""
    instance_id: str | None = None
    client_id: str | None = None
    connection: int | None = None
    broker: int | None = None
    api: str | None = None
    version: int | None = None
    error: str | None = None
    rule: Rule = ""
    citation: Citation = ""
    fault: FaultIds = None
    detail: Annotated[str, About("what the event has besides its name: a reason, a limit, the new member id")] = ""
    partitions: Annotated[
        tuple[str, ...], About("partitions whose committed offset changed or was refused, at most 100")
    ] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """One group; `epoch` is the generation of a classic group, the group epoch of the others."""

    group_id: str
    type: str = "classic"
    state: str = ""
    protocol: str | None = None
    epoch: Annotated[int, About("generation of a classic group, group epoch of the others")] = -1
    coordinator: Annotated[int, About("id of the broker")] = -1
    members: tuple[Member, ...] = ()
    offsets: tuple[GroupOffset, ...] = ()
    pending_offsets: Annotated[tuple[PendingOffset, ...], About("committed in transactions that are open")] = ()
    lags: Annotated[
        tuple[PartitionLag, ...],
        About("partitions that are assigned, have a committed offset, or have state of the share group"),
    ] = ()
    share_partitions: Annotated[
        tuple[SharePartition, ...], About("for a share group: its records in flight", detail=True)
    ] = ()
    timeline: Annotated[tuple[GroupEvent, ...], About(detail=True)] = ()
    forgotten: Forgotten = 0
    lag: Annotated[
        int | None, About("sum over the partitions whose lag is known; null: unknown for all", wide=True)
    ] = None


GroupInShort = Short[Group]


class Groups(TypedDict):
    """All groups."""

    groups: list[GroupInShort]
