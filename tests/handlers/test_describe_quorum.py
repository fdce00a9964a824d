"""DescribeQuorum: core B.13."""

from uuid import UUID

import pytest

from broker.handlers.describe_quorum import API
from broker.request.context import AclOperation, ResourceType
from protocol.errors import ErrorCode
from protocol.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from tests.handlers.admin_harness import START_MS, AdminStage


def about(*places: tuple[str, int]) -> DescribeQuorumRequest:
    """A request for these partitions."""
    return DescribeQuorumRequest([TopicData(name, [PartitionData(index)]) for name, index in places])


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_the_first_broker_votes_and_the_others_watch(version: int) -> None:
    """All of them at the end of the metadata; v2 has the directories of observers and the voter's listeners."""
    stage = AdminStage(2)
    answer = await stage.ask(API, about(("__cluster_metadata", 0)), version)
    assert answer.error_code is ErrorCode.NONE
    (partition,) = answer.topics[0].partitions
    end = stage.image.offset + 1
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (ErrorCode.NONE, 1, 3)
    assert partition.high_watermark == end
    ((voter,), (observer,)) = partition.current_voters, partition.observers
    assert [(r.replica_id, r.log_end_offset) for r in (voter, observer)] == [(1, end), (2, end)]
    assert voter.last_fetch_timestamp == (START_MS if version else -1)
    assert observer.replica_directory_id == (UUID(int=2) if version >= 2 else None)
    nodes = [(n.node_id, [(at.name, at.host, at.port) for at in n.listeners]) for n in answer.nodes]
    assert nodes == ([(1, [("CONTROLLER", "b1", 9091)])] if version >= 2 else [])


@pytest.mark.parametrize(
    "places", [[("x", 0)], [("__cluster_metadata", 1)], [("__cluster_metadata", 0), ("x", 0)]], ids=str
)
async def test_other_partitions_have_no_quorum(places: list[tuple[str, int]]) -> None:
    """Only a request for exactly the one partition succeeds; else each has UNKNOWN_TOPIC_OR_PARTITION."""
    answer = await AdminStage().ask(API, about(*places), 1)
    assert answer.error_code is ErrorCode.NONE
    codes = [p.error_code for topic in answer.topics for p in topic.partitions]
    assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * len(places)


async def test_it_needs_describe_on_the_cluster() -> None:
    """CLUSTER_AUTHORIZATION_FAILED at the top level."""
    denied = {(AclOperation.DESCRIBE, ResourceType.CLUSTER)}
    answer = await AdminStage().ask(API, about(("__cluster_metadata", 0)), denied=denied)
    assert (answer.error_code, answer.topics) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ())
