"""Requests with values that no client sends on purpose. Answers are those of a 4.3.1 broker."""

from collections.abc import Sequence
from typing import Any

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from protocol.messages.fetch import PartitionData, ReplicaState
from protocol.messages.list_transactions import ListTransactionsRequest
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.scenarios.core.asking import created, data_of, fetch_all, interest, produced
from tests.scenarios.core.batches import batch
from tests.server import Server
from tests.wire import Wire

ONE = batch(b"a")
NONE, FAILED = ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.fixture
def wire(broker: Server) -> Wire:
    """A connection; the topic foo has a record in partitions 0 and 1, and none in 2."""
    wire = broker.wire()
    created(wire, "foo", 3)
    for partition in (0, 1):
        produced(wire, "foo", ONE, partition=partition)
    return wire


def partitions(wire: Wire, offset: int = 0, max_bytes: int = 1 << 20, **fields: Any) -> Sequence[PartitionData]:
    """Fetch of all three partitions."""
    entries = [interest(index, offset, max_bytes) for index in range(3)]
    partition_data: Sequence[PartitionData] = fetch_all(wire, {"foo": entries}, **fields).responses[0].partitions
    return partition_data


@pytest.mark.parametrize("epoch", [-2, -(2**31)])
@pytest.mark.parametrize(("offset", "code"), [(0, NONE), (9, ErrorCode.OFFSET_OUT_OF_RANGE)])
def test_a_negative_leader_epoch_is_none(wire: Wire, epoch: int, offset: int, code: ErrorCode) -> None:
    """FetchRequest.optionalEpoch; one that is too high is unknown still."""
    response = fetch_all(wire, {"foo": [interest(0, offset, current_leader_epoch=epoch)]})
    assert response.responses[0].partitions[0].error_code is code
    response = fetch_all(wire, {"foo": [interest(0, offset, current_leader_epoch=9)]})
    assert response.responses[0].partitions[0].error_code is ErrorCode.UNKNOWN_LEADER_EPOCH


