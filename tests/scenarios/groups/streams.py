"""Members of streams groups (KIP-1071) at the wire."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.streams_group_describe import DescribedGroup, StreamsGroupDescribeRequest
from protocol.messages.streams_group_heartbeat import (
    Endpoint,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TaskIds,
    Topology,
)
from tests.scenarios.groups.members import SETTINGS, G
from tests.wire import Wire

STREAMS_SETTINGS: dict[str, object] = {
    **SETTINGS,
    "group.streams.min.session.timeout.ms": 1_000,
    "group.streams.min.heartbeat.interval.ms": 1_000,
    "group.streams.initial.rebalance.delay.ms": 0,
}
"""Groups are assigned at once, and may have short sessions."""
HERE = Endpoint("host", 1)
"""Where a member answers queries."""
_GROUP_RESOURCE = 32
Tasks = Mapping[str, Sequence[int]]


def ids(tasks: Tasks | None) -> list[TaskIds] | None:
    """Tasks as a heartbeat lists them."""
    return None if tasks is None else [TaskIds(*each) for each in tasks.items()]


@dataclass
class StreamsMember:
    """One member; ``epoch`` and its tasks are those of the last response."""

    wire: Wire
    topology: Sequence[Subtopology]
    member_id: str = "m1"
    process_id: str = "p1"
    group_id: str = G
    topology_epoch: int = 0
    epoch: int = 0
    active: dict[str, list[int]] = field(default_factory=dict)
    standby: dict[str, list[int]] = field(default_factory=dict)
    statuses: dict[int, str] = field(default_factory=dict)

    def beat(self, epoch: int | None = None, **fields: Any) -> StreamsGroupHeartbeatResponse:
        """One heartbeat; a field that is not given is null. The member takes over what the response has."""
        for name in ("active_tasks", "standby_tasks", "warmup_tasks"):
            fields[name] = ids(fields.get(name))
        for name in ("client_tags", "task_offsets", "task_end_offsets"):
            fields.setdefault(name, None)
        request = StreamsGroupHeartbeatRequest(
            self.group_id, self.member_id, self.epoch if epoch is None else epoch, **fields
        )
        response: StreamsGroupHeartbeatResponse = self.wire.call(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, request)
        if response.error_code is ErrorCode.NONE:
            self.epoch = response.member_epoch
            self.statuses = {each.status_code: each.status_detail for each in response.status or ()}
            if response.active_tasks is not None:
                self.active = {each.subtopology_id: list(each.partitions) for each in response.active_tasks}
                self.standby = {each.subtopology_id: list(each.partitions) for each in response.standby_tasks or ()}
        return response

    def join(self, **fields: Any) -> StreamsGroupHeartbeatResponse:
        """The first heartbeat, with the topology and without tasks."""
        first: dict[str, Any] = {
            "rebalance_timeout_ms": 300_000,
            "topology": Topology(self.topology_epoch, self.topology),
            "process_id": self.process_id,
            "active_tasks": {},
            "standby_tasks": {},
            "warmup_tasks": {},
        }
        return self.beat(0, **{**first, **fields})

    def confirm(self) -> StreamsGroupHeartbeatResponse:
        """A heartbeat that reports the tasks that the member was given."""
        return self.beat(active_tasks=self.active, standby_tasks=self.standby, warmup_tasks={})


def described(wire: Wire, group_id: str = G) -> DescribedGroup:
    """StreamsGroupDescribe of one group."""
    (group,) = wire.call(ApiKey.STREAMS_GROUP_DESCRIBE, 0, StreamsGroupDescribeRequest([group_id])).groups
    assert isinstance(group, DescribedGroup)
    return group


def shorten_sessions(wire: Wire) -> None:
    """Members of the group are gone after two seconds without a heartbeat."""
    configs = [AlterableConfig("streams.session.timeout.ms", 0, "2000"),
               AlterableConfig("streams.heartbeat.interval.ms", 0, "1000")]  # fmt: skip
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(_GROUP_RESOURCE, G, configs)])
    assert wire.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request).responses[0].error_code is ErrorCode.NONE
