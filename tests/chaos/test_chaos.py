"""Exactly once while everything dies and moves: three copiers, a blow every second, and the output is the input.

2,000 records with the interop suite, 100,000 nightly. A broker is down at a time, killed or stopped; a copier is killed
or left alone; leaders of both topics and the coordinators of the copiers move when all brokers are up, and some take
their time to load. While a killed broker counts as in sync, for a second, commits wait, as on Kafka. What counts in the
end: a read_committed reader finds each record once.
"""

import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import understudy
from tests.chaos.clients import PARTITIONS, Copiers, Feeder, Reader
from tests.through_proxy import WayTo

SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "broker.session.timeout.ms": 1000,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
    "offsets.topic.num.partitions": 8,
    "transaction.state.log.num.partitions": 8,
    "default.replication.factor": 3,
    "min.insync.replicas": 1,
    "transaction.state.log.min.isr": 1,
}


@dataclass
class Mover:
    """Gives partitions other leaders, and the copiers other coordinators."""

    kafka: understudy.Cluster
    chance: random.Random
    leaders: int = 0
    coordinators: int = 0
    refused: int = 0

    def move(self) -> None:
        """One leader and one coordinator; who is not in sync is refused, as in Kafka."""
        topic, partition = self.chance.choice(["source", "sink"]), self.chance.randrange(PARTITIONS)
        copier, loading_ms = f"copier-{self.chance.randrange(3)}", self.chance.choice([0, 0, 300])
        try:
            self.kafka.topics[topic].partitions[partition].move_leader(self.chance.randrange(1, 4))
            self.leaders += 1
            move, broker = self.kafka.coordinators.move, self.chance.randrange(1, 4)
            if self.chance.random() < 0.5:
                move(type="group", key="copiers", broker=broker, loading_ms=loading_ms)
            else:
                move(type="transaction", key=copier, broker=broker, loading_ms=loading_ms)
            self.coordinators += 1
        except understudy.ControlError:
            self.refused += 1


@pytest.fixture
def way_to(request: pytest.FixtureRequest) -> Iterator[WayTo]:
    """The way to the brokers: directly, or through a proxy."""
    way = WayTo(through_proxy=getattr(request, "param", "directly") == "through a proxy")
    yield way
    way.close()


def chaos(count: int, batch: int, shares: int, seconds: int, log: Path, way_to: WayTo) -> tuple[Counter[str], str]:
    """Run it, feeding one of so many shares a second; what was read, and the story in one line."""
    chance = random.Random(count)
    with understudy.start(brokers=3, settings=SETTINGS, topics={"source": PARTITIONS, "sink": PARTITIONS}) as kafka:
        bootstrap = ",".join(way_to.all(*kafka.bootstrap_servers.split(",")))
        feeder = Feeder(bootstrap, count, shares)
        feeder.feed()
        copiers, mover = Copiers(bootstrap, batch, log, chance), Mover(kafka, chance)
        reader = Reader(bootstrap)
        seen: Counter[str] = Counter()
        down: int | None = None
        broken = 0
        next_blow = time.monotonic() + 1
        deadline = time.monotonic() + seconds
        try:
            while True:
                copiers.keep_up()
                values = reader.values()
                seen.update(values)
                if (len(seen) == count and not values) or time.monotonic() > deadline:
                    break
                if time.monotonic() < next_blow:
                    continue
                next_blow = time.monotonic() + 1
                feeder.feed()
                if down is not None:
                    kafka.brokers[down].start()
                    down = None
                elif chance.random() < 0.4:
                    down, broken = chance.randrange(1, 4), broken + 1
                    (kafka.brokers[down].kill if chance.random() < 0.5 else kafka.brokers[down].stop)()
                else:
                    mover.move()
                if chance.random() < 0.3:
                    copiers.kill_one()
        finally:
            for each in (copiers, reader, feeder):
                each.close()
    assert mover.leaders > mover.refused, "hardly anything moved"
    moved = f"{mover.leaders} leaders and {mover.coordinators} coordinators moved, {mover.refused} moves refused"
    return seen, f"{broken} brokers down, {moved}, {copiers.kills} copiers killed, {copiers.starts} started"


def check(count: int, batch: int, shares: int, seconds: int, log: Path, way_to: WayTo) -> None:
    """Each record once."""
    seen, story = chaos(count, batch, shares, seconds, log, way_to)
    sys.stdout.write(f"{count} records: {story}\n")
    twice = {value: times for value, times in seen.items() if times > 1}
    missing = count - len(seen)
    assert not twice, f"{len(twice)} delivered more than once, such as {list(twice.items())[:5]}; {story}"
    assert not missing, f"{missing} of {count} missing; {story}\n{log.read_text()[-2000:]}"


@pytest.mark.interop
@pytest.mark.timeout(420)
@pytest.mark.parametrize("way_to", ["directly", "through a proxy"], indirect=True)
def test_two_thousand_records_come_out_once_each(tmp_path: Path, way_to: WayTo) -> None:
    """The slice of the chaos run that CI has time for."""
    check(2_000, 100, 12, 300, tmp_path / "copiers.log", way_to)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_a_hundred_thousand_records_come_out_once_each(tmp_path: Path, way_to: WayTo) -> None:
    """The whole run: transactions of 750."""
    check(100_000, 750, 120, 1500, tmp_path / "copiers.log", way_to)
