"""Tiered storage as clients see it: core F.10, E.2.10, E.8.9 (KIP-405, KIP-1005, KIP-1241).

Each row runs on a real Kafka too: ``TARGET=kafka``.
"""

from collections.abc import Iterator

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.metadata import MetadataRequest
from protocol.records.records import Record, build_batch
from tests.scenarios.core.asking import (
    batches_of,
    created,
    data_of,
    fetch,
    fetch_all,
    interest,
    produce,
    records_deleted,
)
from tests.scenarios.core.tiers import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING,
    LARGEST_TIME,
    LATEST,
    LATEST_TIERED,
    TIERED,
    Tiers,
    until,
)

SIZE = 471
"""Bytes of one record of `put` with its batch."""
DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def tiers() -> Iterator[Tiers]:
    """One broker for all rows; each has topics of its own."""
    cluster = Tiers()
    yield cluster
    cluster.close()


def test_closed_segments_are_copied_and_stay_local(tiers: Tiers) -> None:
    """Of five records in three segments four are copied; the active segment is not."""
    topic = tiers.topic("copied")
    assert tiers.offsets(topic, EARLIEST, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING) == [0, 0, -1, -1]
    tiers.put(topic, 5)
    until(lambda: tiers.offsets(topic, LATEST_TIERED) == [3])
    assert tiers.offsets(topic, EARLIEST, EARLIEST_LOCAL, EARLIEST_PENDING, LATEST) == [0, 0, 4, 5]
    assert tiers.local_bytes(topic) == 5 * SIZE


def test_local_retention_deletes_what_is_copied(tiers: Tiers) -> None:
    """All is read as before, the newest segment is rolled and copied too, as the special timestamps show."""
    topic = tiers.all_moved("moved", 7)
    assert tiers.local_bytes(topic) == 0
    assert tiers.offsets(topic, EARLIEST, LATEST, LARGEST_TIME, EARLIEST_PENDING) == [0, 7, -1, -1]
    assert [tiers.listed(topic, each).leader_epoch for each in (EARLIEST, EARLIEST_LOCAL, LATEST_TIERED)] == [0, 0, 0]
    assert [tiers.fetched(topic, each) for each in (0, 1, 3, 6, 7)] == [[0, 1], [1], [3], [6], []]
    assert (tiers.listed(topic, 0).offset, tiers.listed(topic, tiers.time_ms + 1).offset) == (0, -1)
    answer = fetch(tiers.wire(), topic, 0)
    assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (7, 7, 0)
    assert answer.aborted_transactions is None
    assert fetch(tiers.wire(), topic, 8).error_code is ErrorCode.OFFSET_OUT_OF_RANGE
    tiers.put(topic, 1)
    assert tiers.fetched(topic, 7) == [7]


def test_a_remote_read_waits_for_nothing_and_counts_with_what_it_may_have(tiers: Tiers) -> None:
    """However many bytes a request waits for; the partitions behind it get what its limit leaves (core E.2.10)."""
    wire = tiers.wire()
    created(wire, "two", 2, 1, **TIERED)
    tiers.put("two", 5)
    assert tiers.set("two", local_retention_ms="1") is ErrorCode.NONE
    until(lambda: tiers.offsets("two", EARLIEST_LOCAL) == [5])
    before = tiers.server.now_ms()
    fetch_all(wire, {"two": [interest(0, 0)]}, min_bytes=1_000_000, max_wait_ms=30_000)
    assert tiers.server.now_ms() - before < 20_000
    assert tiers.set("two", local_retention_ms="-2") is ErrorCode.NONE
    tiers.put("two", 1, partition=1)

    def sizes(first: int, second: int, most: int, each: int = 10_000) -> list[int]:
        parts = [interest(index, 0, each) for index in (first, second)]
        (answered,) = fetch_all(wire, {"two": parts}, max_bytes=most).responses
        return [len(data_of(part)) for part in answered.partitions]

    assert sizes(0, 1, 600) == [600, 0]
    assert sizes(1, 0, 600) == [SIZE, 0]
    assert sizes(0, 1, 10_000, 10) == [SIZE, 0]
    assert sizes(0, 1, 100_000) == [2 * SIZE, SIZE]


