"""Kafka's own tools, and so the Java Admin client, with `bootstrap.controllers`."""

import re
from collections.abc import Iterator

import pytest

from tests.serving import start
from tests.storage.kafka_tools import java, need_kafka
from tests.through_proxy import WayTo

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def listening() -> Iterator[str]:
    """The address where a controller listens."""
    need_kafka()
    server = start(controller_port=0)
    own = server.ready.brokers[0]["listeners"][1]
    yield f"{own['host']}:{own['port']}"
    server.stop()


@pytest.fixture(scope="module")
def controller(listening: str, way_to: WayTo) -> str:
    """The address that clients are given."""
    return way_to(listening)


def test_the_tools_find_the_quorum_by_its_controller(controller: str, listening: str) -> None:
    """kafka-metadata-quorum describe --status, and kafka-cluster list-endpoints.

    DescribeQuorum has the quorum's own addresses, also through a proxy.
    """
    status = java(
        "org.apache.kafka.tools.MetadataQuorumCommand", *("--bootstrap-controller", controller), "describe", "--status"
    )
    assert re.search(r"LeaderId: +1\n", status)
    assert f'"endpoints": ["CONTROLLER://{listening}"]' in status
    listed = java("org.apache.kafka.tools.ClusterTool", "list-endpoints", "--bootstrap-controller", controller)
    port = controller.rpartition(":")[2]
    assert re.search(rf"1 +127\.0\.0\.1 +{port} +null +controller", listed)


def test_features_and_settings_change_at_the_controller(controller: str) -> None:
    """kafka-features and kafka-configs change what they name through the controller's own listener."""
    at = ("--bootstrap-controller", controller)
    feature, config = "org.apache.kafka.tools.FeatureCommand", "kafka.admin.ConfigCommand"
    assert "group.version was downgraded to 0." in java(feature, *at, "downgrade", "--feature", "group.version=0")
    assert re.search(r"Feature: group.version.*FinalizedVersionLevel: 0", java(feature, *at, "describe"))
    default = ("--entity-type", "brokers", "--entity-default")
    java(config, *at, "--alter", *default, "--add-config", "log.retention.ms=100000")
    assert "log.retention.ms=100000" in java(config, *at, "--describe", *default)
