"""FindCoordinator: core B.6."""

from collections.abc import Mapping
from typing import Any

import pytest

from broker.coordination.metadata.image import BrokerListener
from broker.handlers.find_coordinator import API
from broker.request.context import AclOperation, ResourceType
from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.handlers.admin_harness import AdminStage
from tests.versions import every_version

GROUP, TRANSACTION, SHARE = 0, 1, 2
NOT_AVAILABLE, INVALID = ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.INVALID_REQUEST
SHARE_KEY = "g:AAAAAAAAAAAAAAAAAAAAEQ:0"
SETTINGS = {"offsets.topic.num.partitions": "50", "transaction.state.log.num.partitions": "50"}


async def coordinators(
    stage: AdminStage, *keys: str, kind: int = GROUP, version: int = 6, **more: Any
) -> list[tuple[str, ErrorCode, int, str, int, str | None]]:
    """Key, code, node, host, port and message of each."""
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=keys)
    answer = await stage.ask(API, request, version, **more)
    return [(c.key, c.error_code, c.node_id, c.host, c.port, c.error_message) for c in answer.coordinators]


def lazy(brokers: int = 1, settings: Mapping[str, str] | None = None) -> AdminStage:
    """With --lazy-coordinators."""
    stage = AdminStage(brokers, settings)
    stage.cluster.lazy_coordinators = True
    return stage


@pytest.mark.parametrize(("kind", "topic"), [(GROUP, "__consumer_offsets"), (TRANSACTION, "__transaction_state")])
async def test_the_first_request_is_answered_at_once(kind: int, topic: str) -> None:
    """As by a cluster that has been used before; the topic exists from then on."""
    stage = AdminStage(3, SETTINGS)
    ((_, code, node, *_),) = await coordinators(stage, "my-txn", kind=kind)
    assert (code, node) == (ErrorCode.NONE, stage.image.topics[topic].partitions[45].leader)


async def test_a_topic_that_cannot_be_created_is_no_coordinator() -> None:
    """A replication factor that was asked for and cannot be reached."""
    stage = AdminStage(1, SETTINGS | {"offsets.topic.replication.factor": "3"})
    assert [(await coordinators(stage, "g"))[0][1] for _ in range(2)] == [NOT_AVAILABLE] * 2
    assert stage.image.topics == {}


@pytest.mark.parametrize(("kind", "topic"), [(GROUP, "__consumer_offsets"), (TRANSACTION, "__transaction_state")])
async def test_a_lazy_cluster_creates_the_topic_at_the_first_request(kind: int, topic: str) -> None:
    """COORDINATOR_NOT_AVAILABLE, then the leader of the key's partition (transactions F.9), of 50."""
    stage = lazy(3, SETTINGS)
    assert await coordinators(stage, "my-txn", kind=kind) == [("my-txn", NOT_AVAILABLE, -1, "", -1, "")]
    leaders = {index: p.leader for index, p in stage.image.topics[topic].partitions.items()}
    assert len(leaders) == 50
    assert await coordinators(stage, "my-txn", "test", kind=kind) == [
        (key, ErrorCode.NONE, leaders[index], f"b{leaders[index]}", 9090 + leaders[index], "")
        for key, index in (("my-txn", 45), ("test", 48))
    ]


@every_version(API)
async def test_old_versions_ask_for_one_key(version: int) -> None:
    """On success v1 to v3 have the message "NONE" (core 0.3.2)."""
    stage = AdminStage()
    await coordinators(stage, "g", version=version)
    key = "" if version < 4 else "g"
    message = "NONE" if 1 <= version <= 3 else ""
    assert await coordinators(stage, "g", version=version) == [(key, ErrorCode.NONE, 1, "b1", 9091, message)]


