"""A partition over several brokers, each with a log in memory: replication, leadership, who waits (core F.8, F.9)."""

from typing import Any
from uuid import UUID

import pytest

from broker.coordination.metadata.image import Partition
from broker.replication.partition import ReplicatedPartition
from broker.time.clock import ManualClock
from protocol.errors import ErrorCode, KafkaError
from storage.files import MemoryFiles
from storage.log.config import LogConfig
from storage.log.context import LogContext
from storage.log.partition_log import PartitionLog
from storage.log_dir import LogDir
from tests.storage.logs import NOW_MS, contents, records_batch

TOPIC_ID = UUID(int=1)


def new_log(broker_id: int) -> PartitionLog:
    """The log of ``foo-0`` on a broker of its own."""
    files = LogDir.open(
        LogContext(MemoryFiles(), sync="never", new_uuid=lambda: UUID(int=broker_id)),
        node_id=broker_id,
        cluster_id="cluster",
        now_ms=NOW_MS,
    )
    return files.create_log("foo", 0, topic_id=TOPIC_ID, config=LogConfig(), now_ms=NOW_MS)


class Bench:
    """A partition led by broker 1 at epoch 0, with a replica on each of the brokers."""

    def __init__(self, brokers: int = 3, *, min_isr: int = 1) -> None:
        self.clock = ManualClock(NOW_MS)
        ids = tuple(range(1, brokers + 1))
        self.partition = ReplicatedPartition("foo", 0, TOPIC_ID, Partition(ids, ids, 1), self.clock)
        self.partition.min_isr = min_isr
        self.every_log = {each: new_log(each) for each in ids}
        self.partition.logs.update(self.every_log)
        self.log(1).epochs.assign(0, 0)

    def log(self, broker_id: int) -> PartitionLog:
        """A broker's log, whether it is up or not."""
        return self.every_log[broker_id]

    def append(self, *values: bytes, broker: int = 1, **options: Any) -> int:
        """The base offset of what a broker has appended."""
        info = self.partition.append(broker, records_batch(*values), NOW_MS, **options)
        return info.base_offset

    def change(self, **fields: Any) -> bool:
        """A new registration; whether the leader or its epoch changed."""
        old = self.partition.state
        fields = {"leader_epoch": old.leader_epoch, "leader": old.leader, "isr": old.isr, **fields}
        return self.partition.apply(Partition(old.replicas, **fields))

    def lead(self, broker_id: int, *isr: int) -> None:
        """Another leader, in the next epoch."""
        self.change(leader=broker_id, isr=isr or (broker_id,), leader_epoch=self.partition.state.leader_epoch + 1)

    def down(self, broker_id: int) -> None:
        """A broker's log is out of reach."""
        self.partition.logs.pop(broker_id)

    def up(self, broker_id: int) -> None:
        """Start a broker again: it follows the leader."""
        self.partition.host(broker_id, self.log(broker_id))
        self.partition.replicate()

    def values(self, broker_id: int) -> list[bytes | None]:
        """What a broker's log holds."""
        return [value for _, _, value in contents(self.log(broker_id))]

    def ends(self) -> list[tuple[int, int]]:
        """High watermark and end of each log."""
        return [(log.high_watermark, log.log_end_offset) for log in self.every_log.values()]


def check_refused(bench: Bench, code: ErrorCode, **options: Any) -> None:
    """An append is refused and leaves nothing."""
    end = bench.log(1).log_end_offset
    with pytest.raises(KafkaError) as caught:
        bench.append(b"x", **options)
    assert caught.value.code is code
    assert bench.log(1).log_end_offset == end


# --- replication -----------------------------------------------------------------------------------------------------


def test_an_append_is_on_all_replicas_in_the_same_step() -> None:
    """An append is on all replicas and committed in the step that made it."""
    bench = Bench()
    assert bench.append(b"a", b"b") == 0
    assert bench.append(b"c") == 2
    assert bench.ends() == [(3, 3)] * 3
    assert bench.values(2) == bench.values(3) == [b"a", b"b", b"c"]


def test_a_follower_that_is_held_back_holds_the_high_watermark() -> None:
    """As long as it is in sync; the records that it misses come when it is released."""
    bench = Bench()
    bench.append(b"a")
    bench.partition.held = frozenset({3})
    bench.append(b"b")
    assert bench.ends() == [(1, 2), (1, 2), (1, 1)]
    bench.partition.held = frozenset()
    bench.partition.replicate()
    assert bench.ends() == [(2, 2)] * 3


def test_a_follower_outside_the_set_does_not_hold_the_high_watermark() -> None:
    """It may lag by any number of records."""
    bench = Bench()
    bench.partition.held = frozenset({3})
    bench.change(isr=(1, 2))
    bench.append(b"a")
    assert bench.ends() == [(1, 1), (1, 1), (0, 0)]


