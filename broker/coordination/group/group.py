"""The interface of groups of any kind, used by offsets, listing, deletion and expiry.

Classic, consumer (KIP-848), share (KIP-932) and streams groups (KIP-1071) share one name space per shard (groups F.7)
and one table.
"""

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from enum import StrEnum
from typing import NamedTuple, Protocol
from uuid import UUID

from protocol.java import TimelineMap
from protocol.log_records.group import GroupRecord, OffsetCommit

PartitionCheck = Callable[[str, UUID | None, int], None]
"""Raises KafkaError unless the committer may commit for that topic, topic id (if known) and partition."""


class GroupType(StrEnum):
    """A kind of group, by its name in the protocol (ListGroups v5, KIP-848)."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class Committer(NamedTuple):
    """The member that commits offsets. ``generation`` is a generation or a member epoch, -1 for none.

    ``knows_stale_epochs``: whether the request's version has the error codes of KIP-848.
    """

    member_id: str
    instance_id: str | None
    generation: int
    transactional: bool = False
    knows_stale_epochs: bool = False


class Group(Protocol):
    """One group of any kind."""

    group_id: str

    @property
    def type(self) -> GroupType:
        """The kind of the group."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether the group may be deleted."""
        ...

    @property
    def state_name(self) -> str:
        """The name of the group's state in the protocol."""
        ...

    @property
    def epoch(self) -> int:
        """The group epoch; the generation of a classic group."""
        ...

    @property
    def listed_protocol_type(self) -> str:
        """The protocol type in ListGroups; "" for none."""
        ...

    def in_states(self, names: Iterable[str]) -> bool:
        """Return whether the state is among these names, given in lower case (groups A.13)."""
        ...

    def check_commit(self, committer: Committer) -> PartitionCheck | None:
        """Raise KafkaError unless the committer may commit offsets now; return the check for each partition, if any."""
        ...

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise KafkaError unless the member may fetch offsets now."""
        ...

    def check_offset_delete(self) -> None:
        """Raise KafkaError unless offsets of the group may be deleted now."""
        ...

    def subscribes_to(self, topic: str) -> bool:
        """Return whether a member subscribes to the topic, so that its offsets are kept."""
        ...

    def expiry_base(self) -> Callable[[OffsetCommit], int] | None:
        """Return the function commit -> start of its retention (ms); ``None`` while no offset expires."""
        ...

    def tombstones(self) -> tuple[GroupRecord, ...]:
        """Return the tombstones that delete the group, without those of its offsets."""
        ...


class Groups(MutableMapping[str, Group]):
    """The groups of a shard by id, and which of them reads of committed state do not see yet.

    Not a subclass of ``dict``, whose inherited methods would change the groups without the table.
    """

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}
        self._table: TimelineMap[None] = TimelineMap()
        self.unseen: set[str] = set()
        """Groups created without a record. Reads see committed state only, so they see these after the next record."""

    def __getitem__(self, group_id: str) -> Group:
        return self._groups[group_id]

    def __setitem__(self, group_id: str, group: Group) -> None:
        self._table[group_id] = None
        self._groups[group_id] = group

    def __delitem__(self, group_id: str) -> None:
        del self._groups[group_id]
        self._table.pop(group_id)

    def __iter__(self) -> Iterator[str]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)

    def forget(self, group_id: str) -> None:
        """Remove a group, if there is one."""
        if group_id in self:
            del self[group_id]

    def in_table_order(self) -> list[Group]:
        """Return the groups in the iteration order of Kafka's table."""
        return [self[group_id] for group_id in self._table]

    def has(self, group_id: str, *, reads: bool) -> bool:
        """Return whether a group of any kind exists for a request that ``reads`` committed state, or that writes."""
        return group_id in self and not (reads and group_id in self.unseen)
