"""Rounds by the clock: the cleaner works in pieces, and what is deleted is forgotten."""

import asyncio
from pathlib import Path

import pytest

from broker.cluster import reset
from broker.cluster.cluster import Cluster
from broker.cluster.maintenance import Maintenance
from broker.replication.partition import ReplicatedPartition
from protocol.apis import ApiKey
from protocol.messages.metadata import MetadataRequest
from protocol.records.records import Record, build_batch, read_records
from storage.files import MemoryFiles
from tests.scenarios.transactions.harness import Stage, running

BACKOFF_MS = 15_000
COMPACTED = {
    "log.cleanup.policy": "compact",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.segment.bytes": "1048576",
    "auto.create.topics.enable": "true",
}


def fill(stage: Stage, megabytes: int, size: int = 16_000) -> ReplicatedPartition:
    """A few keys again and again, in batches of 64 kB."""
    partition = stage.cluster.partitions["t", 0]
    now_ms = stage.clock.now_ms()
    for _ in range(megabytes * 16):
        records = [Record(number, now_ms, b"k%d" % number, bytes(size)) for number in range(64_000 // size)]
        partition.append(1, build_batch(records), now_ms)
    return partition


def live_records(partition: ReplicatedPartition) -> int:
    """How many records are there."""
    return sum(len(list(read_records(batch))) for batch in partition.logs[1].reader.replay_from(0))


async def test_the_cleaner_lets_others_run_in_between() -> None:
    """A large log is not done in one turn; what is appended meanwhile stays; in the end it is clean."""
    async with running(COMPACTED, topics={"t": 1}) as stage:
        partition = fill(stage, 4)
        whole = live_records(partition)
        await stage.pass_time(BACKOFF_MS)
        assert live_records(partition) == whole
        partition.append(1, build_batch([Record(0, stage.clock.now_ms(), b"new", b"")]), stage.clock.now_ms())
        await stage.pass_time(1000)
        assert live_records(partition) < whole / 3
        assert any(record.key == b"new" for b in partition.logs[1].reader.replay_from(0) for record in read_records(b))


async def test_a_topic_that_is_deleted_while_it_is_cleaned_does_no_harm(tmp_path: Path) -> None:
    """The directory stays online, and a topic of the same name is cleaned from its start."""
    async with running(COMPACTED, topics={"t": 1}, data_dir=tmp_path) as stage:
        fill(stage, 4)
        await stage.pass_time(BACKOFF_MS + 2000)
        assert "t 0 " in (tmp_path / "cleaner-offset-checkpoint").read_text()
        fill(stage, 4)
        await stage.pass_time(BACKOFF_MS - 2000)
        machine = stage.cluster.metadata.machine
        topic_id = stage.cluster.image.topics["t"].id
        stage.cluster.metadata.submit(lambda _: machine.delete_topics([topic_id]))
        assert "t 0 " not in (tmp_path / "cleaner-offset-checkpoint").read_text()
        await stage.pass_time(2 * BACKOFF_MS)
        assert not stage.cluster.nodes[1].metadata_dir.is_offline


async def test_a_forced_round_ends_the_one_under_way_first() -> None:
    """So that none takes the other's files away."""
    async with running(COMPACTED, topics={"t": 1}) as stage:
        partition = fill(stage, 4)
        await stage.pass_time(BACKOFF_MS)
        await stage.cluster.maintenance.run_cleaner(force=True)
        log = partition.logs[1]
        assert live_records(partition) <= 4 + log.segments.active.size // 16_000
        await stage.pass_time(1000)
        assert log.context.offline is None


@pytest.mark.slow
async def test_clients_are_served_while_a_round_that_was_asked_for_runs() -> None:
    """Request after request is answered before a round over small records ends; of two, one finds nothing left."""
    async with running(COMPACTED, topics={"t": 1}) as stage:
        partition, wire = fill(stage, 4, size=100), await stage.connect()
        rounds = [asyncio.create_task(stage.cluster.maintenance.run_cleaner(force=True)) for _ in range(2)]
        answered = 0
        while not all(each.done() for each in rounds):
            await wire.call(ApiKey.METADATA, 12, MetadataRequest([]))
            answered += 1
        assert sorted(each.result() for each in rounds) == [0, 1]
        assert live_records(partition) <= 640 + partition.logs[1].segments.active.size // 100
        assert answered >= 10


async def test_a_round_that_was_asked_for_ends_with_the_cluster() -> None:
    """Its caller is answered that nothing more was cleaned."""
    async with running(COMPACTED, topics={"t": 1}) as stage:
        fill(stage, 4)
        task = asyncio.create_task(stage.cluster.maintenance.run_cleaner(force=True))
        await asyncio.sleep(0)
        stage.cluster.maintenance.stop()
        assert await asyncio.wait_for(task, 60) == 0


async def test_what_waits_for_flush_ms_is_synced_in_time(tmp_path: Path) -> None:
    """A flush by its own time, independent of other rounds, and none while there is nothing new."""
    async with running({"log.flush.interval.ms": "700"}, topics={"t": 1}, data_dir=tmp_path) as stage:
        log = fill(stage, 1).logs[1]
        await stage.pass_time(699)
        assert log.bounds.recovery_point == 0
        await stage.pass_time(1)
        async with asyncio.timeout(60):
            while log.bounds.recovery_point != log.log_end_offset:
                await stage.pass_time(0)
        assert fill(stage, 1).logs[1] is log
        await stage.pass_time(700)
        async with asyncio.timeout(60):
            while log.bounds.recovery_point != log.log_end_offset:
                await stage.pass_time(0)


async def test_a_closed_segment_is_synced_by_another_thread(tmp_path: Path) -> None:
    """understudy.sync=roll: the recovery point follows once it is durable."""
    async with running({"log.segment.bytes": "1048576"}, topics={"t": 1}, data_dir=tmp_path) as stage:
        log = fill(stage, 3).logs[1]
        assert (len(log.segments), log.bounds.recovery_point) == (3, 0)
        async with asyncio.timeout(60):
            while log.bounds.recovery_point != log.segments.active.base_offset:
                await stage.pass_time(1)


DAY_MS = 24 * 3600 * 1000


class Counted(Maintenance):
    """Notes the rounds of retention."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.rounds_ms: list[int] = []
        self.deletions_ms: list[int] = []

    def run_retention(self) -> int:
        """Note the time, and whether anything was deleted."""
        deleted = super().run_retention()
        now_ms = self._cluster.clock.now_ms()
        self.rounds_ms.append(now_ms)
        if deleted:
            self.deletions_ms.append(now_ms)
        return deleted


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cluster notes its rounds."""
    monkeypatch.setattr("broker.cluster.cluster.Maintenance", Counted)


def rounds_of(stage: Stage) -> Counted:
    """What was noted."""
    maintenance = stage.cluster.maintenance
    assert isinstance(maintenance, Counted)
    return maintenance


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("on_disk", [False, True])
async def test_a_century_without_clients_costs_what_happens_in_it(tmp_path: Path, on_disk: bool) -> None:
    """Rounds that would find nothing are left out; the records' week ends all the same."""
    async with running({}, topics={"t": 3}, data_dir=tmp_path if on_disk else None) as stage:
        log = fill(stage, 1).logs[1]
        await stage.pass_time(6 * DAY_MS)
        assert log.log_start_offset == 0
        assert len(rounds_of(stage).rounds_ms) < 5
        await stage.pass_time(36_500 * DAY_MS)
        assert log.log_start_offset == log.log_end_offset
        assert len(rounds_of(stage).rounds_ms) < 12


@pytest.mark.usefixtures("counted")
async def test_retention_in_a_long_push_comes_when_it_is_due() -> None:
    """At the first round after the records' week, as it does when time goes in small steps."""
    after_ms = []
    for step_ms in (30 * DAY_MS, DAY_MS // 4):
        async with running({}, topics={"t": 1}) as stage:
            began_ms = stage.clock.now_ms()
            fill(stage, 1)
            for _ in range(30 * DAY_MS // step_ms):
                await stage.pass_time(step_ms)
            (deleted_ms,) = rounds_of(stage).deletions_ms
            after_ms.append(deleted_ms - began_ms)
    assert abs(after_ms[0] - after_ms[1]) < 60_000
    assert 7 * DAY_MS < after_ms[0] <= 7 * DAY_MS + 300_000 + 60_000


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("how", ["restored", "killed"])
async def test_deleted_records_do_not_come_back(how: str, on_disk: bool, tmp_path: Path) -> None:
    """A log begins where it did, also within a segment: after a restore, and seconds later after a kill."""
    async with running(topics={"t": 1}, data_dir=tmp_path if on_disk else None) as stage:
        cluster, now_ms = stage.cluster, stage.clock.now_ms()
        for value in (b"a", b"b", b"c"):
            cluster.partitions["t", 0].append(1, build_batch([Record(0, now_ms, None, value)]), now_ms)
        cluster.partitions["t", 0].delete_records_before(1, 2)
        if how == "restored":
            await reset.restore(cluster, cluster.snapshots.kept[await reset.take_snapshot(cluster)])
        else:
            await stage.pass_time(cluster.settings.long("replica.high.watermark.checkpoint.interval.ms"))
            cluster.lifecycle.kill(cluster.nodes[1])
            await cluster.lifecycle.start(cluster.nodes[1])
        log = cluster.partitions["t", 0].logs[1]
        assert (log.log_start_offset, log.high_watermark) == (2, 3)


async def test_retention_goes_on_at_the_other_brokers_where_a_directory_fails() -> None:
    """Once it is offline nothing is tried there any more."""
    async with running(brokers=2, topics={"t": 2}) as stage:
        partitions = {each.state.leader: each for each in stage.cluster.partitions.values() if each.topic == "t"}
        for broker_id, partition in partitions.items():
            partition.append(broker_id, build_batch([Record(0, 1, None, b"old")]), stage.clock.now_ms())
        (files,) = stage.cluster.nodes[1].files
        assert isinstance(files, MemoryFiles)
        files.fail_next_write()
        assert stage.cluster.maintenance.run_retention() == 1
        assert [partitions[each].logs[each].log_start_offset for each in (1, 2)] == [0, 1]
        assert stage.cluster.maintenance.run_retention() == 0
        logs = stage.cluster.nodes[1].metadata_dir
        assert (logs.context.offline is None, logs.retention_due_ms()) == (False, None)


def led(stage: Stage) -> dict[int, tuple[int, int]]:
    """Leader and leader epoch of each partition of t."""
    return {
        index: (each.leader, each.leader_epoch) for index, each in stage.cluster.image.topics["t"].partitions.items()
    }


@pytest.mark.parametrize("enabled", ["true", "false"])
async def test_leaders_return_to_their_preferred_replicas(enabled: str) -> None:
    """Every leader.imbalance.check.interval.seconds, if auto.leader.rebalance.enable."""
    settings = {"auto.leader.rebalance.enable": enabled, "leader.imbalance.check.interval.seconds": "60"}
    async with running({**settings, "default.replication.factor": "3"}, brokers=3, topics={"t": 3}) as stage:
        index, (broker, epoch) = next(iter(led(stage).items()))
        await stage.restart(broker, clean=True)
        other = led(stage)[index]
        await stage.pass_time(59_999)
        assert (led(stage)[index], other[0] != broker, other[1]) == (other, True, epoch + 1)
        await stage.pass_time(1)
        assert led(stage)[index] == ((broker, epoch + 2) if enabled == "true" else other)
