"""CreatePartitions: core B.8; what the machine decides is tested there."""

import pytest

from broker.handlers.create_partitions import API
from broker.request.context import AclOperation, ResourceType
from broker.settings.releases import release
from protocol.errors import ErrorCode
from protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from tests.handlers.admin_harness import AdminStage
from tests.versions import every_version


def to(name: str, count: int, *assignments: list[int]) -> CreatePartitionsTopic:
    """More partitions, placed or assigned."""
    return CreatePartitionsTopic(name, count, [CreatePartitionsAssignment(each) for each in assignments] or None)


@every_version(API)
async def test_PAR_01_partitions_are_added_in_every_version(version: int) -> None:
    """Placed automatically, or on the brokers that the request names."""
    stage = AdminStage(2)
    stage.topic("t", [1])
    stage.topic("u", [1])
    answer = await stage.ask(API, CreatePartitionsRequest([to("t", 3), to("u", 2, [2])], 1000), version)
    assert answer.results == (CreatePartitionsTopicResult("t"), CreatePartitionsTopicResult("u"))
    assert len(stage.image.topics["t"].partitions) == 3
    assert stage.image.topics["u"].partitions[1].replicas == (2,)


async def test_refusals_come_before_what_was_processed() -> None:
    """A duplicate once, a topic that may not be altered without a message; the others in the order of a set."""
    stage = AdminStage()
    for name in ("t", "secret"):
        stage.topic(name)
    wanted = [to("t", 2), to("twice", 2), to("secret", 2), to("twice", 3), to("no", 2)]
    denied = {(AclOperation.ALTER, ResourceType.TOPIC, "secret")}
    answer = await stage.ask(API, CreatePartitionsRequest(wanted, 1000), denied=denied)
    assert [(r.name, r.error_code, r.error_message) for r in answer.results] == [
        ("twice", ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
        ("secret", ErrorCode.TOPIC_AUTHORIZATION_FAILED, None),
        ("no", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        ("t", ErrorCode.NONE, None),
    ]


@pytest.mark.parametrize(("timeout_ms", "code"), [(0, ErrorCode.REQUEST_TIMED_OUT), (1, ErrorCode.NONE)])
async def test_without_time_nothing_happens(timeout_ms: int, code: ErrorCode) -> None:
    """REQUEST_TIMED_OUT, also for a request that only validates."""
    stage = AdminStage()
    stage.topic("t")
    answer = await stage.ask(API, CreatePartitionsRequest([to("t", 2)], timeout_ms, validate_only=True))
    assert [r.error_code for r in answer.results] == [code]
    assert len(stage.image.topics["t"].partitions) == 1


@pytest.mark.parametrize(
    ("emulated", "count", "codes"),
    [
        ("4.4", 10_000, [ErrorCode.NONE] * 2),
        ("4.4", 10_001, [ErrorCode.POLICY_VIOLATION] * 2),
        ("4.3", 10_000, [ErrorCode.NONE] * 2),
        ("4.3", 10_001, [ErrorCode.UNKNOWN_SERVER_ERROR] * 2),
    ],
)
async def test_a_request_adds_ten_thousand_partitions_at_most(
    emulated: str, count: int, codes: list[ErrorCode]
) -> None:
    """One more fails all topics: with POLICY_VIOLATION since 4.4, before with an error that has no name."""
    stage = AdminStage()
    stage.connection.release = release(emulated)
    for name in ("few", "many"):
        stage.topic(name)
    answer = await stage.ask(API, CreatePartitionsRequest([to("few", 2), to("many", count)], 1000, validate_only=True))
    assert [r.error_code for r in answer.results] == codes
