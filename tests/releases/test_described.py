"""All settings of brokers and topics, as each release describes them, against what real brokers answered."""

import pytest

from tests.conftest import BrokerWith
from tests.releases.described import Described, describe_all, load
from tests.releases.recording import RUN
from tests.serving import Server
from tools.old_kafka import SETTINGS

RECORDED = load()
SET_THERE = (
    "broker advertised.listeners",
    "broker controller.listener.names",
    "broker controller.quorum.voters",
    "broker log.dirs",
    "broker listener.security.protocol.map",
    "broker node.id",
    "broker process.roles",
    "broker zookeeper.connect",
)
"""Settings that only one of the two brokers was started with."""
KNOWN = {
    "broker log.initial.task.delay.ms": "internal in Kafka, and listed here on purpose",
    "broker log.retention.hours": "up to 2.3 alterable, because log.retention.ms is",
    "broker log.retention.minutes": "likewise",
    "broker log.roll.hours": "likewise",
    "broker log.roll.jitter.hours": "likewise",
    "broker min.insync.replicas": "4.4, which the cluster was started as, has stored it (KIP-966)",
    "topic min.insync.replicas": "likewise",
}
OURS = "broker understudy."


@pytest.fixture
def cluster(broker_with: BrokerWith) -> Server:
    """A broker with id 1 and few settings."""
    return broker_with(settings=SETTINGS)


def differences(expected: Described, described: Described) -> dict[str, tuple[str | None, str | None]]:
    """Setting -> Kafka's description and ours."""
    names = {
        name
        for name in expected.keys() | described.keys()
        if name not in {*SET_THERE, *KNOWN} and not name.startswith(OURS)
    }
    return {
        name: (expected.get(name), described.get(name))
        for name in sorted(names)
        if expected.get(name) != described.get(name)
    }


@pytest.mark.parametrize("name", RUN)
def test_settings_are_described_as_by_a_broker_of_the_release(cluster: Server, name: str) -> None:
    """Names, values, types, sources, synonyms, and whether they can be altered."""
    cluster.control("PUT", "/v1/versions", {"as_version": name})
    assert len(RECORDED[name]) > 150
    assert differences(RECORDED[name], describe_all(cluster.addresses[0])) == {}
