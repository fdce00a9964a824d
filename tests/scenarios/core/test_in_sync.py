"""Replicas leave the in-sync set with their broker and come back with it; a move ends when its replicas are filled."""

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.metadata import MetadataResponsePartition
from tests.conftest import BrokerWith
from tests.scenarios.core.asking import (
    fetch,
    fetch_all,
    interest,
    metadata,
    produce_request,
    produced,
    records_deleted,
    records_of,
)
from tests.scenarios.core.batches import batch, sized
from tests.server import Server, until
from tests.wire import Wire

PARTITION = "/v1/topics/t/partitions/0"


def assigned(wire: Wire, name: str, *replicas: int) -> None:
    """A topic with one partition on these brokers."""
    topic = CreatableTopic(name, -1, -1, [CreatableReplicaAssignment(0, replicas)])
    (result,) = wire.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([topic])).topics
    assert result.error_code is ErrorCode.NONE


def partition(wire: Wire, name: str) -> MetadataResponsePartition:
    """Partition 0 in the Metadata response."""
    (topic,) = metadata(wire, name)
    (metadata_partition,) = topic.partitions
    assert isinstance(metadata_partition, MetadataResponsePartition)
    return metadata_partition


def held(broker_with: BrokerWith, **configs: str) -> tuple[Server, Wire]:
    """A topic on brokers 1 and 2, of which broker 2 is in sync and fetches nothing, and a connection to its leader."""
    brokers = broker_with(brokers=2)
    brokers.freeze()
    wire = brokers.wire(1)
    topic_configs = [CreatableTopicConfig(name.replace("_", "."), value) for name, value in configs.items()]
    topic = CreatableTopic("t", -1, -1, [CreatableReplicaAssignment(0, [1, 2])], topic_configs)
    wire.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([topic]))
    brokers.control("POST", f"{PARTITION}/isr", {"replicas": [1, 2], "held": [2]})
    wire.send(ApiKey.PRODUCE, 9, produce_request({"t": {0: batch(b"a")}}, acks=-1, timeout_ms=5_000))
    assert not wire.has_answer()
    return brokers, wire


def produced_with(wire: Wire) -> tuple[ErrorCode, int]:
    """Code and base offset of the answer to a Produce."""
    ((answer,),) = [each.partition_responses for each in wire.answer().responses]
    return answer.error_code, answer.base_offset


def test_a_produce_that_is_not_replicated_in_time_is_answered_so(broker_with: BrokerWith) -> None:
    """REQUEST_TIMED_OUT at the request's timeout, no sooner; the record stays in the log."""
    brokers, wire = held(broker_with)
    brokers.advance(4_999)
    assert not wire.has_answer()
    brokers.advance(1)
    assert produced_with(wire) == (ErrorCode.REQUEST_TIMED_OUT, 0)
    assert brokers.control("GET", PARTITION)["log_end_offset"] == 1


def test_a_replica_that_leaves_ends_the_wait_for_it(broker_with: BrokerWith) -> None:
    """The record is committed by those that stay."""
    brokers, wire = held(broker_with)
    brokers.control("POST", f"{PARTITION}/isr", {"replicas": [1]})
    assert produced_with(wire) == (ErrorCode.NONE, 0)


def test_a_replica_that_leaves_too_few_behind_does_not_end_the_wait(broker_with: BrokerWith) -> None:
    """With fewer than min.insync.replicas the high watermark stays (KIP-966): the timeout ends it."""
    brokers, wire = held(broker_with, min_insync_replicas="2")
    brokers.control("POST", f"{PARTITION}/isr", {"replicas": [1]})
    assert not wire.has_answer()
    brokers.advance(5_000)
    assert produced_with(wire) == (ErrorCode.REQUEST_TIMED_OUT, 0)


def test_a_broker_that_comes_back_is_in_sync_again(broker_with: BrokerWith) -> None:
    """After it has what was written meanwhile; the leader stays who it is."""
    brokers = broker_with(brokers=3)
    wire = brokers.wire(1)
    assigned(wire, "t", 2, 1)
    brokers.control("POST", "/v1/brokers/2/stop")
    alone = partition(wire, "t")
    assert (alone.leader_id, alone.leader_epoch, alone.isr_nodes, alone.offline_replicas) == (1, 1, (1,), (2,))
    produced(wire, "t", sized(100))
    brokers.control("POST", "/v1/brokers/2/start")
    back = until(lambda: p if (p := partition(wire, "t")).isr_nodes == (1, 2) else None, "both in sync")
    assert (back.leader_id, back.leader_epoch, back.offline_replicas) == (1, 1, ())


def test_a_follower_that_was_killed_hears_how_far_it_may_be_read(broker_with: BrokerWith) -> None:
    """Of its leader, without anything new being written; until then nothing could be deleted on it either."""
    brokers = broker_with(brokers=2)
    wire = brokers.wire(1)
    assigned(wire, "t", 1, 2)
    produced(wire, "t", batch(b"a", b"b"), acks=-1)
    brokers.control("POST", "/v1/brokers/2/kill")
    brokers.control("POST", "/v1/brokers/2/start")
    follower = brokers.wire(2)
    until(lambda: fetch(follower, "t", 2, max_bytes=1).high_watermark == 2 or None, "it has heard")
    assert records_deleted(wire, "t", 2).low_watermark == 2


