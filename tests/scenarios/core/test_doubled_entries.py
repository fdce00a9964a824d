"""Entries that a request has twice: API by API, Kafka's map or list decides whether they are merged.

Answers are those of a 4.3.1 broker.
"""

from collections.abc import Sequence

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from tests.scenarios.core.asking import create, created, exists, produced, topic
from tests.scenarios.core.batches import batch
from tests.server import Server
from tests.wire import Wire

NONE, INVALID, TIMED_OUT = ErrorCode.NONE, ErrorCode.INVALID_REQUEST, ErrorCode.REQUEST_TIMED_OUT
FAILED = ErrorCode.UNKNOWN_SERVER_ERROR


# --- groups ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1])
def test_a_consumer_group_is_described_as_often_as_it_is_named(broker: Server, version: int) -> None:
    """KafkaApis collects the answers in a list."""
    broker.make_coordinators()
    request = ConsumerGroupDescribeRequest(["g", "h", "g"])
    groups = broker.wire().call(ApiKey.CONSUMER_GROUP_DESCRIBE, version, request).groups
    descriptions = sorted((each.group_id, each.error_code, each.error_message) for each in groups)
    absent = ErrorCode.GROUP_ID_NOT_FOUND
    assert descriptions == [(name, absent, f"Group {name} not found.") for name in ("g", "g", "h")]


@pytest.mark.parametrize("version", [0, 5, 6])
def test_a_classic_group_is_described_as_often_as_it_is_named(broker: Server, version: int) -> None:
    """DescribeGroups describes a group once for each entry of the request."""
    broker.make_coordinators()
    groups = broker.wire().call(ApiKey.DESCRIBE_GROUPS, version, DescribeGroupsRequest(["g", "h", "g"])).groups
    assert sorted((each.group_id, each.group_state) for each in groups) == [("g", "Dead"), ("g", "Dead"), ("h", "Dead")]


# --- records and offsets ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requested", "answers"),
    [
        ([("foo", [(0, 1)]), ("foo", [(1, 0)])], {"foo": [(0, NONE, 1), (1, NONE, 0)]}),
        ([("foo", [(0, 1), (0, 0)])], {"foo": [(0, NONE, 0)]}),
        ([("foo", [(0, 5)]), ("foo", [(0, 1)])], {"foo": [(0, NONE, 1)]}),
        ([("foo", [(0, 0)]), ("bar", [])], {"foo": [(0, NONE, 0)]}),
    ],
    ids=["topic twice", "partition twice", "the last counts", "no partitions"],
)
def test_DeleteRecords_has_one_offset_for_a_partition(
    broker: Server,
    requested: list[tuple[str, list[tuple[int, int]]]],
    answers: dict[str, list[tuple[int, ErrorCode, int]]],
) -> None:
    """A map of partitions, whose last offset counts; topics without partitions are left out."""
    wire = broker.wire()
    created(wire, "foo", 2)
    created(wire, "bar")
    produced(wire, "foo", batch(b"a"))
    topics = [DeleteRecordsTopic(name, [DeleteRecordsPartition(*each) for each in parts]) for name, parts in requested]
    response = wire.call(ApiKey.DELETE_RECORDS, 2, DeleteRecordsRequest(topics, 5_000))
    low_watermarks = [
        (each.name, sorted((p.partition_index, p.error_code, p.low_watermark) for p in each.partitions))
        for each in response.topics
    ]
    assert low_watermarks == list(answers.items())


@pytest.mark.parametrize(
    ("requested", "answers"),
    [
        ([("foo", [0]), ("bar", [0]), ("foo", [1])], {"foo": [(0, NONE), (1, NONE)], "bar": [(0, NONE)]}),
        ([("foo", [0, 0, 1])], {"foo": [(0, INVALID), (1, NONE)]}),
        ([("foo", []), ("bar", [0]), ("absent", [])], {"bar": [(0, NONE)]}),
    ],
    ids=["topic twice", "partition twice", "no partitions"],
)
@pytest.mark.parametrize("version", [1, 6])
def test_ListOffsets_answers_each_partition_once(
    broker: Server,
    version: int,
    requested: list[tuple[str, list[int]]],
    answers: dict[str, list[tuple[int, ErrorCode]]],
) -> None:
    """One entry per topic; a repeated partition is refused once, a topic without partitions is left out."""
    wire = broker.wire()
    created(wire, "foo", 2)
    created(wire, "bar")
    topics = [
        ListOffsetsTopic(name, [ListOffsetsPartition(partition_index=each, timestamp=-1) for each in parts])
        for name, parts in requested
    ]
    response = wire.call(ApiKey.LIST_OFFSETS, version, ListOffsetsRequest(replica_id=-1, topics=topics))
    codes = {each.name: sorted((p.partition_index, p.error_code) for p in each.partitions) for each in response.topics}
    assert (codes, len(response.topics)) == (answers, len(answers))


def test_markers_of_one_producer_are_merged_unless_all_are_refused(broker: Server) -> None:
    """Of refused ones the last marker's partitions are answered (WriteTxnMarkersRequest.getErrorResponse)."""
    wire = broker.wire()
    created(wire, "foo", 2)

    def marked(producer_id: int) -> list[tuple[int, ErrorCode]]:
        markers = [
            WritableTxnMarker(producer_id, 1, False, [WritableTxnMarkerTopic("foo", [index])], 0) for index in (0, 1)
        ]
        (result,) = wire.call(ApiKey.WRITE_TXN_MARKERS, 1, WriteTxnMarkersRequest(markers)).markers
        return sorted((p.partition_index, p.error_code) for each in result.topics for p in each.partitions)

    assert marked(7) == [(0, NONE), (1, NONE)]
    assert marked(-1) == [(1, FAILED)]


