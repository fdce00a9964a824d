"""Consumers in racks, asked of three brokers of a real Kafka and of ours (KIP-392)."""

from pathlib import Path

import pytest

from comparison.target import Target
from tests.clients.targets import oracle_release
from tests.differential.cluster import KafkaCluster
from tests.scenarios.core.racks import RACKS, SETTINGS, Answer, answers, fill, wait_for_replicas
from tests.serving import Server, start
from tests.storage.kafka_tools import need_kafka

pytestmark = [pytest.mark.interop, pytest.mark.timeout(240)]


def answers_of(addresses: tuple[str, ...]) -> list[Answer]:
    """The answers of the brokers 1 to 3."""
    targets = {number: Target(address) for number, address in enumerate(addresses, 1)}
    try:
        fill(targets[1], targets)
        wait_for_replicas(targets)
        return answers(targets)
    finally:
        for each in targets.values():
            each.close()


def test_the_preferred_replica_is_the_same_on_both(tmp_path: Path) -> None:
    """Each topic, broker, rack and offset; some answers prefer another replica, and some do not."""
    need_kafka()
    kafka = KafkaCluster(tmp_path, brokers=3, racks=RACKS, settings=SETTINGS)
    try:
        kafka.start()
        theirs = answers_of(kafka.addresses)
    finally:
        kafka.stop(clean=False)
    ours = Server(start(brokers=3, rack=RACKS, settings=SETTINGS, as_version=oracle_release()))
    try:
        of_ours = answers_of(tuple(ours.process.ready.bootstrap_servers))
    finally:
        ours.process.stop()
    assert of_ours == theirs
    assert {each[-2] for each in theirs} == {-1, 2, 3}
