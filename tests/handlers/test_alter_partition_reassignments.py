"""AlterPartitionReassignments: core B.11; what a move does is tested at the machine."""

from collections.abc import Sequence
from typing import Any

import pytest

from broker.handlers.alter_partition_reassignments import API
from broker.request.context import AclOperation, ResourceType
from protocol.errors import ErrorCode
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.handlers.admin_harness import AdminStage


def move(name: str, *targets: Sequence[int] | None, **more: Any) -> AlterPartitionReassignmentsRequest:
    """One target for each partition of a topic, from 0 on."""
    partitions = [ReassignablePartition(index, target) for index, target in enumerate(targets)]
    return AlterPartitionReassignmentsRequest(
        **{"timeout_ms": 1000, "topics": [ReassignableTopic(name, partitions)], **more}
    )


async def test_REA_01_each_partition_is_answered() -> None:
    """Success with a null message, a wrong assignment, no reassignment to cancel, and a partition that is not there."""
    stage = AdminStage()
    stage.topic("foo", [1], [1], [1])
    answer = await stage.ask(API, move("foo", [1], [7], None, [1]))
    assert (answer.error_code, answer.error_message, answer.allow_replication_factor_change) == (
        ErrorCode.NONE,
        None,
        True,
    )
    (topic,) = answer.responses
    assert [(p.partition_index, p.error_code) for p in topic.partitions] == [
        (0, ErrorCode.NONE),
        (1, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (2, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        (3, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert [p.error_message for p in topic.partitions][0::3] == [None, "Unable to find partition foo:3."]


@pytest.mark.parametrize(("version", "code"), [(0, ErrorCode.NONE), (1, ErrorCode.INVALID_REPLICATION_FACTOR)])
async def test_v1_may_forbid_another_factor(version: int, code: ErrorCode) -> None:
    """From v1 a request may forbid another replication factor (KIP-860); v0 always allows it."""
    stage = AdminStage(2)
    stage.topic("foo", [1])
    answer = await stage.ask(API, move("foo", [1, 2], allow_replication_factor_change=False), version)
    assert [p.error_code for p in answer.responses[0].partitions] == [code]
    assert answer.allow_replication_factor_change is (version == 0)
    assert stage.image.topics["foo"].partitions[0].reassigning is (version == 0)


@pytest.mark.parametrize(
    ("timeout_ms", "denied", "code"),
    [
        (1000, {(AclOperation.ALTER, ResourceType.CLUSTER)}, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (0, (), ErrorCode.REQUEST_TIMED_OUT),
    ],
)
async def test_a_request_refused_as_a_whole(timeout_ms: int, denied: Any, code: ErrorCode) -> None:
    """At the top and on every partition."""
    stage = AdminStage()
    stage.topic("foo")
    answer = await stage.ask(API, move("foo", [1], timeout_ms=timeout_ms), denied=denied)
    assert (answer.error_code, [p.error_code for p in answer.responses[0].partitions]) == (code, [code])