def test_records_are_deleted_in_both_tiers(tiers: Tiers) -> None:
    """The start moves through the remote tier, within a segment too; -5 keeps its offset when all is gone."""
    topic = tiers.all_moved("deleted", 6)
    assert records_deleted(tiers.wire(), topic, 3).low_watermark == 3
    assert fetch(tiers.wire(), topic, 2).error_code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert [tiers.fetched(topic, each) for each in (3, 4)] == [[3], [4, 5]]
    assert tiers.offsets(topic, EARLIEST, EARLIEST_LOCAL, LATEST_TIERED, 0) == [3, 6, 5, 3]
    assert records_deleted(tiers.wire(), topic, -1).low_watermark == 6
    assert tiers.offsets(topic, EARLIEST, EARLIEST_LOCAL, LATEST_TIERED) == [6, 6, 5]
    assert tiers.listed(topic, LATEST_TIERED).leader_epoch == -1


def test_retention_ms_is_for_both_tiers(tiers: Tiers) -> None:
    """Two old segments go, from the remote tier, where local retention has put them."""
    topic = tiers.topic("old", retention_ms=str(10 * DAY_MS))
    tiers.put(topic, 4, age_ms=5 * DAY_MS)
    tiers.put(topic, 3)
    assert tiers.set(topic, local_retention_ms="1") is ErrorCode.NONE
    until(lambda: tiers.offsets(topic, EARLIEST_LOCAL) == [7])
    assert tiers.fetched(topic, 0) == [0, 1]
    assert tiers.set(topic, retention_ms=str(3 * DAY_MS)) is ErrorCode.NONE
    until(lambda: tiers.offsets(topic, EARLIEST) == [4])
    assert fetch(tiers.wire(), topic, 3).error_code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert tiers.fetched(topic, 4) == [4, 5]


def test_retention_bytes_is_for_both_tiers(tiers: Tiers) -> None:
    """Locally and in total as many segments go as leave the limit."""
    topic = tiers.topic("large")
    tiers.put(topic, 9)
    until(lambda: tiers.offsets(topic, LATEST_TIERED) == [7])
    assert tiers.set(topic, local_retention_bytes="1000", retention_bytes="2000") is ErrorCode.NONE
    until(lambda: tiers.offsets(topic, EARLIEST, EARLIEST_LOCAL) == [4, 6])
    assert tiers.local_bytes(topic) == 3 * SIZE


def test_a_lag_delays_copying(tiers: Tiers) -> None:
    """With `remote.copy.lag.bytes` a segment is copied when so many bytes are behind it (KIP-1241)."""
    topic = tiers.topic(
        "lagging", remote_copy_lag_ms="-1", remote_copy_lag_bytes="1000", local_retention_bytes="5000",
        local_retention_ms="1000000",
    )  # fmt: skip
    tiers.put(topic, 7)
    until(lambda: tiers.offsets(topic, LATEST_TIERED, EARLIEST_PENDING) == [3, 4])
    tiers.put(topic, 1)
    assert tiers.offsets(topic, LATEST_TIERED) == [3]


def test_without_copying_the_limits_in_total_apply(tiers: Tiers) -> None:
    """`remote.log.copy.disable` leaves what is copied readable; what comes then stays local."""
    topic = tiers.all_moved("read-only", 5)
    assert tiers.set(topic, remote_log_copy_disable="true") is ErrorCode.INVALID_CONFIG
    assert tiers.set(topic, remote_log_copy_disable="true", local_retention_ms="-2") is ErrorCode.NONE
    tiers.put(topic, 4)
    assert tiers.offsets(topic, EARLIEST, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING) == [0, 5, 4, 5]
    assert (tiers.fetched(topic, 0), tiers.fetched(topic, 8)) == ([0, 1], [8])


