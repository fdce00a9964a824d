"""Epochs and states of streams groups, and the context of their rules."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import field

from broker.coordination.group.modern.context import ModernContext, report_transition
from broker.coordination.group.modern.streams.group import StreamsGroup
from broker.coordination.group.modern.streams.member import Member
from broker.coordination.group.modern.streams.states import REASONS, State, state_of
from broker.coordination.group.outcome_builder import OutcomeBuilder
from broker.settings.releases import Behaviour
from protocol.deferred import dataclass
from protocol.log_records.streams_group import KeyValue, StreamsGroupEpoch, StreamsRecord

STANDBY_REPLICAS = "num.standby.replicas"
RACK_TAGS = "rack.aware.assignment.tags"
"""Assignment settings, by their names in records."""


@dataclass(slots=True)
class Writes:
    """The number of records of any kind that the shard has replayed."""

    count: int = 0


@dataclass(frozen=True, slots=True)
class StreamsContext(ModernContext[StreamsGroup]):
    """State shared by all rules of streams groups.

    ``rack_tags(group_id)`` returns the client tags that members should have. ``delays`` are the ends of running initial
    rebalance delays by group id (ms); ``writes`` counts the shard's records.
    """

    rack_tags: Callable[[str], Sequence[str]]
    delays: dict[str, int] = field(default_factory=dict)
    writes: Writes = field(default_factory=Writes)

    def newer(self) -> bool:
        """Return whether the rules of Kafka 4.4 apply."""
        return self.behaves(Behaviour.STATIC_STREAMS_MEMBERS)

    def assignment_configs(self, group_id: str) -> dict[str, str]:
        """Return the settings that an assignment depends on."""
        configs = {STANDBY_REPLICAS: str(self.group_setting(group_id, "streams.num.standby.replicas"))}
        tags = self.rack_tags(group_id)
        return {**configs, RACK_TAGS: ",".join(tags)} if tags else configs

    def bump_epoch(self, builder: OutcomeBuilder, group: StreamsGroup, members: Collection[Member]) -> None:
        """Begin the group's next epoch with these members and the same topics and settings."""
        validated = group.validated_topology_epoch
        builder.record(epoch_record(group, group.epoch + 1, group.metadata_hash, validated, group.assignment_configs))
        report_transition(builder, group, state_with(group, group.epoch + 1, members), group.epoch + 1, REASONS)


def state_with(group: StreamsGroup, epoch: int, members: Collection[Member]) -> State:
    """Return the state of a group in that epoch with these members and the same topology and target."""
    fits = group.topology is not None and group.topology.epoch == group.validated_topology_epoch
    return state_of(epoch, group.assignment_epoch, members, fits=fits)


def epoch_record(
    group: StreamsGroup, epoch: int, metadata_hash: int, validated_topology_epoch: int, configs: dict[str, str]
) -> StreamsRecord:
    """Return the record of a group epoch."""
    pairs = tuple(KeyValue(key, value) for key, value in configs.items())
    return StreamsRecord.of(group.group_id, StreamsGroupEpoch(epoch, metadata_hash, validated_topology_epoch, pairs))
