"""Topics made, changed and deleted, leaders elected, replicas moved (TOP, PAR, DEL, ELE, REA; core I.2)."""

from collections.abc import Mapping, Sequence

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicState
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tests.conftest import BrokerWith
from tests.scenarios.core.asking import RANDOM_ID, create, created, exists, metadata, topic
from tests.server import Server
from tests.wire import Wire

DEFAULT_CONFIG = 5


def test_TOP_01_a_created_topic_is_returned_in_full(broker: Server) -> None:
    """Id, counts and the effective configs, sorted, with their sources."""
    (result,) = create(broker.wire(), topic("t", 2))
    assert (result.error_code, result.error_message) == (ErrorCode.NONE, None)
    assert result.topic_id is not None
    assert (result.num_partitions, result.replication_factor) == (2, 1)
    assert result.configs
    names = [each.name for each in result.configs]
    assert names == sorted(names)
    (policy,) = [each for each in result.configs if each.name == "cleanup.policy"]
    assert (policy.value, policy.config_source, policy.read_only) == ("delete", DEFAULT_CONFIG, False)


def test_TOP_02_a_name_is_taken_once(broker: Server) -> None:
    """TOPIC_ALREADY_EXISTS with its sentence."""
    wire = broker.wire()
    created(wire, "t")
    (result,) = create(wire, topic("t"))
    assert (result.error_code, result.error_message) == (
        ErrorCode.TOPIC_ALREADY_EXISTS,
        "Topic 't' already exists.",
    )


def test_TOP_03_names_that_differ_by_dot_and_underscore_collide(broker: Server) -> None:
    """Their metrics would have the same name."""
    wire = broker.wire()
    created(wire, "my.topic")
    (result,) = create(wire, topic("my_topic"))
    assert result.error_code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert result.error_message == "Topic 'my_topic' collides with existing topic: my.topic"


def test_TOP_04_a_name_twice_in_a_request_is_refused_once(broker: Server) -> None:
    """One result for both, and the topic is not made."""
    wire = broker.wire()
    results = create(wire, topic("t"), topic("other"), topic("t"))
    assert {each.name: each.error_code for each in results} == {
        "t": ErrorCode.INVALID_REQUEST,
        "other": ErrorCode.NONE,
    }
    assert len(results) == 2
    assert not exists(wire, "t")


@pytest.mark.parametrize("name", ["", ".", "x" * 250, "a b"])
def test_TOP_05_bad_names_are_refused(broker: Server, name: str) -> None:
    """INVALID_TOPIC_EXCEPTION with a sentence."""
    (result,) = create(broker.wire(), topic(name))
    assert result.error_code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert (result.error_message or "").startswith("Topic name is invalid: ")


