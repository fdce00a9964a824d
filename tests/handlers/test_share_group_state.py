"""The five APIs of the share coordinator, as brokers call them (groups D.9)."""

from typing import Any
from uuid import UUID

import pytest

from broker.handlers import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from broker.request.api import AnyApi
from broker.request.context import AclOperation
from protocol.errors import ErrorCode
from protocol.messages import delete_share_group_state as deletion
from protocol.messages import initialize_share_group_state as initialization
from protocol.messages import read_share_group_state as reading
from protocol.messages import read_share_group_state_summary as summary
from protocol.messages import write_share_group_state as writing
from protocol.messages.delete_share_group_state import DeleteShareGroupStateRequest
from protocol.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from protocol.messages.read_share_group_state import ReadShareGroupStateRequest
from protocol.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from protocol.messages.write_share_group_state import WriteShareGroupStateRequest
from tests.handlers.group_harness import Stage
from tests.versions import SERVED

DENIED = [(AclOperation.CLUSTER_ACTION, "kafka-cluster")]


@pytest.fixture
def stage() -> Stage:
    """A broker that coordinates every share partition."""
    return Stage()


def initialize(topic_id: UUID, *indexes: int, group: str = "g") -> InitializeShareGroupStateRequest:
    """With state epoch 2 and start offset 5."""
    partitions = [initialization.PartitionData(index, 2, 5) for index in indexes]
    return InitializeShareGroupStateRequest(group, [initialization.InitializeStateData(topic_id, partitions)])


def write(topic_id: UUID, state_epoch: int = 2) -> WriteShareGroupStateRequest:
    """Ten offsets acknowledged of partition 0."""
    batches = [writing.StateBatch(5, 14, 2, 1)]
    partition = writing.PartitionData(0, state_epoch, 0, 5, batches, 10)
    return WriteShareGroupStateRequest("g", [writing.WriteStateData(topic_id, [partition])])


def read(topic_id: UUID) -> ReadShareGroupStateRequest:
    """By the leader of epoch 1."""
    return ReadShareGroupStateRequest("g", [reading.ReadStateData(topic_id, [reading.PartitionData(0, 1)])])


def summarize(topic_id: UUID) -> ReadShareGroupStateSummaryRequest:
    """Of partition 0."""
    return ReadShareGroupStateSummaryRequest(
        "g", [summary.ReadStateSummaryData(topic_id, [summary.PartitionData(0, 1)])]
    )


def delete(topic_id: UUID) -> DeleteShareGroupStateRequest:
    """Partition 0."""
    return DeleteShareGroupStateRequest("g", [deletion.DeleteStateData(topic_id, [deletion.PartitionData(0)])])


def only(response: Any) -> Any:
    """The one partition of a response."""
    (topic,) = response.results
    (partition,) = topic.partitions
    return partition


