"""What every kind of group is to the parts that serve all of them: offsets, listing, deletion, expiry.

Kinds share one name space per shard (groups F.7). Classic, consumer (KIP-848) and share groups (KIP-932) are built;
streams groups (KIP-1071) get their own rules beside them and share this interface and the table.
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
    """A group's kind under its name on the wire (ListGroups v5, KIP-848)."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class Committer(NamedTuple):
    """Who commits offsets. ``generation`` is a generation or a member epoch, -1 for none.

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
        """Its kind."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether it may be deleted."""
        ...

    @property
    def state_name(self) -> str:
        """Its state under its name on the wire."""
        ...

    @property
    def epoch(self) -> int:
        """Its epoch; the generation of a classic group."""
        ...

    @property
    def listed_protocol_type(self) -> str:
        """The protocol type in ListGroups; "" for none."""
        ...

    def in_states(self, names: Iterable[str]) -> bool:
        """Whether its state is among these names, given in lower case (groups A.13)."""
        ...

    def check_commit(self, committer: Committer) -> PartitionCheck | None:
        """Raise KafkaError unless that committer may commit offsets now; what is to be asked of each partition yet."""
        ...

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise KafkaError unless that member may fetch offsets now."""
        ...

    def check_offset_delete(self) -> None:
        """Raise KafkaError unless offsets may be deleted now."""
        ...

    def subscribes_to(self, topic: str) -> bool:
        """Whether a member reads the topic, so that its offsets stay."""
        ...

    def expiry_base(self) -> Callable[[OffsetCommit], int] | None:
        """From which point in time an offset ages (ms), or ``None`` while nothing expires."""
        ...

    def tombstones(self) -> tuple[GroupRecord, ...]:
        """The records that forget the group, without its offsets."""
        ...


class Groups(MutableMapping[str, Group]):
    """The groups of a shard by id, with what reads of committed state do not see yet.

    A mapping of its own and no ``dict``, whose inherited methods would change the groups and not the table.
    """

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}
        self._table: TimelineMap[None] = TimelineMap()
        self.unseen: set[str] = set()
        """Groups created without a record: reads see only committed state, so not these before the next record."""

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
        """The groups as Kafka's table lists them."""
        return [self[group_id] for group_id in self._table]

    def has(self, group_id: str, *, reads: bool) -> bool:
        """Whether there is a group of that id, of any kind, for a request that ``reads`` committed state or writes."""
        return group_id in self and not (reads and group_id in self.unseen)
