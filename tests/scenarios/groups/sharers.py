"""Members of share groups (KIP-932) at the wire, as their partitions' leader sees them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeStateData,
    PartitionData,
)
from protocol.messages.read_share_group_state_summary import (
    PartitionData as SummaryPartition,
)
from protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadStateSummaryData,
)
from protocol.messages.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from protocol.messages.share_fetch import AcknowledgementBatch as FetchAcknowledgementBatch
from protocol.messages.share_fetch import (
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    ShareFetchRequest,
    ShareFetchResponse,
)
from protocol.messages.share_fetch import PartitionData as FetchedPartition
from protocol.types import uuid_text
from tests.scenarios.groups.members import SETTINGS
from tests.server import until
from tests.wire import Wire

SHARE_SETTINGS: dict[str, object] = {
    **SETTINGS,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": 4,
    "group.share.min.record.lock.duration.ms": 1000,
}
"""A share coordinator on one broker, and locks short enough to be waited for."""
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
SHARES = "queue"
"""The group's id."""
GROUP_RESOURCE, SHARE_KEY = 32, 2
RECORD_LIMIT = 1
Acks = Sequence[tuple[int, int, Sequence[int]]]


@dataclass
class Sharer:
    """A member; ``epoch`` is that of its session's next request."""

    wire: Wire
    topic_id: UUID
    member_id: str = "m1"
    group_id: str = SHARES
    epoch: int = 0
    version: int = 2
    partitions: Sequence[int] = field(default=(0,))

    def request(self, *, acks: Acks = (), epoch: int | None = None, **fields: Any) -> ShareFetchRequest:
        """A ShareFetch of its session."""
        batches = [FetchAcknowledgementBatch(first, last, list(types)) for first, last, types in acks]
        epoch = self.epoch if epoch is None else epoch
        topics = [FetchTopic(self.topic_id, [FetchPartition(each, batches) for each in self.partitions])]
        shape: dict[str, Any] = {
            "max_wait_ms": 0,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            "topics": topics if epoch == 0 or acks else (),
            **fields,
        }
        return ShareFetchRequest(self.group_id, self.member_id, epoch, **shape)

    def fetch(self, *, acks: Acks = (), epoch: int | None = None, **fields: Any) -> ShareFetchResponse:
        """Fetch, and count the epoch on as Kafka's client does."""
        request = self.request(acks=acks, epoch=epoch, **fields)
        response: ShareFetchResponse = self.wire.call(ApiKey.SHARE_FETCH, self.version, request)
        self.note(request, response)
        return response

    def note(self, request: ShareFetchRequest, response: ShareFetchResponse) -> None:
        """Count the epoch on after a response."""
        if response.error_code is ErrorCode.NONE and request.share_session_epoch >= 0:
            self.epoch = request.share_session_epoch + 1

    def acquired(self, **fields: Any) -> list[tuple[int, int, int]]:
        """Fetch one partition: first offset, last offset and delivery count of what was acquired."""
        return acquired_of(self.fetch(**fields))

    def first(self) -> list[tuple[int, int, int]]:
        """The first records of the group; its partition may still be loading."""
        return until(lambda: self.acquired() or None, "records")

    def acknowledge(self, *acks: tuple[int, int, Sequence[int]], **fields: Any) -> ShareAcknowledgeResponse:
        """ShareAcknowledge of its session."""
        batches = [AcknowledgementBatch(first, last, list(types)) for first, last, types in acks]
        topics = [AcknowledgeTopic(self.topic_id, [AcknowledgePartition(each, batches) for each in self.partitions])]
        shape: dict[str, Any] = {"share_session_epoch": self.epoch, "topics": topics, **fields}
        request = ShareAcknowledgeRequest(self.group_id, self.member_id, **shape)
        response: ShareAcknowledgeResponse = self.wire.call(ApiKey.SHARE_ACKNOWLEDGE, self.version, request)
        if response.error_code is ErrorCode.NONE and request.share_session_epoch > 0:
            self.epoch += 1
        return response

    def ack(self, first: int, last: int, *types: int, **fields: Any) -> ErrorCode:
        """Acknowledge a range; the code of the partition."""
        response = self.acknowledge((first, last, types), **fields)
        assert response.error_code is ErrorCode.NONE, response.error_code
        return response.responses[0].partitions[0].error_code


