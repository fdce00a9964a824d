"""DeleteTopics (core B.9 D1 to D10)."""

from uuid import UUID

import pytest

from broker.handlers.delete_topics import API
from broker.request.context import AclOperation, ResourceType
from protocol.errors import ErrorCode
from protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicState
from tests.handlers.admin_harness import AdminStage, Right
from tests.versions import every_version

DELETE, DESCRIBE, TOPIC, CLUSTER = AclOperation.DELETE, AclOperation.DESCRIBE, ResourceType.TOPIC, ResourceType.CLUSTER
DENIED, INVALID = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_REQUEST
FAILED = "Topic authorization failed."


def topics(*wanted: str | UUID | tuple[str, UUID] | None) -> DeleteTopicsRequest:
    """Names, ids, both or neither."""

    def state(one: str | UUID | tuple[str, UUID] | None) -> DeleteTopicState:
        if isinstance(one, tuple):
            return DeleteTopicState(*one)
        return DeleteTopicState(one if isinstance(one, str) else None, one if isinstance(one, UUID) else None)

    return DeleteTopicsRequest(timeout_ms=1000, topics=[state(one) for one in wanted])


@every_version(API)
async def test_DEL_01_topics_go_by_name_in_every_version(version: int) -> None:
    """Every version deletes a topic by its name, and since v6 the response has its id."""
    stage = AdminStage()
    topic = stage.topic("t")
    answer = await stage.ask(API, topics("t"), version)
    assert answer.responses == (DeletableTopicResult("t", topic_id=topic.id if version >= 6 else None),)
    assert stage.image.topics == {}


async def test_D6_D7_permissions_hide_what_is_there() -> None:
    """Without DESCRIBE neither the name behind an id nor the existence of a name is revealed."""
    stage = AdminStage()
    seen, secret = stage.topic("seen"), stage.topic("secret")
    denied: set[Right] = {
        (DELETE, CLUSTER),
        (DELETE, TOPIC, "seen"),
        (DESCRIBE, TOPIC, "secret"),
        (DESCRIBE, TOPIC, "no"),
    }
    answer = await stage.ask(API, topics(seen.id, secret.id, "no"), denied=denied)
    assert list(answer.responses) == [
        DeletableTopicResult("seen", DENIED, FAILED, seen.id),
        DeletableTopicResult(None, DENIED, FAILED, secret.id),
        DeletableTopicResult("no", DENIED, FAILED),
    ]
    answer = await stage.ask(API, topics("seen"), denied=denied)
    assert list(answer.responses) == [DeletableTopicResult("seen", DENIED, FAILED)]
    answer = await stage.ask(API, topics("seen", "secret"), denied=denied - {(DELETE, CLUSTER)})
    assert [r.error_code for r in answer.responses] == [ErrorCode.NONE, ErrorCode.NONE]


@pytest.mark.parametrize(
    ("version", "code", "message"),
    [
        (1, INVALID, None),
        (2, INVALID, None),
        (3, ErrorCode.TOPIC_DELETION_DISABLED, None),
        (6, ErrorCode.TOPIC_DELETION_DISABLED, None),
    ],
)
async def test_DEL_02_deletion_may_be_disabled(version: int, code: ErrorCode, message: str | None) -> None:
    """delete.topic.enable=false: for every topic, whether it exists or not."""
    stage = AdminStage(1, {"delete.topic.enable": "false"})
    stage.topic("t")
    answer = await stage.ask(API, topics("t", "no"), version)
    assert [(r.name, r.error_code, r.error_message) for r in answer.responses] == [
        ("t", code, message),
        ("no", code, message),
    ]
    assert "t" in stage.image.topics


async def test_without_time_nothing_happens() -> None:
    """REQUEST_TIMED_OUT for all, as 4.3.1 answers."""
    stage = AdminStage()
    stage.topic("t")
    request = topics("t")
    request.timeout_ms = 0
    answer = await stage.ask(API, request)
    assert list(answer.responses) == [DeletableTopicResult("t", ErrorCode.REQUEST_TIMED_OUT)]
    assert "t" in stage.image.topics
