"""Offsets by time and by leader epoch, and records deleted before their time (LST, EPO, DRC; core I.5)."""

from collections.abc import Sequence

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.conftest import BrokerWith
from tests.scenarios.core.asking import create, created, data_of, fetch, produced, records_deleted, topic
from tests.scenarios.core.batches import batch
from tests.server import Server, until
from tests.wire import Wire

LATEST, EARLIEST, LARGEST_TIME, LOCAL_EARLIEST, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6


def listed(wire: Wire, *timestamps: int, version: int = 7) -> Sequence[ListOffsetsPartitionResponse]:
    """ListOffsets of foo-0, once for each timestamp."""
    requested_topic = ListOffsetsTopic("foo", [ListOffsetsPartition(0, each) for each in timestamps])
    ((topic),) = wire.call(ApiKey.LIST_OFFSETS, version, ListOffsetsRequest(-1, [requested_topic])).topics
    partitions: Sequence[ListOffsetsPartitionResponse] = topic.partitions
    return partitions


def with_times(broker: Server) -> Wire:
    """A topic ``foo`` whose records 0, 1, 2 have the times 10, 20, 15."""
    wire = broker.wire()
    created(wire, "foo")
    produced(wire, "foo", batch(b"a", b"b", b"c", times_ms=[10, 20, 15]))
    return wire


@pytest.mark.parametrize(("time_ms", "offset_and_time"), [(15, (1, 20)), (16, (1, 20)), (21, (-1, -1))])
def test_LST_01_a_time_finds_the_first_record_that_is_not_older(
    broker: Server, time_ms: int, offset_and_time: tuple[int, int]
) -> None:
    """In the order of the log, not of time."""
    (answer,) = listed(with_times(broker), time_ms)
    assert (answer.error_code, (answer.offset, answer.timestamp)) == (ErrorCode.NONE, offset_and_time)


@pytest.mark.parametrize(
    ("timestamp", "offset_and_time"),
    [(LARGEST_TIME, (1, 20)), (LATEST, (3, -1)), (EARLIEST, (0, -1))],
    ids=["max", "last", "first"],
)
def test_LST_02_special_timestamps_select_an_offset(
    broker: Server, timestamp: int, offset_and_time: tuple[int, int]
) -> None:
    """The record with the largest time, the end, the start."""
    (answer,) = listed(with_times(broker), timestamp)
    assert (answer.error_code, (answer.offset, answer.timestamp)) == (ErrorCode.NONE, offset_and_time)


@pytest.mark.parametrize(("version", "timestamp"), [(6, LARGEST_TIME), (7, LOCAL_EARLIEST)])
def test_LST_03_each_special_time_has_its_first_version(broker: Server, version: int, timestamp: int) -> None:
    """UNSUPPORTED_VERSION on the partition before that."""
    (answer,) = listed(with_times(broker), timestamp, version=version)
    assert (answer.error_code, answer.offset) == (ErrorCode.UNSUPPORTED_VERSION, -1)


def test_LST_04_a_partition_is_asked_for_once(broker: Server) -> None:
    """A partition that is listed twice gets INVALID_REQUEST."""
    answers = listed(with_times(broker), LATEST, LATEST)
    assert {(each.error_code, each.offset) for each in answers} == {(ErrorCode.INVALID_REQUEST, -1)}


@pytest.mark.parametrize(("version", "timestamp"), [(9, LATEST_TIERED), (11, EARLIEST_PENDING)])
def test_LST_05_without_tiers_nothing_is_tiered(broker: Server, version: int, timestamp: int) -> None:
    """Without tiered storage the tiered offset is -1, without an error."""
    (answer,) = listed(with_times(broker), timestamp, version=version)
    assert (answer.error_code, answer.offset, answer.timestamp, answer.leader_epoch) == (ErrorCode.NONE, -1, -1, -1)


def test_the_first_segment_that_is_recent_enough_decides(broker: Server) -> None:
    """Also where its records are deleted: nothing is found until retention removes the segment (core E.8.5)."""
    wire = broker.wire()
    created(wire, "foo", retention_ms="-1", segment_ms="1000")
    for time_ms in (10, 10_000):
        produced(wire, "foo", batch(b"a", times_ms=[time_ms]))
    assert [listed(wire, time_ms)[0].offset for time_ms in (5, 11)] == [0, 1]
    assert records_deleted(wire, "foo", 1).error_code is ErrorCode.NONE
    assert [listed(wire, time_ms)[0].offset for time_ms in (5, 11)] == [-1, 1]


def test_records_without_a_time_have_the_largest_one_if_there_is_no_other(broker: Server) -> None:
    """-1, at the first of them (core E.8.8)."""
    wire = broker.wire()
    created(wire, "foo")
    produced(wire, "foo", batch(b"a", b"b", times_ms=[-1, -1]))
    (answer,) = listed(wire, LARGEST_TIME)
    assert (answer.error_code, (answer.offset, answer.timestamp)) == (ErrorCode.NONE, (0, -1))
    (answer,) = listed(wire, 0)
    assert (answer.offset, answer.timestamp) == (-1, -1)