def test_disabling_deletes_the_remote_tier(tiers: Tiers) -> None:
    """Only with `remote.log.delete.on.disable`; the log then starts where its local part does."""
    topic = tiers.all_moved("disabled", 5)
    assert tiers.set(topic, remote_storage_enable="false") is ErrorCode.INVALID_CONFIG
    assert tiers.offsets(topic, EARLIEST) == [0]
    disabled = {"remote_storage_enable": "false", "remote_log_delete_on_disable": "true"}
    assert tiers.set(topic, **disabled, local_retention_ms="-2") is ErrorCode.NONE
    until(lambda: tiers.offsets(topic, EARLIEST) == [5])
    assert tiers.offsets(topic, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING) == [5, -1, -1]
    assert fetch(tiers.wire(), topic, 0).error_code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_aborted_transactions_are_known_in_the_tier(tiers: Tiers) -> None:
    """READ_COMMITTED gets the list of those in the segment, as from a local one."""
    topic, wire = tiers.topic("aborted"), tiers.wire()
    find = FindCoordinatorRequest(key_type=1, coordinator_keys=["t"])
    until(lambda: not wire.call(ApiKey.FIND_COORDINATOR, 4, find).coordinators[0].error_code)
    init = InitProducerIdRequest("t", 60_000)
    until(lambda: not wire.call(ApiKey.INIT_PRODUCER_ID, 4, init).error_code)
    producer = wire.call(ApiKey.INIT_PRODUCER_ID, 4, init)
    record = Record(0, tiers.time_ms, b"k", b"x" * 400)
    own = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch, "base_sequence": 0}
    batch = build_batch([record], transactional=True, **own)
    until(lambda: not produce(wire, topic, batch, version=12, transactional_id="t", acks=-1).error_code)
    end = EndTxnRequest("t", producer.producer_id, producer.producer_epoch, False)
    until(lambda: not wire.call(ApiKey.END_TXN, 4, end).error_code)
    until(lambda: tiers.offsets(topic, LATEST) == [2])  # the marker follows the response
    tiers.put(topic, 3)
    assert tiers.set(topic, local_retention_ms="1") is ErrorCode.NONE
    until(lambda: tiers.offsets(topic, EARLIEST_LOCAL) == [5])
    aborted = fetch(wire, topic, 0, isolation_level=1).aborted_transactions
    assert aborted is not None
    assert [(each.producer_id, each.first_offset) for each in aborted] == [(producer.producer_id, 0)]
    assert fetch(wire, topic, 3, isolation_level=1).aborted_transactions == ()


def test_the_tier_outlives_a_restart(tiers: Tiers) -> None:
    """Clean or not, what was moved is read; the broker finds again up to where it had copied."""
    topic = tiers.all_moved("lasting", 7)
    for clean in (True, False):
        tiers.stop(clean=clean)
        tiers.start()
        until(lambda: not tiers.wire().call(ApiKey.METADATA, 12, MetadataRequest(None)).topics[0].error_code)
        until(lambda: tiers.offsets(topic, EARLIEST, EARLIEST_LOCAL, LATEST_TIERED) == [0, 7, 6])
        assert [tiers.fetched(topic, each) for each in (0, 5, 6)] == [[0, 1], [5], [6]]
    assert records_deleted(tiers.wire(), topic, 3).low_watermark == 3
    tiers.stop()
    tiers.start()
    until(lambda: tiers.offsets(topic, EARLIEST, EARLIEST_LOCAL) == [3, 7])
    until(lambda: bool(batches_of(fetch(tiers.wire(), topic, 3))))  # on Kafka first REPLICA_NOT_AVAILABLE, or nothing
    assert tiers.fetched(topic, 3) == [3]
