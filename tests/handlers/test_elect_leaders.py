"""ElectLeaders: core B.10; what an election does is tested at the machine."""

import pytest

from broker.handlers.elect_leaders import API
from broker.request.context import AclOperation, ResourceType
from protocol.errors import ErrorCode
from protocol.java import string_hash, timeline_table_order
from protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from tests.handlers.admin_harness import AdminStage

PREFERRED, UNCLEAN = 0, 1
DENIED = "Request Request(connectionId=c1, listenerName=ListenerName(PLAINTEXT)) needs ALTER permission."
NOT_NEEDED = "Leader election not needed for topic partition."
Results = dict[str, list[tuple[int, ErrorCode, str | None]]]


def results(answer: ElectLeadersResponse) -> Results:
    """Topic -> partition, code, message."""
    return {
        each.topic: [(p.partition_id, p.error_code, p.error_message) for p in each.partition_result]
        for each in answer.replica_election_results
    }


async def test_ELE_01_named_partitions_are_answered_one_by_one() -> None:
    """Leader is preferred: 84; unknown: 3."""
    stage = AdminStage()
    stage.topic("foo", [1], [1])
    request = ElectLeadersRequest([TopicPartitions("foo", [1, 7]), TopicPartitions("no", [0])], 1000, PREFERRED)
    answer = await stage.ask(API, request)
    assert answer.error_code is ErrorCode.NONE
    assert results(answer) == {
        "foo": [
            (1, ErrorCode.ELECTION_NOT_NEEDED, NOT_NEEDED),
            (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No such partition as foo-7"),
        ],
        "no": [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No such topic as no")],
    }


async def test_ELE_01_of_all_partitions_only_elected_ones_are_returned() -> None:
    """Of all partitions only elected ones are returned, and each topic stays as an entry."""
    stage = AdminStage(2)
    stage.topic("foo", [1], [1])
    stage.topic("bar", [2, 1])
    stage.stop(2)
    stage.arrive(2)
    stage.cluster.metadata.submit(lambda _now_ms: stage.machine.change_isr("bar", 0, [1, 2]))
    answer = await stage.ask(API, ElectLeadersRequest(None, 1000, PREFERRED))
    assert results(answer) == {"foo": [], "bar": [(0, ErrorCode.NONE, None)]}
    assert stage.image.topics["bar"].partitions[0].leader == 2


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_v0_elects_preferred_leaders(version: int) -> None:
    """The version has no field for the type of election."""
    stage = AdminStage()
    stage.topic("foo")
    answer = await stage.ask(API, ElectLeadersRequest([TopicPartitions("foo", [0])], 1000, UNCLEAN), version)
    assert results(answer) == {"foo": [(0, ErrorCode.ELECTION_NOT_NEEDED, NOT_NEEDED)]}


@pytest.mark.parametrize(
    ("kind", "timeout_ms", "allowed", "code", "message"),
    [
        (PREFERRED, 1000, False, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, DENIED),
        (5, 1000, True, ErrorCode.INVALID_REQUEST, "Unknown election type 5"),
        (PREFERRED, 0, True, ErrorCode.REQUEST_TIMED_OUT, None),
    ],
)
async def test_a_request_refused_as_a_whole(
    kind: int, timeout_ms: int, allowed: bool, code: ErrorCode, message: str | None
) -> None:
    """At the top and on every partition named."""
    stage = AdminStage()
    stage.topic("foo")
    request = ElectLeadersRequest([TopicPartitions("foo", [0])], timeout_ms, kind)
    denied = () if allowed else {(AclOperation.ALTER, ResourceType.CLUSTER)}
    answer = await stage.ask(API, request, denied=denied)
    assert (answer.error_code, results(answer)) == (code, {"foo": [(0, code, message)]})


async def test_of_all_partitions_topics_come_in_the_order_of_the_controllers_table() -> None:
    """A TimelineHashMap of these topics, of which each has an entry."""
    stage = AdminStage()
    for name in ("c", "a", "b", "d", "foo"):
        stage.topic(name)
    answer = await stage.ask(API, ElectLeadersRequest(None, 1000, PREFERRED))
    assert list(results(answer)) == timeline_table_order(["c", "a", "b", "d", "foo"], string_hash)
    assert list(results(answer)) != ["c", "a", "b", "d", "foo"]
