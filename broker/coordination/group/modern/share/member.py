"""A member of a share group, and its records (groups D.1)."""

from collections.abc import Mapping
from dataclasses import field, replace
from uuid import UUID

from protocol.deferred import dataclass
from protocol.log_records.consumer_group import TargetPartitions
from protocol.log_records.share_group import (
    ShareCurrentMember,
    ShareGroupKind,
    ShareGroupRecord,
    ShareMemberMetadata,
    ShareTargetMember,
)

Partitions = Mapping[UUID, frozenset[int]]
"""Topic id -> partitions."""


@dataclass(frozen=True, slots=True)
class ShareMember:
    """A member of a share group; ``client_host`` is in Java's form, ``/127.0.0.1``. It is never static."""

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed: frozenset[str] = frozenset()
    epoch: int = 0
    previous_epoch: int = 0
    assigned: Partitions = field(default_factory=dict)

    instance_id: None = None

    def with_metadata(self, record: ShareMemberMetadata) -> "ShareMember":
        """Return this member with the metadata of a record."""
        return replace(
            self,
            rack_id=record.rack_id,
            client_id=record.client_id,
            client_host=record.client_host,
            subscribed=frozenset(record.subscribed_topic_names),
        )

    def is_at(self, record: ShareCurrentMember) -> "ShareMember":
        """Return this member with the epochs and the assignment of a record."""
        return replace(
            self,
            epoch=record.member_epoch,
            previous_epoch=record.previous_member_epoch,
            assigned=read_partitions(record.assigned_partitions),
        )

    @property
    def metadata(self) -> tuple[object, ...]:
        """The member's metadata, for comparison."""
        return self.rack_id, self.client_id, self.client_host, self.subscribed

    @property
    def at(self) -> tuple[object, ...]:
        """The member's epochs and assignment, for comparison."""
        return self.epoch, self.previous_epoch, self.assigned

    def metadata_record(self, group_id: str) -> ShareGroupRecord:
        """Return the record of the member's metadata."""
        value = ShareMemberMetadata(self.rack_id, self.client_id, self.client_host, tuple(sorted(self.subscribed)))
        return ShareGroupRecord.of(group_id, value, self.member_id)

    def current_record(self, group_id: str) -> ShareGroupRecord:
        """Return the record of the member's epochs and assignment."""
        value = ShareCurrentMember(self.epoch, self.previous_epoch, 0, write_partitions(self.assigned))
        return ShareGroupRecord.of(group_id, value, self.member_id)


def target_record(group_id: str, member_id: str, target: Partitions) -> ShareGroupRecord:
    """Return the record of a member's target assignment."""
    return ShareGroupRecord.of(group_id, ShareTargetMember(write_partitions(target)), member_id)


def tombstones(group_id: str, member_id: str) -> tuple[ShareGroupRecord, ...]:
    """Return the tombstones that delete a member (groups D.1 S1)."""
    kinds = (ShareGroupKind.CURRENT_MEMBER, ShareGroupKind.TARGET_MEMBER, ShareGroupKind.MEMBER_METADATA)
    return tuple(ShareGroupRecord(kind, group_id, member_id) for kind in kinds)


def read_partitions(recorded: tuple[TargetPartitions, ...]) -> Partitions:
    """Return the partitions in a record."""
    return {each.topic_id: frozenset(each.partitions) for each in recorded}


def write_partitions(partitions: Partitions) -> tuple[TargetPartitions, ...]:
    """Return partitions in the form of a record."""
    return tuple(TargetPartitions(topic_id, tuple(sorted(indexes))) for topic_id, indexes in partitions.items())