def test_a_broker_that_is_down_holds_the_high_watermark_while_in_sync() -> None:
    """Until the controller takes it out of the set."""
    bench = Bench()
    bench.down(3)
    bench.append(b"a")
    assert bench.ends()[:2] == [(0, 1), (0, 1)]
    bench.change(isr=(1, 2))
    assert bench.ends()[:2] == [(1, 1), (1, 1)]


def test_the_high_watermark_waits_for_enough_replicas() -> None:
    """Below min.insync.replicas it does not move (core D.5.3)."""
    bench = Bench(min_isr=2)
    bench.change(isr=(1,))
    bench.append(b"a")
    assert bench.log(1).high_watermark == 0
    bench.change(isr=(1, 2))
    assert bench.log(1).high_watermark == 1


def test_a_follower_behind_the_leaders_start_begins_there() -> None:
    """What the leader has deleted cannot be copied."""
    bench = Bench()
    bench.down(3)
    bench.change(isr=(1, 2))
    for value in (b"a", b"b", b"c"):
        bench.append(value)
    assert bench.partition.delete_records_before(1, 2) == 2
    bench.up(3)
    assert (bench.log(3).log_start_offset, bench.log(3).log_end_offset) == (2, 3)
    assert bench.values(3) == [b"c"]


def test_long_catching_up_is_done_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each read is bounded; the follower ends with all of it."""
    monkeypatch.setattr("broker.replication.partition._REPLICATION_BYTES", 100)
    bench = Bench(2)
    bench.down(2)
    bench.change(isr=(1,))
    for number in range(20):
        bench.append(b"%d" % number)
    bench.up(2)
    assert bench.values(2) == bench.values(1)


# --- appending -------------------------------------------------------------------------------------------------------


def test_only_the_leader_appends() -> None:
    """NOT_LEADER_OR_FOLLOWER elsewhere."""
    check_refused(Bench(), ErrorCode.NOT_LEADER_OR_FOLLOWER, broker=2)


@pytest.mark.parametrize(("min_isr", "isr", "refused"), [(2, (1,), True), (2, (1, 2), False), (9, (1, 2, 3), False)])
def test_acks_all_needs_enough_replicas_in_sync(min_isr: int, isr: tuple[int, ...], refused: bool) -> None:
    """Never more than there are replicas (core D.5.1)."""
    bench = Bench(min_isr=min_isr)
    bench.change(isr=isr)
    if refused:
        check_refused(bench, ErrorCode.NOT_ENOUGH_REPLICAS, all_in_sync=True)
    else:
        assert bench.append(b"x", all_in_sync=True) == 0


def test_acks_one_does_not_ask_who_is_in_sync() -> None:
    """min.insync.replicas counts for acks=-1 alone (core D.5.4)."""
    bench = Bench(min_isr=3)
    bench.change(isr=(1,))
    assert bench.append(b"x") == 0


def test_markers_need_enough_replicas_too() -> None:
    """They are written with acks=-1, but for those of a group coordinator."""
    bench = Bench(min_isr=2)
    bench.change(isr=(1,))
    with pytest.raises(KafkaError) as caught:
        bench.partition.append_marker(1, 5, 0, True, 0, 2, NOW_MS)
    assert caught.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert bench.partition.append_marker(1, 5, 0, True, 0, 2, NOW_MS, all_in_sync=False).last_offset == 0


def test_batches_carry_the_leaders_epoch() -> None:
    """On the followers too (core B.2.3)."""
    bench = Bench()
    bench.append(b"a")
    bench.lead(2, 1, 2, 3)
    bench.append(b"b", broker=2)
    for log in bench.every_log.values():
        assert [batch.partition_leader_epoch for batch in log.reader.replay_from(0)] == [0, 1]


# --- leadership ------------------------------------------------------------------------------------------------------


def test_a_new_leaders_epoch_begins_at_its_end() -> None:
    """Clients find out where histories part (core F.8)."""
    bench = Bench()
    bench.append(b"a", b"b")
    bench.lead(2, 1, 2, 3)
    assert bench.log(2).epochs.end_offset_for(0, bench.log(2).log_end_offset) == (0, 2)
    assert bench.log(2).epochs.end_offset_for(1, bench.log(2).log_end_offset) == (1, 2)


def test_an_old_leader_loses_what_no_other_replica_has() -> None:
    """It had appended more than its followers when it went; the new leader's log is the truth."""
    bench = Bench(2)
    bench.append(b"a")
    bench.down(2)
    bench.append(b"lost")
    bench.down(1)
    bench.up(2)
    bench.lead(2)
    bench.append(b"kept", broker=2)
    bench.up(1)
    assert bench.values(1) == bench.values(2) == [b"a", b"kept"]


