"""A member of a consumer group whose partitions the broker assigns (KIP-848): `understudy consume --group`."""

import time
from typing import Any, Final
from uuid import UUID

from pipeline.live.reader import TopicReader
from pipeline.transfer.wire import WireError
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics

_JOINING, _LEAVING = 0, -1
_REBALANCE_TIMEOUT_MS: Final = 60_000  # longer than a batch of the command takes
_PATIENCE_S: Final = 30.0  # with a coordinator that loads or moves; request.timeout.ms of Kafka's clients
_PAUSE_S: Final = 0.1  # retry.backoff.ms of Kafka's clients
_TOO_OLD: Final = "--group needs brokers with the consumer protocol of KIP-848, Kafka 4.0 or newer"
_NO_ID: Final = str(UUID(int=0))
_VERSIONS: Final = {
    ApiKey.FIND_COORDINATOR: 4,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: 0,
    ApiKey.OFFSET_FETCH: 9,
    ApiKey.OFFSET_COMMIT: 9,
}
"""The oldest versions with many keys (KIP-699), and with members and their epochs (KIP-848)."""
_AGAIN: Final = frozenset(
    {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}
)
_FENCED: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.STALE_MEMBER_EPOCH})


class GroupMember:
    """A member that reads one topic. `positions` has the next offset of each partition that it is assigned."""

    def __init__(self, cluster: TopicReader, group: str, topic: str, start: int) -> None:
        """Join, and wait for partitions; those without a committed offset begin at ``start``. Raises WireError."""
        if not cluster.serves(ApiKey.CONSUMER_GROUP_HEARTBEAT):
            raise WireError(_TOO_OLD)
        self.positions: dict[int, int] = {}
        self._cluster, self._group, self._topic, self._start = cluster, group, topic, start
        self._id, self._epoch, self._due_s = "", _JOINING, 0.0
        self._committed: dict[int, int] = {}
        end_s = self._now_s() + _PATIENCE_S
        while not self.positions:
            self._due_s = 0.0
            self.poll()
            if self._now_s() >= end_s:
                raise WireError(f"the group {group} assigned no partition of {topic}: other members have all of them")
            if not self.positions:
                time.sleep(_PAUSE_S)  # noqa: TID251 - a command waits in real time

    def poll(self) -> None:
        """Commit what was read; when it is due, send a heartbeat, and take over the assignment. Raises WireError."""
        self._commit()
        if self._now_s() < self._due_s:
            return
        response = self._heartbeat(self._epoch)
        if response.error_code in _FENCED:
            self._id, self._epoch = "", _JOINING
            self.positions.clear()
            return
        if response.error_code is ErrorCode.UNSUPPORTED_VERSION:  # Kafka 3.7 to 3.9, unless it is switched on
            raise WireError(_TOO_OLD)
        if response.error_code is not ErrorCode.NONE:
            raise WireError(f"the group {self._group}: {response.error_message or response.error_code.name}")
        self._id, self._epoch = response.member_id, response.member_epoch
        self._due_s = self._now_s() + response.heartbeat_interval_ms / 1000
        if response.assignment is not None:
            topic_id = self._cluster.topic_ids.get(self._topic)
            assigned = [each for each in response.assignment.topic_partitions if str(each.topic_id) == topic_id]
            self._assign({number for each in assigned for number in each.partitions})

    def close(self) -> None:
        """Commit, and leave the group."""
        self._commit()
        self._heartbeat(_LEAVING)

    def _heartbeat(self, epoch: int) -> Any:
        topic_id = UUID(self._cluster.topic_ids.get(self._topic, _NO_ID))
        owned = [TopicPartitions(topic_id, sorted(self.positions))] if self.positions else []
        return self._ask(
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            ConsumerGroupHeartbeatRequest(
                self._group, self._id, epoch, rebalance_timeout_ms=_REBALANCE_TIMEOUT_MS,
                subscribed_topic_names=[self._topic], topic_partitions=owned,
            ),
        )  # fmt: skip

    def _assign(self, assigned: set[int]) -> None:
        for number in self.positions.keys() - assigned:
            del self.positions[number]
        new = sorted(assigned - self.positions.keys())
        if not new:
            return
        of_group = OffsetFetchRequestGroup(
            self._group, [OffsetFetchRequestTopics(self._topic, new)], self._id or None, self._epoch
        )
        (group,) = self._ask(ApiKey.OFFSET_FETCH, OffsetFetchRequest(groups=[of_group], require_stable=True)).groups
        if group.error_code is not ErrorCode.NONE:
            raise WireError(f"the group {self._group}: {group.error_code.name}")
        for each in group.topics[0].partitions:
            offset = each.committed_offset
            if offset < 0:
                offset = self._cluster.offset(self._topic, each.partition_index, self._start)
            self.positions[each.partition_index] = offset
        self._committed |= {number: self.positions[number] for number in new}

    def _commit(self) -> None:
        changed = {number: offset for number, offset in self.positions.items() if self._committed.get(number) != offset}
        if not changed:
            return
        partitions = [
            OffsetCommitRequestPartition(number, offset, committed_leader_epoch=-1)
            for number, offset in changed.items()
        ]
        request = OffsetCommitRequest(
            self._group, self._epoch, self._id, topics=[OffsetCommitRequestTopic(self._topic, partitions)]
        )
        codes = {
            each.error_code for topic in self._ask(ApiKey.OFFSET_COMMIT, request).topics for each in topic.partitions
        }
        if not codes <= {ErrorCode.NONE, *_FENCED}:
            raise WireError(f"the group {self._group} does not commit: {', '.join(each.name for each in codes)}")
        self._committed |= changed

    def _ask(self, key: ApiKey, request: Any) -> Any:
        """Return the coordinator's response; finds it again if it moves, or its connection breaks. Raises WireError."""
        end_s = self._now_s() + _PATIENCE_S
        while True:
            lookup = FindCoordinatorRequest(key_type=0, coordinator_keys=[self._group])
            (coordinator,) = self._cluster.ask_any(
                ApiKey.FIND_COORDINATOR, lookup, _VERSIONS[ApiKey.FIND_COORDINATOR]
            ).coordinators
            code = coordinator.error_code
            if code is ErrorCode.NONE:
                try:
                    response = self._cluster.ask_node(coordinator.node_id, key, request, _VERSIONS[key])
                except OSError:
                    self._cluster.refresh()
                else:
                    code = _code_of(response)
                    if code not in _AGAIN:
                        return response
            if code not in {ErrorCode.NONE, *_AGAIN}:
                raise WireError(f"the group {self._group}: {code.name}")
            if self._now_s() >= end_s:
                raise WireError(f"the coordinator of the group {self._group} does not answer: {code.name}")
            time.sleep(_PAUSE_S)  # noqa: TID251 - a command waits in real time

    @staticmethod
    def _now_s() -> float:
        return time.monotonic()  # noqa: TID251 - a command waits in real time


def _code_of(response: Any) -> ErrorCode:
    """Return the error of a response of a coordinator, wherever its API has it."""
    for groups in (getattr(response, "groups", ()), [response]):
        for each in groups:
            if getattr(each, "error_code", ErrorCode.NONE) is not ErrorCode.NONE:
                return ErrorCode(each.error_code)
    partitions = [each for topic in getattr(response, "topics", ()) for each in topic.partitions]
    return next((each.error_code for each in partitions if each.error_code is not ErrorCode.NONE), ErrorCode.NONE)