async def test_a_state_from_its_initialization_to_its_deletion(stage: Stage) -> None:
    """A share state is initialized, written, read, summarized and deleted in the newest versions."""
    answer = await stage.ask(initialize_share_group_state.API, initialize(stage.foo, 0, 9), 0)
    assert [(each.partition, each.error_code) for each in answer.results[0].partitions] == [
        (0, ErrorCode.NONE),
        (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert only(await stage.ask(write_share_group_state.API, write(stage.foo), 1)).error_code is ErrorCode.NONE
    stale = only(await stage.ask(write_share_group_state.API, write(stage.foo, state_epoch=1), 1))
    assert stale.error_code is ErrorCode.FENCED_STATE_EPOCH
    result = only(await stage.ask(read_share_group_state.API, read(stage.foo), 0))
    assert (result.state_epoch, result.start_offset) == (2, 5)
    assert [(each.first_offset, each.last_offset, each.delivery_state) for each in result.state_batches] == [(5, 14, 2)]
    result = only(await stage.ask(read_share_group_state_summary.API, summarize(stage.foo), 1))
    assert (result.state_epoch, result.leader_epoch, result.start_offset, result.delivery_complete_count) == (
        2,
        1,
        5,
        10,
    )
    assert only(await stage.ask(delete_share_group_state.API, delete(stage.foo), 0)).error_code is ErrorCode.NONE
    result = only(await stage.ask(read_share_group_state.API, read(stage.foo), 0))
    assert result.error_code is ErrorCode.INVALID_REQUEST
    assert result.error_message == "Read operation on uninitialized share partition not allowed."


REQUESTS: list[tuple[AnyApi, Any]] = [
    (initialize_share_group_state.API, lambda topic_id: initialize(topic_id, 0)),
    (write_share_group_state.API, write),
    (read_share_group_state.API, read),
    (read_share_group_state_summary.API, summarize),
    (delete_share_group_state.API, delete),
]


@pytest.mark.parametrize(("api", "request_of"), REQUESTS, ids=[api.key.title for api, _ in REQUESTS])
async def test_brokers_alone_may_ask(stage: Stage, api: AnyApi, request_of: Any) -> None:
    """Each partition is refused without CLUSTER_ACTION, and without a coordinator here."""
    refused = only(await stage.ask(api, request_of(stage.foo), SERVED[api.key].versions[1], DENIED))
    assert refused.error_code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    stage.coordinators.share_states.clear()
    refused = only(await stage.ask(api, request_of(stage.foo), SERVED[api.key].versions[1]))
    rpc = {
        "InitializeShareGroupState": "initialize",
        "DeleteShareGroupState": "delete",
        "WriteShareGroupState": "write",
    }
    what = f"{rpc.get(api.key.title, 'read')} share group state{' summary' * api.key.title.endswith('Summary')}"
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.NOT_COORDINATOR,
        f"Unable to {what}: This is not the correct coordinator.",
    )


async def test_requests_about_nothing(stage: Stage) -> None:
    """Without a group or without partitions the response is empty; a blank group is one."""
    for request in (initialize(stage.foo, 0, group=""), initialize(stage.foo)):
        assert not (await stage.ask(initialize_share_group_state.API, request, 0)).results
    for request in (initialize(stage.foo, 0), initialize(stage.foo, 0, group=" ")):
        assert (await stage.ask(initialize_share_group_state.API, request, 0)).results


async def test_a_topic_without_partitions_beside_another(stage: Stage) -> None:
    """Initialize passes over it; the others answer nothing at all."""
    first_state = initialize(stage.foo, 0)
    bare = initialization.InitializeStateData(UUID(int=3), [])
    answer = await stage.ask(
        initialize_share_group_state.API, InitializeShareGroupStateRequest("g", [bare, *first_state.topics]), 0
    )
    assert only(answer).error_code is ErrorCode.NONE
    nothing = deletion.DeleteStateData(UUID(int=3), [])
    request = DeleteShareGroupStateRequest("g", [*delete(stage.foo).topics, nothing])
    assert not (await stage.ask(delete_share_group_state.API, request, 0)).results
    assert only(await stage.ask(read_share_group_state.API, read(stage.foo), 0)).error_code is ErrorCode.NONE


async def test_each_partition_is_answered_once_in_the_order_of_a_table(stage: Stage) -> None:
    """All entries are carried out, and the last one of a partition is answered."""
    one, two = UUID(int=1), UUID(int=2)
    deletions = [(two, [16, 1, 0, -1, 0]), (one, [3]), (two, [17])]
    request = DeleteShareGroupStateRequest(
        "g", [deletion.DeleteStateData(topic, [deletion.PartitionData(each) for each in of]) for topic, of in deletions]
    )
    answer = await stage.ask(delete_share_group_state.API, request, 0)
    deleted = [(topic.topic_id, [each.partition for each in topic.partitions]) for topic in answer.results]
    assert deleted == [(one, [3]), (two, [16, 0, -1, 1, 17])]


async def test_errors_of_the_log_are_results(stage: Stage) -> None:
    """As clients of coordinators know them (groups 0.6.3)."""
    stage.share_log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
    refused = only(await stage.ask(initialize_share_group_state.API, initialize(stage.foo, 0), 0))
    assert refused.error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    stage.share_log.refuse = None
    answer = only(await stage.ask(initialize_share_group_state.API, initialize(stage.foo, 0), 0))
    assert answer.error_code is ErrorCode.NONE