@pytest.mark.parametrize("version", [1, 2])
def test_AlterReplicaLogDirs_has_one_directory_for_a_replica(broker: Server, version: int) -> None:
    """A map of partitions, whose last directory counts, in the order of Kafka's 4.4.0."""
    wire = broker.wire()
    created(wire, "foo")
    results = wire.call(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(None)).results
    own, nowhere = results[0].log_dir, ErrorCode.LOG_DIR_NOT_FOUND

    def moved(*paths: str) -> list[tuple[str, list[tuple[int, ErrorCode]]]]:
        topics = [AlterReplicaLogDirTopic("foo", [0]), AlterReplicaLogDirTopic("eta", [1, 0, 2, 0])]
        request = AlterReplicaLogDirsRequest([AlterReplicaLogDir(path, topics) for path in paths])
        answer = wire.call(ApiKey.ALTER_REPLICA_LOG_DIRS, version, request)
        return [
            (each.topic_name, [(p.partition_index, p.error_code) for p in each.partitions]) for each in answer.results
        ]

    absent = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert dict(moved("/nowhere", own)) == {"foo": [(0, NONE)], "eta": [(2, absent), (0, absent), (1, absent)]}
    assert dict(moved(own, "/nowhere")) == {"foo": [(0, nowhere)], "eta": [(2, nowhere), (0, nowhere), (1, nowhere)]}


# --- topics ----------------------------------------------------------------------------------------------------------


def test_AlterPartitionReassignments_answers_every_entry(broker: Server) -> None:
    """Two entries of one topic are two results."""
    wire = broker.wire()
    created(wire, "foo", 2)
    topics = [
        ReassignableTopic("foo", [ReassignablePartition(0, [1])]),
        ReassignableTopic("foo", [ReassignablePartition(1, [1]), ReassignablePartition(1, None)]),
    ]
    request = AlterPartitionReassignmentsRequest(timeout_ms=10_000, topics=topics)
    response = wire.call(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, request)
    none = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert [[(p.partition_index, p.error_code) for p in each.partitions] for each in response.responses] == [
        [(0, NONE)],
        [(1, NONE), (1, none)],
    ]


def deleted(wire: Wire, *states: DeleteTopicState, timeout_ms: int = 10_000) -> Sequence[ErrorCode]:
    """The sorted codes of DeleteTopics."""
    request = DeleteTopicsRequest(timeout_ms=timeout_ms, topics=list(states))
    return sorted(each.error_code for each in wire.call(ApiKey.DELETE_TOPICS, 6, request).responses)


def test_a_name_whose_id_is_given_twice_deletes_nothing(broker: Server) -> None:
    """One refusal for the id, one for the name (ControllerApis.deleteTopics)."""
    wire = broker.wire()
    state = DeleteTopicState(topic_id=created(wire, "foo"))
    assert deleted(wire, DeleteTopicState("foo"), state, state) == [INVALID, INVALID]
    assert exists(wire, "foo")
    assert deleted(wire, DeleteTopicState("foo")) == [NONE]


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_without_time_only_what_the_controller_is_asked_times_out(broker: Server, timeout_ms: int) -> None:
    """Refusals that need no controller come first; with anything left, all of the request has timed out."""
    wire = broker.wire()
    created(wire, "foo")
    twice = [topic("new"), topic("new")]
    assert [each.error_code for each in create(wire, *twice, timeout_ms=timeout_ms)] == [INVALID]
    assert [each.error_code for each in create(wire, *twice, topic("more"), timeout_ms=timeout_ms)] == [TIMED_OUT] * 3
    assert [each.error_code for each in create(wire, topic("more", 10_001), timeout_ms=timeout_ms)] == [TIMED_OUT]
    both = DeleteTopicState("foo", created(wire, "bar"))
    assert deleted(wire, both, timeout_ms=timeout_ms) == [INVALID]
    assert deleted(wire, both, DeleteTopicState("foo"), timeout_ms=timeout_ms) == [TIMED_OUT] * 2
    request = CreatePartitionsRequest([CreatePartitionsTopic("foo", 2, None)] * 2, timeout_ms)
    results = wire.call(ApiKey.CREATE_PARTITIONS, 3, request).results
    assert [each.error_code for each in results] == [INVALID]


def test_a_sum_of_partitions_beyond_an_int_is_too_large_too(broker: Server) -> None:
    """ReplicationControlManager adds up a long since 4.4, so that the sum cannot overflow."""
    wire = broker.wire()
    most = topic("foo", 2**31 - 1)
    for beside in ([], [topic("bar")], [topic("bar", 2**31 - 1), topic("baz", 2)]):
        topics = [most, *beside]
        assert [each.error_code for each in create(wire, *topics)] == [ErrorCode.POLICY_VIOLATION] * len(topics)


def test_CreateTopics_answers_settings_as_they_were_written(broker: Server) -> None:
    """CreateTopics returns values as written, where DescribeConfigs returns them parsed."""
    written = {"preallocate": "TRUE", "min.cleanable.dirty.ratio": ".3", "retention.ms": " 12 "}
    (answer,) = create(broker.wire(), topic("foo", configs=written))
    assert {each.name: each.value for each in answer.configs or () if each.name in written} == written