def only(response: ShareFetchResponse) -> FetchedPartition:
    """The one partition of a response."""
    assert response.error_code is ErrorCode.NONE, response.error_code
    (topic,) = response.responses
    (partition,) = topic.partitions
    return partition


def acquired_of(response: ShareFetchResponse) -> list[tuple[int, int, int]]:
    """What was acquired of one partition, or nothing."""
    assert response.error_code is ErrorCode.NONE, response.error_code
    responses = [each for topic in response.responses for each in topic.partitions]
    assert all(each.error_code is ErrorCode.NONE for each in responses), responses
    return [
        (run.first_offset, run.last_offset, run.delivery_count) for each in responses for run in each.acquired_records
    ]


def configure(wire: Wire, group_id: str = SHARES, **configs: str) -> None:
    """A group's own settings, with ``_`` for dots."""
    changes = [AlterableConfig(name.replace("_", "."), 0, value) for name, value in configs.items()]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(GROUP_RESOURCE, group_id, changes)])
    response = wire.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
    assert response.responses[0].error_code is ErrorCode.NONE, response.responses[0].error_message


def initialize(wire: Wire, topic_id: UUID, *partitions: int, group_id: str = SHARES, start_offset: int = -1) -> None:
    """The state of share partitions, as the group coordinator makes it when a member subscribes."""
    states = [PartitionData(each, 0, start_offset) for each in partitions or (0,)]
    request = InitializeShareGroupStateRequest(group_id, [InitializeStateData(topic_id, states)])

    def done() -> bool:
        key = f"{group_id}:{uuid_text(topic_id)}:0"
        wire.call(ApiKey.FIND_COORDINATOR, 6, FindCoordinatorRequest(key_type=SHARE_KEY, coordinator_keys=[key]))
        response = wire.call(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, request)
        return all(each.error_code is ErrorCode.NONE for result in response.results for each in result.partitions)

    until(done, "share group state")


def share_state_loaded(wire: Wire, topic_id: UUID, *partitions: int, group_id: str = SHARES) -> None:
    """Wait for the share coordinators of partitions: Kafka pauses for 30 s where a member's come first."""
    keys = [f"{group_id}:{uuid_text(topic_id)}:{each}" for each in partitions]
    topics = [ReadStateSummaryData(topic_id, [SummaryPartition(each, 0) for each in partitions])]

    def loaded() -> bool:
        wire.call(ApiKey.FIND_COORDINATOR, 6, FindCoordinatorRequest(key_type=SHARE_KEY, coordinator_keys=keys))
        request = ReadShareGroupStateSummaryRequest(group_id, topics)
        (result,) = wire.call(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 1, request).results
        return all(each.error_code is ErrorCode.NONE for each in result.partitions)

    until(loaded, f"share coordinators of {group_id}")


def start_and_done(wire: Wire, topic_id: UUID, partition: int = 0, group_id: str = SHARES) -> tuple[int, int]:
    """Start offset and delivery-complete count that the share coordinator has."""
    topics = [ReadStateSummaryData(topic_id, [SummaryPartition(partition, 0)])]
    request = ReadShareGroupStateSummaryRequest(group_id, topics)
    summary = wire.call(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 1, request).results[0].partitions[0]
    return summary.start_offset, summary.delivery_complete_count


def forget(topic_id: UUID, *partitions: int) -> list[ForgottenTopic]:
    """ForgottenTopicsData."""
    return [ForgottenTopic(topic_id, list(partitions))]