def test_a_move_ends_when_the_new_replicas_are_filled(broker_with: BrokerWith) -> None:
    """At once here: the old replica is gone, the new one leads with the next epoch and has the records."""
    brokers = broker_with(brokers=3)
    wire = brokers.wire(1)
    assigned(wire, "t", 1)
    produced(wire, "t", sized(100))
    topic = ReassignableTopic("t", [ReassignablePartition(0, [3, 2])])
    answer = wire.call(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, AlterPartitionReassignmentsRequest(10_000, [topic]))
    assert answer.responses[0].partitions[0].error_code is ErrorCode.NONE
    moved = partition(wire, "t")
    assert (moved.leader_id, moved.leader_epoch, moved.replica_nodes) == (3, 1, (3, 2))
    assert sorted(moved.isr_nodes) == [2, 3]
    assert produced(brokers.wire(3), "t", sized(100)) == 1


def test_a_log_that_begins_inside_a_batch_is_copied(broker_with: BrokerWith) -> None:
    """After DeleteRecords: the new replica has the whole batch, and begins where the old one did."""
    brokers = broker_with(brokers=2)
    wire = brokers.wire(1)
    assigned(wire, "t", 1)
    produced(wire, "t", batch(b"a", b"b", b"c"))
    assert records_deleted(wire, "t", 2).low_watermark == 2
    topic = ReassignableTopic("t", [ReassignablePartition(0, [2])])
    answer = wire.call(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, AlterPartitionReassignmentsRequest(10_000, [topic]))
    assert answer.responses[0].partitions[0].error_code is ErrorCode.NONE
    until(lambda: partition(wire, "t").leader_id == 2, "the move")
    new = brokers.wire(2)
    assert fetch(new, "t", 1).error_code is ErrorCode.OFFSET_OUT_OF_RANGE
    copied = fetch(new, "t", 2)
    assert (copied.log_start_offset, copied.high_watermark) == (2, 3)
    assert [record.value for record in records_of(copied)] == [b"a", b"b", b"c"]
    assert produced(new, "t", batch(b"d")) == 3


@pytest.mark.parametrize(
    ("version", "code"), [(4, ErrorCode.LEADER_NOT_AVAILABLE), (5, ErrorCode.OFFSET_NOT_AVAILABLE)]
)
def test_a_new_leader_whose_epoch_is_not_replicated_knows_no_end(
    broker_with: BrokerWith, version: int, code: ErrorCode
) -> None:
    """Consumers may know of more; replicas and the start are answered (KIP-207, transactions D.12)."""
    brokers = broker_with(brokers=3)
    wire = brokers.wire(1)
    assigned(wire, "t", 1, 2, 3)
    produced(wire, "t", batch(b"a"))
    brokers.control("POST", "/v1/topics/t/partitions/0/isr", {"replicas": [1, 2, 3], "held": [3]})
    produced(wire, "t", batch(b"b"), acks=1)
    brokers.control("POST", "/v1/brokers/1/stop")
    leader = brokers.wire(2)

    def listed(timestamp: int, replica_id: int = -1) -> tuple[ErrorCode, int]:
        requested_topic = ListOffsetsTopic("t", [ListOffsetsPartition(0, timestamp)])
        ((topic),) = leader.call(ApiKey.LIST_OFFSETS, version, ListOffsetsRequest(replica_id, [requested_topic])).topics
        return topic.partitions[0].error_code, topic.partitions[0].offset

    assert until(lambda: listed(-2) == (ErrorCode.NONE, 0) or None, "the next one leads")
    assert listed(-1) == (code, -1)
    assert listed(2**62) == (code, -1)
    assert listed(-1, replica_id=1) == (ErrorCode.NONE, 2)
    brokers.control("POST", "/v1/topics/t/partitions/0/isr", {"replicas": [2, 3], "held": []})
    assert listed(-1) == (ErrorCode.NONE, 2)


@pytest.mark.parametrize("epoch", [-1, 0])
def test_a_replica_reads_at_the_leader_alone(broker_with: BrokerWith, epoch: int) -> None:
    """Elsewhere it is not asked who the replica is (FetchParams.fetchOnlyLeader)."""
    brokers = broker_with(brokers=2)
    assigned(brokers.wire(1), "t", 2, 1)

    def code(broker: int, replica_id: int) -> ErrorCode:
        wire = brokers.wire(broker)
        response = fetch_all(wire, {"t": [interest(current_leader_epoch=epoch)]}, replica_id=replica_id)
        return ErrorCode(response.responses[0].partitions[0].error_code)

    codes = [code(broker, replica_id) for broker in (1, 2) for replica_id in (1, 5)]
    elsewhere = ErrorCode.NOT_LEADER_OR_FOLLOWER
    stranger = ErrorCode.UNKNOWN_LEADER_EPOCH if epoch == 0 else elsewhere
    assert codes == [elsewhere, elsewhere, ErrorCode.NONE, stranger]


def test_a_produce_that_waits_for_replicas_learns_that_the_topic_was_deleted(broker_with: BrokerWith) -> None:
    """With acks=all, at once, by UNKNOWN_TOPIC_OR_PARTITION (ReplicaManager.getPartitionOrError; DelayedProduce)."""
    brokers = broker_with(brokers=2)
    wire, admin = brokers.wire(1), brokers.wire(1)
    assigned(wire, "t", 1, 2)
    brokers.freeze()
    brokers.control("POST", "/v1/brokers/2/kill")
    wire.send(ApiKey.PRODUCE, 9, produce_request({"t": {0: sized(100)}}, acks=-1))
    assert not wire.has_answer()
    admin.call(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(topics=[DeleteTopicState("t")], timeout_ms=5000))
    ((answer,),) = [each.partition_responses for each in wire.answer().responses]
    assert answer.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