# --- leader epochs ---------------------------------------------------------------------------------------------------


def with_epochs(broker: Server) -> Wire:
    """A topic ``foo`` with epoch 0 from offset 0, epoch 2 from offset 5, and its end at 9."""
    wire = broker.wire()
    created(wire, "foo")
    assert produced(wire, "foo", batch(*[b"x"] * 5)) == 0
    broker.control("POST", "/v1/brokers/1/stop")
    broker.control("POST", "/v1/brokers/1/start")
    wire = broker.wire()
    assert produced(wire, "foo", batch(*[b"x"] * 4)) == 5
    return wire


@pytest.mark.parametrize(("epoch", "epoch_and_end"), [(0, (0, 5)), (1, (0, 5)), (2, (2, 9)), (3, (-1, -1))])
def test_EPO_01_an_epoch_ends_where_the_next_one_starts(
    broker: Server, epoch: int, epoch_and_end: tuple[int, int]
) -> None:
    """The last one ends with the log; one that never was falls back to the one before; one to come is unknown."""
    requested_topic = OffsetForLeaderTopic("foo", [OffsetForLeaderPartition(0, -1, epoch)])
    response = with_epochs(broker).call(
        ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, OffsetForLeaderEpochRequest([requested_topic])
    )
    ((answer,),) = [each.partitions for each in response.topics]
    assert (answer.error_code, (answer.leader_epoch, answer.end_offset)) == (ErrorCode.NONE, epoch_and_end)


def test_EPO_02_a_fetcher_whose_log_diverges_is_given_the_diverging_epoch(broker: Server) -> None:
    """Offset 7 after epoch 1: here epoch 0 ends at 5."""
    answer = fetch(with_epochs(broker), "foo", 7, last_epoch=1)
    assert answer.error_code is ErrorCode.NONE
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (0, 5)
    assert data_of(answer) == b""


# --- DeleteRecords ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offset", "code", "low"),
    [
        (4, ErrorCode.NONE, 4),
        (-1, ErrorCode.NONE, 10),
        (11, ErrorCode.OFFSET_OUT_OF_RANGE, -1),
        (-2, ErrorCode.OFFSET_OUT_OF_RANGE, -1),
    ],
)
def test_DRC_01_records_are_deleted_before_an_offset(broker: Server, offset: int, code: ErrorCode, low: int) -> None:
    """-1 is the high watermark; beyond it, or any other negative one, is out of range."""
    wire = broker.wire()
    created(wire, "foo")
    produced(wire, "foo", batch(*[b"x"] * 10))
    result = records_deleted(wire, "foo", offset)
    assert (result.error_code, result.low_watermark) == (code, low)
    if low > 0:
        assert fetch(wire, "foo", low - 1).error_code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert listed(wire, EARLIEST)[0].offset == max(low, 0)


def test_DRC_02_a_compacted_topic_deletes_by_itself(broker: Server) -> None:
    """DeleteRecords on a compacted topic is refused with POLICY_VIOLATION."""
    wire = broker.wire()
    created(wire, "cmp", cleanup_policy="compact")
    produced(wire, "cmp", batch(b"x"))
    assert records_deleted(wire, "cmp", 1).error_code is ErrorCode.POLICY_VIOLATION


def test_DRC_02_internal_topics_are_the_brokers(broker_with: BrokerWith) -> None:
    """DeleteRecords in an internal topic gets INVALID_TOPIC_EXCEPTION."""
    broker = broker_with(settings={"offsets.topic.replication.factor": 1})
    wire = broker.wire()
    request = FindCoordinatorRequest(coordinator_keys=["g"])
    until(lambda: not wire.call(ApiKey.FIND_COORDINATOR, 4, request).coordinators[0].error_code, "the coordinator")
    assert records_deleted(wire, "__consumer_offsets", 1).error_code is ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("epoch", [0, 1])
def test_a_broker_without_a_replica_knows_no_epoch(broker_with: BrokerWith, epoch: int) -> None:
    """With any epoch it answers that it does not lead."""
    brokers = broker_with(brokers=2)
    (result,) = create(brokers.wire(1), topic("foo", -1, -1, assignments={0: [1]}))
    assert result.error_code is ErrorCode.NONE
    wire = brokers.wire(2)
    requested_topic = ListOffsetsTopic("foo", [ListOffsetsPartition(0, LATEST, epoch)])
    listed_there = wire.call(ApiKey.LIST_OFFSETS, 7, ListOffsetsRequest(-1, [requested_topic])).topics[0].partitions[0]
    ended = OffsetForLeaderTopic("foo", [OffsetForLeaderPartition(0, epoch, 0)])
    end = wire.call(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, OffsetForLeaderEpochRequest([ended])).topics[0].partitions[0]
    codes = {listed_there.error_code, end.error_code, fetch(wire, "foo", epoch=epoch).error_code}
    assert codes == {ErrorCode.NOT_LEADER_OR_FOLLOWER}