def test_a_follower_that_came_before_its_leader_is_cut_when_the_leader_comes() -> None:
    """Its history parts from the leader's, who is down when it starts; then it must not go on from there."""
    bench = Bench(2)
    bench.append(b"both")
    bench.down(2)
    bench.append(b"one-1")
    bench.append(b"one-2")
    bench.down(1)
    bench.up(2)
    bench.lead(2)
    for value in (b"two-1", b"two-2", b"two-3"):
        bench.append(value, broker=2)
    bench.down(2)
    bench.up(1)
    bench.up(2)
    bench.partition.replicate()
    assert bench.values(1) == bench.values(2) == [b"both", b"two-1", b"two-2", b"two-3"]


def test_histories_that_part_at_an_older_epoch_meet_again_where_they_parted() -> None:
    """Two unclean elections: the follower's last epoch is one that the leader never had (KIP-101, KIP-279)."""
    bench = Bench(2)
    bench.append(b"both")
    bench.down(2)
    bench.change(isr=(1,))
    for value in (b"one-1", b"one-2", b"one-3", b"one-4"):
        bench.append(value)
    bench.down(1)
    bench.up(2)
    bench.lead(2)
    for value in (b"two-1", b"two-2"):
        bench.append(value, broker=2)
    bench.down(2)
    bench.up(1)
    bench.lead(1)
    bench.up(2)
    assert bench.values(2) == bench.values(1) == [b"both", b"one-1", b"one-2", b"one-3", b"one-4"]


def test_a_leader_that_is_down_leads_nothing() -> None:
    """The registration may be ahead of the brokers."""
    bench = Bench(2)
    bench.down(2)
    bench.lead(2)
    with pytest.raises(KafkaError) as caught:
        bench.partition.led_by(2)
    assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(-1, None), (1, None), (0, ErrorCode.FENCED_LEADER_EPOCH), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_epochs_fence(epoch: int, code: ErrorCode | None) -> None:
    """Older, newer, right, and not asked for (core B.2.5)."""
    bench = Bench()
    bench.lead(1, 1, 2, 3)
    if code is None:
        bench.partition.check_epoch(2, epoch)
        assert bench.partition.state.leader_epoch == 1
        return
    with pytest.raises(KafkaError) as caught:
        bench.partition.check_epoch(2, epoch)
    assert caught.value.code is code


def test_an_offline_log_is_refused_before_a_wrong_epoch() -> None:
    """KAFKA_STORAGE_ERROR, at any epoch that a client names (core E.2)."""
    bench = Bench()
    bench.lead(1, 1, 2, 3)
    bench.log(2).context.offline = OSError("gone")
    for epoch in (0, 2):
        with pytest.raises(KafkaError) as caught:
            bench.partition.check_epoch(2, epoch)
        assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR


# --- records deleted, waiting ----------------------------------------------------------------------------------------


def test_records_are_deleted_on_all_replicas() -> None:
    """The low watermark is the lowest log start (core E.10)."""
    bench = Bench()
    bench.append(b"a", b"b", b"c")
    assert bench.partition.delete_records_before(1, -1) == bench.partition.low_watermark(1) == 3
    assert [log.log_start_offset for log in bench.every_log.values()] == [3] * 3


def test_uncommitted_records_are_not_deleted() -> None:
    """Beyond the high watermark there is nothing to delete yet."""
    bench = Bench()
    bench.append(b"a")
    bench.partition.held = frozenset({3})
    bench.append(b"b")
    with pytest.raises(KafkaError) as caught:
        bench.partition.delete_records_before(1, 2)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_who_watches_hears_of_every_move() -> None:
    """Appends, leaders, deleted records; nothing after the end of the watch."""
    bench, heard = Bench(), []
    bench.partition.watch(lambda: heard.append(bench.log(1).high_watermark))
    (watcher,) = bench.partition._watchers
    bench.append(b"a")
    assert heard[-1] == 1
    count = len(heard)
    bench.lead(2, 1, 2, 3)
    assert len(heard) > count
    count = len(heard)
    bench.partition.delete_records_before(2, 1)
    assert len(heard) > count
    bench.partition.unwatch(watcher)
    count = len(heard)
    bench.append(b"b", broker=2)
    assert len(heard) == count


def test_a_change_that_moves_no_leader_is_false() -> None:
    """The in-sync set alone does not count."""
    bench = Bench()
    assert bench.change(isr=(1, 2)) is False
    assert bench.change(leader=2, leader_epoch=1) is True


def test_records_are_deleted_where_a_replica_s_disk_has_failed() -> None:
    """It is not written to; the others begin at the new start."""
    bench = Bench()
    bench.append(b"a", b"b")
    failed = bench.log(2)
    failed.context.offline = OSError(5, "Input/output error")
    failed.context.files.fail_next_write()  # type: ignore[attr-defined]  # a tree in memory
    bench.partition.delete_records_before(1, 1)
    assert [log.log_start_offset for log in bench.every_log.values()] == [1, 0, 1]
