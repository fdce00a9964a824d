"""Seeded schedules of append, roll, delete, fail, crash and reopen, against a model.

With sync=every, after every crash: every batch that was acknowledged, and nothing else, in order. 300 schedules always,
10,000 nightly. A failing seed is named; `Schedule(seed).run()` repeats it.
"""

from random import Random

import pytest

from protocol.errors import KafkaError
from storage.log import retention
from storage.log.config import LogConfig
from storage.log.context import SYNC_EVERY
from storage.log.partition_log import PartitionLog
from tests.storage.logs import NOW_MS, Tree, contents, records_batch

SCHEDULES, NIGHTLY_SCHEDULES = 300, 10_000
GROUP = 50
STEPS = 60
PARTITIONS = 2
CONFIG = LogConfig(internal_segment_bytes=700, index_interval_bytes=150, segment_index_bytes=96, retention_bytes=3000)


class Schedule:
    """One run. The model: per partition all values that were acknowledged."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.tree = Tree(None, sync=SYNC_EVERY)
        self.tree.config = CONFIG
        self.values: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        self.crashes = 0

    def run(self) -> None:
        """All steps, then one more crash."""
        self.tree.open()
        for _ in range(STEPS):
            self.step()
        self.crash()

    def log(self, partition: int) -> PartitionLog:
        """A partition's log."""
        assert self.tree.dir is not None
        return self.tree.dir.create_log("foo", partition, config=CONFIG, now_ms=NOW_MS)

    def step(self) -> None:
        """Do something. A refusal takes the directory offline: then only a crash helps."""
        assert self.tree.dir is not None
        if self.tree.dir.context.offline is not None or self.chance.random() < 0.05:
            self.crash()
            return
        if self.chance.random() < 0.08:
            self.plan_failure()
        partition = self.chance.randrange(PARTITIONS)
        try:
            log = self.log(partition)
            match self.chance.randrange(12):
                case 0:
                    log.roll(NOW_MS)
                case 1:
                    offset = self.chance.randint(log.log_start_offset, log.high_watermark)
                    log.delete_records_before(offset)
                case 2:
                    retention.run(log, NOW_MS)
                case 3:
                    self.tree.dir.checkpoint_recovery_points()
                case 4:
                    self.tree.dir.checkpoint_log_starts()
                case 5:
                    self.tree.dir.remove_due(NOW_MS + 10**6)
                case _:
                    self.append(log, partition)
        except KafkaError:
            assert self.tree.dir.context.offline is not None

    def plan_failure(self) -> None:
        """The next write is refused or torn, or the next sync fails."""
        if self.chance.random() < 0.3:
            self.tree.memory.fail_next_sync()
        else:
            self.tree.memory.fail_next_write(keep=self.chance.choice([None, 0, 5, 61, 90]))

    def append(self, log: PartitionLog, partition: int) -> None:
        """One batch; acknowledged only if nothing was raised."""
        values = [bytes([self.chance.randrange(256)]) * self.chance.randrange(1, 60) for _ in range(1, 4)]
        producer = {"producer_id": partition, "producer_epoch": 0, "base_sequence": len(self.values[partition])}
        batch = records_batch(*values, **producer) if partition else records_batch(*values)  # type: ignore[arg-type]
        info = log.append_as_leader(batch, leader_epoch=self.crashes, now_ms=NOW_MS)
        assert info.base_offset == len(self.values[partition])
        self.values[partition] += values
        log.advance_high_watermark(log.log_end_offset)

    def crash(self) -> None:
        """Stop in one of three ways, open again, compare."""
        kind = self.chance.choice(["power", "power", "kill", "clean"])
        assert self.tree.dir is not None
        logs = [self.tree.dir.get("foo", partition) for partition in range(PARTITIONS)]
        starts = [0 if log is None else log.log_start_offset for log in logs]
        self.tree.stop(clean=kind == "clean")
        if kind == "power":
            self.tree.memory = self.tree.memory.crash(lambda unsynced: self.chance.randint(0, unsynced))
        else:
            self.tree.memory = self.tree.memory.snapshot()
        self.crashes += 1
        self.tree.open()
        for partition in range(PARTITIONS):
            self.compare(partition, starts[partition])

    def compare(self, partition: int, start: int) -> None:
        """The log holds what was acknowledged. Records below a start that was not written down may come back."""
        log = self.log(partition)
        values = self.values[partition]
        assert log.log_start_offset <= start
        assert (log.log_end_offset, log.high_watermark <= log.log_end_offset) == (len(values), True)
        expected = [(offset, None, values[offset]) for offset in range(log.log_start_offset, len(values))]
        assert contents(log) == expected
        log.advance_high_watermark(log.log_end_offset)
        if partition and partition in log.producers.producers:
            assert log.producers.producers[partition].last_sequence == len(values) - 1


def broken(first_seed: int, end_seed: int) -> list[str]:
    """What is wrong with the schedules of these seeds."""
    failures = []
    for seed in range(first_seed, end_seed):
        try:
            Schedule(seed).run()
        except AssertionError as error:
            failures.append(f"schedule of seed {seed}: {error}")
    return failures


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("first_seed", range(0, SCHEDULES, GROUP))
def test_what_was_acknowledged_survives_every_crash(first_seed: int) -> None:
    """After any crash a log ends with its last acknowledged record."""
    assert broken(first_seed, first_seed + GROUP) == []


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_what_was_acknowledged_survives_ten_thousand_schedules() -> None:
    """The schedules after those of the test above."""
    assert broken(SCHEDULES, NIGHTLY_SCHEDULES) == []
