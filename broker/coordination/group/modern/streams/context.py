"""State shared by all rules of streams groups: the coordinator's groups, settings, topics."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from broker.coordination.group.group import Groups
from broker.coordination.group.modern.streams.group import StreamsGroup
from broker.coordination.group.modern.streams.member import Member
from broker.coordination.group.modern.streams.states import REASONS, State, state_of
from broker.coordination.group.modern.topics import Topics
from broker.coordination.group.outcome_builder import OutcomeBuilder
from broker.coordination.group.rules import Rule
from broker.coordination.reasons import Refusal, StateChange
from protocol.errors import ErrorCode
from protocol.log_records.streams_group import KeyValue, StreamsGroupEpoch, StreamsRecord

STANDBY_REPLICAS = "num.standby.replicas"
RACK_TAGS = "rack.aware.assignment.tags"
"""Assignment settings, by their names in records."""


@dataclass(frozen=True, slots=True)
class StreamsSettings:
    """The settings of streams groups.

    ``number(group_id, name)`` returns a numeric group setting, clamped to the broker's bounds; ``max_size()`` the
    largest number of members; ``rack_tags(group_id)`` the client tags that members should have.
    """

    number: Callable[[str, str], int]
    max_size: Callable[[], int]
    rack_tags: Callable[[str], Sequence[str]]


@dataclass(slots=True)
class Writes:
    """The number of records of any kind that the shard has replayed."""

    count: int = 0


@dataclass(frozen=True, slots=True)
class StreamsContext:
    """The groups of a coordinator, with the settings and topics that their rules read.

    ``newer()``: whether the rules of Kafka 4.4 apply. ``delays`` are the ends of running initial rebalance delays by
    group id (ms); ``writes`` counts the shard's records.
    """

    groups: Groups
    settings: StreamsSettings
    topics: Topics
    newer: Callable[[], bool]
    delays: dict[str, int] = field(default_factory=dict)
    writes: Writes = field(default_factory=Writes)

    def find(self, group_id: str) -> StreamsGroup | None:
        """Return the streams group with that id, or ``None``."""
        group = self.groups.get(group_id)
        return group if isinstance(group, StreamsGroup) else None

    def existing(
        self, group_id: str, rule: Rule, *, absent: str = "Group {} not found.", reads: bool = False
    ) -> StreamsGroup:
        """Return the streams group with that id; ``rule`` is the request's; ``reads``: it reads committed state.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND; ``absent`` is the message if no group of any kind has that id.
        """
        group = self.find(group_id)
        if group is not None:
            return group
        known = self.groups.has(group_id, reads=reads)
        text = f"Group {group_id} is not a streams group." if known else absent.format(group_id)
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, *rule, text)

    def assignment_configs(self, group_id: str) -> dict[str, str]:
        """Return the settings that an assignment depends on."""
        found = {STANDBY_REPLICAS: str(self.settings.number(group_id, "streams.num.standby.replicas"))}
        tags = self.settings.rack_tags(group_id)
        return {**found, RACK_TAGS: ",".join(tags)} if tags else found

    def bump_epoch(self, builder: OutcomeBuilder, group: StreamsGroup, members: Collection[Member]) -> None:
        """Begin the group's next epoch with these members and the same topics and settings."""
        validated = group.validated_topology_epoch
        builder.record(epoch_record(group, group.epoch + 1, group.metadata_hash, validated, group.assignment_configs))
        report_change(builder, group, state_with(group, group.epoch + 1, members), group.epoch + 1)


def state_with(group: StreamsGroup, epoch: int, members: Collection[Member]) -> State:
    """Return the state of a group in that epoch with these members and the same topology and target."""
    fits = group.topology is not None and group.topology.epoch == group.validated_topology_epoch
    return state_of(epoch, group.assignment_epoch, members, fits=fits)


def report_change(builder: OutcomeBuilder, group: StreamsGroup, after: State, epoch: int) -> None:
    """Report the group's change of state or epoch to observers, if there is one."""
    before = group.state
    if (before, group.epoch) != (after, epoch):
        change = StateChange(group.group_id, REASONS[after], before.value, after.value, group.epoch, epoch)
        builder.changed(change)


def epoch_record(
    group: StreamsGroup, epoch: int, metadata_hash: int, validated_topology_epoch: int, configs: dict[str, str]
) -> StreamsRecord:
    """Return the record of a group epoch."""
    pairs = tuple(KeyValue(key, value) for key, value in configs.items())
    return StreamsRecord.of(group.group_id, StreamsGroupEpoch(epoch, metadata_hash, validated_topology_epoch, pairs))
