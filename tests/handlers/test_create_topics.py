"""CreateTopics: core B.7, the request as a whole and the shape of the answers; the rest is the machine's."""

import pytest

from broker.handlers.create_topics import API
from broker.request.context import AclOperation, ResourceType
from broker.settings.releases import release
from protocol.errors import ErrorCode
from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from tests.handlers.admin_harness import AdminStage, Right
from tests.versions import every_version

CREATE, TOPIC, CLUSTER = AclOperation.CREATE, ResourceType.TOPIC, ResourceType.CLUSTER
EXCESSIVE = "Excessively large number of partitions per request."


def plain(name: str, partitions: int = 1, factor: int = 1, **configs: str | None) -> CreatableTopic:
    """A topic; underscores in the names of settings read as dots."""
    wanted = [CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items()]
    return CreatableTopic(name, partitions, factor, configs=wanted)


def brief(results: list[CreatableTopicResult]) -> list[tuple[str, ErrorCode, str | None]]:
    """Name, code, message."""
    return [(r.name, r.error_code, r.error_message) for r in results]


@every_version(API)
async def test_TOP_01_success_in_every_version(version: int) -> None:
    """Since v5 with counts and the effective settings, since v7 with the id."""
    stage = AdminStage()
    answer = await stage.ask(API, CreateTopicsRequest([plain("t", 2, 1, retention_ms="5")]), version)
    (result,) = answer.topics
    assert (result.name, result.error_code) == ("t", ErrorCode.NONE)
    assert not result.error_message
    assert result.topic_id == (stage.image.topics["t"].id if version >= 7 else None)
    if version < 5:
        return
    assert (result.num_partitions, result.replication_factor, result.topic_config_error_code) == (2, 1, 0)
    names = [config.name for config in result.configs]
    assert names == sorted(names)
    reported = {c.name: (c.value, c.config_source, c.read_only, c.is_sensitive) for c in result.configs}
    assert reported["cleanup.policy"] == ("delete", 5, False, False)
    assert reported["retention.ms"] == ("5", 1, False, False)


async def test_T1_T2_T3_come_after_what_was_processed() -> None:
    """Processed topics, then duplicates once each, then the prohibited and the unauthorized (core B.7.5)."""
    topics = [plain("__cluster_metadata"), plain("twice"), plain("b"), plain("secret"), plain("twice"), plain("a")]
    denied: set[Right] = {(CREATE, CLUSTER), (CREATE, TOPIC, "secret")}
    answer = await AdminStage().ask(API, CreateTopicsRequest(topics), denied=denied)
    assert brief(answer.topics) == [
        ("b", ErrorCode.NONE, None),
        ("a", ErrorCode.NONE, None),
        ("twice", ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
        (
            "__cluster_metadata",
            ErrorCode.INVALID_REQUEST,
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
        ("secret", ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed."),
    ]


@pytest.mark.parametrize(
    ("topics", "refused"),
    [
        ([plain("a", 5000), plain("b", 5001)], True),
        ([plain("a", 9_999)], False),
        ([plain("a", 9_999), plain("b", -1)], True),
        ([CreatableTopic("a", -1, -1, [CreatableReplicaAssignment(0, [1])]), plain("b", 10_000)], True),
        ([plain("a", -7), plain("b", 9_999)], False),
    ],
)
async def test_TOP_11_too_many_partitions_fail_all(topics: list[CreatableTopic], refused: bool) -> None:
    """Of all topics together, -1 counting as num.partitions and an assignment as its size."""
    stage = AdminStage(1, {"num.partitions": "2"})
    answer = await stage.ask(API, CreateTopicsRequest(topics, validate_only=True))
    wanted = [(t.name, ErrorCode.POLICY_VIOLATION, EXCESSIVE) for t in topics]
    assert (brief(answer.topics) == wanted) is refused


@pytest.mark.parametrize(
    ("emulated", "code", "message"),
    [("4.4", ErrorCode.POLICY_VIOLATION, EXCESSIVE), ("4.3", ErrorCode.UNKNOWN_SERVER_ERROR, None)],
)
async def test_more_partitions_than_an_int_counts(emulated: str, code: ErrorCode, message: str | None) -> None:
    """4.4 adds up a long (44 for all topics); before, the sum of an int overflows (-1 for all)."""
    stage = AdminStage()
    stage.connection.release = release(emulated)
    topics = [plain("a", 2**31 - 1), plain("b", 2)]
    answer = await stage.ask(API, CreateTopicsRequest(topics, validate_only=True))
    assert brief(answer.topics) == [("a", code, message), ("b", code, message)]


@pytest.mark.parametrize(("emulated", "defaults"), [("2.3", False), ("2.4", True)])
async def test_before_2_4_counts_have_no_defaults(emulated: str, defaults: bool) -> None:
    """-1 is a number of its own then (KIP-464)."""
    stage = AdminStage()
    stage.connection.release = release(emulated)
    partitions, factor = plain("a", -1), plain("b", factor=-1)
    answer = await stage.ask(API, CreateTopicsRequest([partitions, factor], validate_only=True), 3)
    expected = [ErrorCode.INVALID_PARTITIONS, ErrorCode.INVALID_REPLICATION_FACTOR]
    assert [each.error_code for each in answer.topics] == ([ErrorCode.NONE] * 2 if defaults else expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("topics", "refused"),
    [
        ([plain("a", 9_999)], False),
        ([plain("a", 10_000)], True),
        ([plain("a", 9_999, retention_ms="5")], True),
        ([plain(f"a{number}") for number in range(5000)], False),
        ([plain(f"a{number}") for number in range(5001)], True),
        ([plain("a", 9_998), plain("b", -7), plain("c")], True),
    ],
)
async def test_topics_that_make_too_many_records_fail_all(topics: list[CreatableTopic], refused: bool) -> None:
    """Topics, settings and partitions are a record each, as seen on Kafka 4.3.1 (core B.7 T4)."""
    stage = AdminStage()
    answer = await stage.ask(API, CreateTopicsRequest(topics, validate_only=True))
    excessive = "Unable to perform excessively large batch operation."
    assert (brief(answer.topics) == [(t.name, ErrorCode.POLICY_VIOLATION, excessive) for t in topics]) is refused


async def test_settings_are_returned_to_those_who_may_see_them() -> None:
    """Else the answer has TopicConfigErrorCode, counts of -1 and no settings; the topic is created."""
    stage = AdminStage()
    denied = {(AclOperation.DESCRIBE_CONFIGS, TOPIC)}
    (result,) = (await stage.ask(API, CreateTopicsRequest([plain("t")]), denied=denied)).topics
    assert (result.error_code, result.topic_config_error_code) == (ErrorCode.NONE, 29)
    assert (result.num_partitions, result.replication_factor, result.configs) == (-1, -1, ())
    assert "t" in stage.image.topics