@pytest.mark.parametrize("replica_id", [0, 1, 5])
@pytest.mark.parametrize(
    ("epoch", "code"), [(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER), (0, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
def test_a_replica_that_follows_nothing_reads_nothing(
    broker: Server, replica_id: int, epoch: int, code: ErrorCode
) -> None:
    """Partition.followerReplicaOrThrow, the leader's own id included; v15 moved the id."""
    wire = broker.wire()
    topic_id = created(wire, "bar")
    fetch_partitions = [interest(current_leader_epoch=epoch)]
    old = fetch_all(wire, {"bar": fetch_partitions}, version=12, replica_id=replica_id)
    new = fetch_all(wire, {topic_id: fetch_partitions}, version=17, replica_state=ReplicaState(replica_id, -1))
    for response in (old, new):
        assert response.responses[0].partitions[0].error_code is code
        assert response.node_endpoints == ()


def test_a_negative_partition_limit_fails_where_there_is_data(wire: Wire) -> None:
    """LogSegment.read refuses it; an empty log, or its end, is never read."""
    assert [each.error_code for each in partitions(wire, max_bytes=-1)] == [FAILED, FAILED, NONE]
    codes = [each.error_code for each in partitions(wire, 1, max_bytes=-1)]
    assert codes == [NONE, NONE, ErrorCode.OFFSET_OUT_OF_RANGE]


def test_a_negative_limit_of_the_request_fails_its_first_partition(wire: Wire) -> None:
    """What is left is never below 0 behind it (ReplicaManager.readFromLog)."""
    partitions = fetch_all(wire, {"foo": [interest(index) for index in range(3)]}, max_bytes=-1).responses[0].partitions
    answers = [(each.error_code, len(data_of(each)) > 0) for each in partitions]
    assert answers == [(FAILED, False), (NONE, True), (NONE, False)]


@pytest.mark.parametrize(("max_bytes", "aborted"), [(0, [(), (), ()]), (1, [(), None, ()])])
def test_a_batch_that_does_not_fit_has_no_aborted_transactions(
    wire: Wire, max_bytes: int, aborted: list[tuple[()] | None]
) -> None:
    """Null where the first batch was cut off (FetchDataInfo.firstEntryIncomplete), empty where no byte was allowed."""
    assert [each.aborted_transactions for each in partitions(wire, max_bytes=max_bytes, isolation_level=1)] == aborted


# --- administration --------------------------------------------------------------------------------------------------


def elected(wire: Wire, kind: int, entries: list[tuple[str, list[int]]], timeout_ms: int = 10_000) -> object:
    """ElectLeaders: the code, and the codes of each entry."""
    request = ElectLeadersRequest([TopicPartitions(*each) for each in entries], timeout_ms, kind)
    response = wire.call(ApiKey.ELECT_LEADERS, 2, request)
    results = response.replica_election_results
    return response.error_code, [(each.topic, [p.error_code for p in each.partition_result]) for each in results]


@pytest.mark.parametrize("kind", [0, 1, 2, -1])
def test_an_election_of_nothing_is_answered_at_once(wire: Wire, kind: int) -> None:
    """Before its time and its type are looked at (QuorumController.electLeaders); the time is looked at first."""
    assert elected(wire, kind, [], 0) == (NONE, [])
    timed_out = ErrorCode.REQUEST_TIMED_OUT
    assert elected(wire, kind, [("foo", [0])], 0) == (timed_out, [("foo", [timed_out])])


def test_every_entry_of_an_election_is_answered(wire: Wire) -> None:
    """Repeated topics and those without partitions too."""
    needless, absent = ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    entries = [("foo", [0]), ("foo", []), ("foo", [1, 1]), ("absent", [0])]
    answers = [("foo", [needless]), ("foo", []), ("foo", [needless, needless]), ("absent", [absent])]
    assert elected(wire, 0, entries) == (NONE, answers)


def test_a_reassignment_of_nothing_is_answered_at_once(wire: Wire) -> None:
    """With a message that is empty rather than null."""
    answer = wire.call(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, AlterPartitionReassignmentsRequest(timeout_ms=0))
    assert (answer.error_code, answer.error_message) == (NONE, "")


def test_an_empty_topic_name_fails_DescribeTopicPartitions(wire: Wire) -> None:
    """One empty topic name fails every topic of the request."""
    request = DescribeTopicPartitionsRequest([TopicRequest("foo"), TopicRequest("")])
    answer = wire.call(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request)
    assert [(each.name, each.error_code) for each in answer.topics] == [("foo", FAILED), ("", FAILED)]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("levels", "code"),
    [
        ([("bogus", 0)], ErrorCode.INVALID_UPDATE_VERSION),
        ([("", 0)], ErrorCode.INVALID_UPDATE_VERSION),
        ([("transaction.version", 9), ("transaction.version", 2)], NONE),
        ([("transaction.version", 2), ("transaction.version", 9)], ErrorCode.INVALID_UPDATE_VERSION),
    ],
)
def test_features_must_be_known_and_count_once(
    wire: Wire, version: int, levels: list[tuple[str, int]], code: ErrorCode
) -> None:
    """A map of levels (FeatureControlManager): the last one counts, and level 0 needs a feature too."""
    updates = [FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=1) for name, level in levels]
    request = UpdateFeaturesRequest(feature_updates=updates, validate_only=True)
    assert wire.call(ApiKey.UPDATE_FEATURES, version, request).error_code is code


@pytest.mark.parametrize(
    ("pattern", "code"),
    [
        (r"\Qa.b\E", NONE),
        (r"(?<x>a)\z", NONE),
        (r"\pL\x{2e}", NONE),
        (r"a\Z", ErrorCode.INVALID_REGULAR_EXPRESSION),
        (r"a\C", ErrorCode.INVALID_REGULAR_EXPRESSION),
        ("a{1001}", ErrorCode.INVALID_REGULAR_EXPRESSION),
        ("(?P<n>a)(?P<n>b)", ErrorCode.INVALID_REGULAR_EXPRESSION),
    ],
)
def test_ListTransactions_reads_patterns_as_re2j_does(broker: Server, pattern: str, code: ErrorCode) -> None:
    """A pattern of transactional ids has RE2J's syntax, and an invalid one is refused (KIP-1152)."""
    broker.make_coordinators()
    request = ListTransactionsRequest(transactional_id_pattern=pattern)
    assert broker.wire().call(ApiKey.LIST_TRANSACTIONS, 2, request).error_code is code


# --- groups ----------------------------------------------------------------------------------------------------------


def beat(wire: Wire, group_id: str, member_id: str, epoch: int, **fields: Any) -> tuple[ErrorCode, str | None]:
    """ConsumerGroupHeartbeat: code and message."""
    request = ConsumerGroupHeartbeatRequest(group_id=group_id, member_id=member_id, member_epoch=epoch, **fields)
    if epoch == 0:
        request = request.changed(rebalance_timeout_ms=60_000, topic_partitions=[])
        if request.subscribed_topic_regex is None:
            request = request.changed(subscribed_topic_names=["foo"])
    answer = wire.call(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request)
    return answer.error_code, answer.error_message


def test_offsets_of_a_consumer_group_need_a_member_where_there_is_an_epoch(broker: Server) -> None:
    """ConsumerGroup.validateOffsetFetch looks up the null id; without both nothing is checked."""
    broker.make_coordinators()
    wire = broker.wire()
    assert beat(wire, "g", "m", 0)[0] is NONE
    codes = []
    for member_id, epoch in ((None, -1), (None, 0), ("", 0)):
        group = OffsetFetchRequestGroup(group_id="g", member_id=member_id, member_epoch=epoch, topics=None)
        (answer,) = wire.call(ApiKey.OFFSET_FETCH, 9, OffsetFetchRequest(groups=[group])).groups
        codes.append(answer.error_code)
    assert codes == [NONE, FAILED, ErrorCode.UNKNOWN_MEMBER_ID]


def test_refused_heartbeats_name_what_they_miss(broker: Server) -> None:
    """Refused heartbeats have the texts of GroupMetadataManager."""
    broker.make_coordinators()
    wire = broker.wire()
    assert beat(wire, "g", "m1", 0, instance_id="i")[0] is NONE
    owned = "Static member m2 with instance id i cannot join the group because the instance id is owned by m1 member."
    assert beat(wire, "g", "m2", 0, instance_id="i") == (ErrorCode.UNRELEASED_INSTANCE_ID, owned)
    absent = ErrorCode.GROUP_ID_NOT_FOUND
    assert beat(wire, "none", "m", 5) == (absent, "Consumer group none not found.")
    assert beat(wire, "none", "m", -1) == (absent, "Group none not found.")
    (group,) = wire.call(ApiKey.DESCRIBE_GROUPS, 6, DescribeGroupsRequest(["g"])).groups
    assert (group.error_code, group.error_message) == (absent, "Group g is not a classic group.")


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "missing closing )"),
        ("a)b", "regexp/syntax: internal error"),
        ("[a", "missing closing ]"),
        ("*", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a{2,1}", "invalid repeat count"),
        ("\\", "trailing backslash at end of expression"),
        ("(?P<n", "invalid named capture"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        (r"\C", "invalid escape sequence"),
        ("(?P<n>a)(?P<n>b)", "duplicate capture group name"),
    ],
)
def test_a_broken_pattern_is_explained_as_re2j_does(broker: Server, pattern: str, reason: str) -> None:
    """com.google.re2j.PatternSyntaxException."""
    broker.make_coordinators()
    text = f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {reason}."
    error = beat(broker.wire(), "g", "m", 0, subscribed_topic_regex=pattern)
    assert error == (ErrorCode.INVALID_REGULAR_EXPRESSION, text)