async def test_errors_of_old_versions_carry_the_codes_text() -> None:
    """As 4.3.1 answers v3; newer ones leave it empty, unless the whole request is refused."""
    ((_, code, *_, text),) = await coordinators(lazy(), "x", version=3)
    assert (code, text) == (NOT_AVAILABLE, "The coordinator is not available.")
    ((_, code, *_, text),) = await coordinators(lazy(), "x", version=4)
    assert (code, text) == (NOT_AVAILABLE, "")
    ((_, code, node, host, port, text),) = await coordinators(AdminStage(), "x", kind=9, version=4)
    assert (code, node, host, port) == (INVALID, -1, "", -1)
    assert text is not None
    assert text.startswith("This most likely occurs because of a request being malformed")


@pytest.mark.parametrize(
    ("kind", "resource", "code"),
    [
        (GROUP, ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (TRANSACTION, ResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ],
)
async def test_each_key_needs_describe(kind: int, resource: ResourceType, code: ErrorCode) -> None:
    """Without it no internal topic is created."""
    stage = AdminStage()
    answers = await coordinators(stage, "a", "b", kind=kind, denied={(AclOperation.DESCRIBE, resource)})
    assert [answer[1] for answer in answers] == [code, code]
    assert stage.image.topics == {}


@pytest.mark.parametrize(
    ("version", "key", "code"),
    [
        (5, SHARE_KEY, INVALID),
        (6, SHARE_KEY, NOT_AVAILABLE),
        (6, "g:x:0", INVALID),
        (6, "g:AAAAAAAAAAAAAAAAAAAAEQ", INVALID),
        (6, "g:AAAAAAAAAAAAAAAAAAAAEQ:x", INVALID),
        (6, " :AAAAAAAAAAAAAAAAAAAAEQ:0", INVALID),
        (6, "g:AAAAAAAAAAAAAAAAAAAAEQ: 1", INVALID),
        (6, "g:AAAAAAAAAAAAAAAAAAAAEQ:+", INVALID),
        (6, "g:AAAAAAAAAAAAAAAAAAAAEQ:1_0", INVALID),
        (6, "g:AAAAAAAAAAAAAAAAAAAAEQ:2147483648", INVALID),
        (6, "g:AAAAAAAAAAAAAAAAAAAAEQ:-2147483648", NOT_AVAILABLE),
        (6, "g:AAAAAAAAAAAAAAAAAAAAEQ:+1", NOT_AVAILABLE),
    ],
)
async def test_share_partitions_are_named_in_full(version: int, key: str, code: ErrorCode) -> None:
    """group:topicId:partition, since v6 (KIP-932)."""
    assert [answer[1] for answer in await coordinators(lazy(), key, kind=SHARE, version=version)] == [code]


async def test_share_partitions_are_asked_for_by_brokers() -> None:
    """Without CLUSTER_ACTION the whole request is refused."""
    denied = {(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER)}
    answers = await coordinators(AdminStage(), SHARE_KEY, "x", kind=SHARE, denied=denied)
    assert [answer[1] for answer in answers] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 2


async def test_a_coordinator_must_be_there_and_be_reachable() -> None:
    """COORDINATOR_NOT_AVAILABLE while the partition has no leader, or its leader does not have this listener."""
    stage = AdminStage(2)
    stage.topic("__consumer_offsets", *([[2]] * 50))
    assert (await coordinators(stage, "g"))[0][1:3] == (ErrorCode.NONE, 2)
    stage.stop(2)
    assert (await coordinators(stage, "g"))[0][1:3] == (NOT_AVAILABLE, -1)
    stage.arrive(2, {"OTHER": BrokerListener("elsewhere", 1)})
    assert (await coordinators(stage, "g"))[0][1:3] == (NOT_AVAILABLE, -1)


async def test_the_count_of_partitions_is_that_of_the_broker_s_start() -> None:
    """A topic that was there then counts, not the setting (groups F.1)."""
    stage = AdminStage(2)
    stage.topic("__consumer_offsets", [2], [2])
    assert (await coordinators(stage, "test"))[0][1] is NOT_AVAILABLE
    stage.cluster.nodes[1].internal_counts = {"__consumer_offsets": 2}
    assert (await coordinators(stage, "test"))[0][1:3] == (ErrorCode.NONE, 2)