@pytest.mark.parametrize(
    ("partitions", "factor", "code"),
    [
        (1, 2, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, 0, ErrorCode.INVALID_REPLICATION_FACTOR),
        (0, 1, ErrorCode.INVALID_PARTITIONS),
        (0, 0, ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_TOP_06_counts_must_be_possible(broker: Server, partitions: int, factor: int, code: ErrorCode) -> None:
    """Impossible partition counts and factors are refused, the factor first."""
    wire = broker.wire()
    (result,) = create(wire, topic("t", partitions, factor))
    assert result.error_code is code
    assert (result.num_partitions, result.replication_factor, result.topic_id) == (-1, -1, None)
    assert not exists(wire, "t")


def test_TOP_07_replicas_can_be_assigned_by_hand(broker: Server) -> None:
    """Then both counts must be left open."""
    wire = broker.wire()
    placed = {0: [1], 1: [1]}
    (free,) = create(wire, topic("t", -1, -1, assignments=placed))
    assert (free.error_code, free.num_partitions) == (ErrorCode.NONE, 2)
    (counted,) = create(wire, topic("u", -1, 1, assignments=placed))
    assert counted.error_code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("placed", [{0: [1], 2: [1]}, {0: [1, 1]}, {0: [9]}, {0: []}])
def test_TOP_08_assignments_must_make_sense(broker: Server, placed: Mapping[int, Sequence[int]]) -> None:
    """Partitions numbered from 0 without gaps, no broker twice, no unknown broker, at least one replica."""
    (result,) = create(broker.wire(), topic("t", -1, -1, assignments=placed))
    assert result.error_code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert result.error_message


@pytest.mark.parametrize(("name", "value"), [("nope", "1"), ("retention.ms", "x"), ("retention.ms", None)])
def test_TOP_09_configs_are_validated(broker: Server, name: str, value: str | None) -> None:
    """An unknown setting, a text that is no number and a missing value are refused."""
    wire = broker.wire()
    (result,) = create(wire, topic("t", configs={name: value}))
    assert result.error_code is ErrorCode.INVALID_CONFIG
    assert not exists(wire, "t")


def test_TOP_10_validation_alone_creates_nothing(broker: Server) -> None:
    """validate_only returns the result of a success, and creates nothing."""
    wire = broker.wire()
    (result,) = create(wire, topic("t", 2), validate_only=True)
    assert (result.error_code, result.num_partitions, result.replication_factor) == (ErrorCode.NONE, 2, 1)
    assert result.topic_id is not None
    assert result.configs
    assert not exists(wire, "t")


def test_TOP_11_a_request_creates_ten_thousand_partitions_at_most(broker: Server) -> None:
    """POLICY_VIOLATION on every topic of the request."""
    results = create(broker.wire(), topic("a", 5000), topic("b", 5001))
    assert [each.error_code for each in results] == [ErrorCode.POLICY_VIOLATION] * 2


def test_TOP_12_no_time_means_no_answer_in_time(broker: Server) -> None:
    """With a timeout of 0 each topic is answered REQUEST_TIMED_OUT."""
    results = create(broker.wire(), topic("a"), topic("b"), timeout_ms=0)
    assert [each.error_code for each in results] == [ErrorCode.REQUEST_TIMED_OUT] * 2


def test_TOP_13_the_metadata_log_is_no_topic_to_create(broker: Server) -> None:
    """CreateTopics of __cluster_metadata is refused with INVALID_REQUEST."""
    (result,) = create(broker.wire(), topic("__cluster_metadata"))
    assert result.error_code is ErrorCode.INVALID_REQUEST
    assert result.error_message == "Creation of internal topic __cluster_metadata is prohibited."


# --- CreatePartitions ------------------------------------------------------------------------------------------------


def grown(wire: Wire, name: str, count: int, assignments: Sequence[Sequence[int]] | None = None) -> ErrorCode:
    """CreatePartitions of one topic; the code."""
    placed = None if assignments is None else [CreatePartitionsAssignment(ids) for ids in assignments]
    request = CreatePartitionsRequest([CreatePartitionsTopic(name, count, placed)], 5000)
    (result,) = wire.call(ApiKey.CREATE_PARTITIONS, 3, request).results
    code: ErrorCode = result.error_code
    return code


def test_PAR_01_partitions_only_grow(broker: Server) -> None:
    """As many, fewer, more, and of a topic that is not there."""
    wire = broker.wire()
    created(wire, "foo", 3)
    assert grown(wire, "foo", 3) is ErrorCode.INVALID_PARTITIONS
    assert grown(wire, "foo", 2) is ErrorCode.INVALID_PARTITIONS
    assert grown(wire, "foo", 5) is ErrorCode.NONE
    assert grown(wire, "nope", 5) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (answer,) = metadata(wire, "foo")
    assert sorted((p.partition_index, p.leader_epoch) for p in answer.partitions) == [(i, 0) for i in range(5)]


def test_PAR_02_each_new_partition_needs_its_assignment(broker: Server) -> None:
    """Two more partitions, one assignment."""
    wire = broker.wire()
    created(wire, "foo", 3)
    assert grown(wire, "foo", 5, [[1]]) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert grown(wire, "foo", 5, [[1], [1]]) is ErrorCode.NONE


# --- DeleteTopics ----------------------------------------------------------------------------------------------------


def deleted(wire: Wire, *states: DeleteTopicState, version: int = 6) -> Sequence[DeletableTopicResult]:
    """DeleteTopics; the results, whose order means nothing."""
    response = wire.call(ApiKey.DELETE_TOPICS, version, DeleteTopicsRequest(topics=states, timeout_ms=5000))
    results: Sequence[DeletableTopicResult] = response.responses
    return results


def test_DEL_01_topics_are_deleted_by_name_or_by_id(broker: Server) -> None:
    """Both are returned with name and id; an unknown topic only with what it was requested by."""
    wire = broker.wire()
    first, second = created(wire, "first"), created(wire, "second")
    (by_name,) = deleted(wire, DeleteTopicState("first"))
    assert (by_name.error_code, by_name.name, by_name.topic_id) == (ErrorCode.NONE, "first", first)
    (by_id,) = deleted(wire, DeleteTopicState(topic_id=second))
    assert (by_id.error_code, by_id.name, by_id.topic_id) == (ErrorCode.NONE, "second", second)
    (no_name,) = deleted(wire, DeleteTopicState("nope"))
    assert no_name.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (no_id,) = deleted(wire, DeleteTopicState(topic_id=RANDOM_ID))
    assert no_id.error_code is ErrorCode.UNKNOWN_TOPIC_ID
    (neither,) = deleted(wire, DeleteTopicState())
    assert neither.error_code is ErrorCode.INVALID_REQUEST
    assert not exists(wire, "first")


@pytest.mark.parametrize(("version", "code"), [(1, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)])
def test_DEL_02_deletion_can_be_forbidden(broker_with: BrokerWith, version: int, code: ErrorCode) -> None:
    """delete.topic.enable=false; before v3 there was no code for it."""
    wire = broker_with(settings={"delete.topic.enable": "false"}).wire()
    created(wire, "foo")
    (result,) = deleted(wire, DeleteTopicState("foo"), version=version)
    assert result.error_code is code
    assert exists(wire, "foo")


def test_DEL_03_a_name_twice_in_a_request_is_refused_once(broker: Server) -> None:
    """A topic that DeleteTopics names twice is refused once, and stays."""
    wire = broker.wire()
    created(wire, "foo")
    (result,) = deleted(wire, DeleteTopicState("foo"), DeleteTopicState("foo"))
    assert (result.error_code, result.error_message) == (ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    assert exists(wire, "foo")


# --- leaders and replicas --------------------------------------------------------------------------------------------


def test_ELE_01_an_election_that_is_not_needed_is_not_held(broker: Server) -> None:
    """Returned for a partition that was requested; left out, except for the topic, where all were."""
    wire = broker.wire()
    created(wire, "foo")
    one = wire.call(ApiKey.ELECT_LEADERS, 2, ElectLeadersRequest([TopicPartitions("foo", [0])]))
    ((result,),) = [each.partition_result for each in one.replica_election_results]
    assert (result.error_code, result.error_message) == (
        ErrorCode.ELECTION_NOT_NEEDED,
        "Leader election not needed for topic partition.",
    )
    everything = wire.call(ApiKey.ELECT_LEADERS, 2, ElectLeadersRequest(None))
    assert everything.error_code is ErrorCode.NONE
    assert [(each.topic, each.partition_result) for each in everything.replica_election_results] == [("foo", ())]


@pytest.mark.parametrize(
    ("replicas", "code"),
    [
        ([1], ErrorCode.NONE),
        ([7], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
    ],
)
def test_REA_01_replicas_are_reassigned(broker: Server, replicas: list[int] | None, code: ErrorCode) -> None:
    """To where they are, to a broker that is not there, and back from nowhere."""
    wire = broker.wire()
    created(wire, "foo")
    reassignment = ReassignableTopic("foo", [ReassignablePartition(0, replicas)])
    response = wire.call(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, AlterPartitionReassignmentsRequest(topics=[reassignment])
    )
    assert response.error_code is ErrorCode.NONE
    ((result,),) = [each.partitions for each in response.responses]
    assert result.error_code is code
