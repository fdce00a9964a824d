"""Verbs of the schema registry, beside the client of confluent-kafka."""

from collections.abc import Iterator

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError

from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane
from understudy import ControlError

STRING = Schema('"string"', "AVRO")


@pytest.fixture
def beside(plane_of: ControlPlaneOf) -> ControlPlane:
    """A cluster with a registry."""
    return plane_of(schema_registry=0)


@pytest.fixture
def client(beside: ControlPlane) -> Iterator[SchemaRegistryClient]:
    """A client that tries each request once."""
    with SchemaRegistryClient({"url": beside.kafka.registry.show().url, "max.retries": 0}) as registry_client:
        yield registry_client


@pytest.mark.verb("registry show", "registry fail", "registry faults", "registry heal")
def test_a_client_meets_the_faults_of_the_registry(beside: ControlPlane, client: SchemaRegistryClient) -> None:
    """As often as was asked for, and on the paths that were named; a reset removes them."""
    registry = beside.kafka.registry
    registry.fail(status=50002, message="too slow", path="/subjects", skip=1)
    assert client.get_subjects() == []
    with pytest.raises(SchemaRegistryError, match="too slow") as refused:
        client.register_schema("s", STRING)
    assert (refused.value.http_status_code, refused.value.error_code) == (500, 50002)
    assert client.register_schema("s", STRING) == 1
    (fault,) = registry.faults()
    assert (fault.hits, fault.skip, fault.path) == (1, 0, "/subjects")
    info = registry.show()
    assert (info.subjects, info.versions) == (1, 1)
    registry.heal()
    assert registry.faults() == []
    registry.fail(status=503, times=0)
    for _ in range(3):
        with pytest.raises(SchemaRegistryError):
            client.get_subjects()
    beside.kafka.reset()
    assert client.get_subjects() == []


def test_an_answer_waits_for_the_clusters_clock(beside: ControlPlane, client: SchemaRegistryClient) -> None:
    """A delay of an hour is over when the clock was pushed by an hour."""
    kafka = beside.kafka
    kafka.clock.freeze()
    kafka.registry.fail(delay_ms=3_600_000)
    kafka.clock.advance(hours=1)
    kafka.clock.thaw()
    kafka.registry.heal()
    kafka.registry.fail(delay_ms=1)
    assert client.get_subjects() == []
    assert [each.hits for each in kafka.registry.faults()] == [1]


def test_wrong_faults_are_refused(beside: ControlPlane, plane: ControlPlane) -> None:
    """One sentence; without a registry the option that starts one is named."""
    for wrong, sentence in (
        ({}, "needs 'status' or 'delay_ms'"),
        ({"status": 20_000}, "from 400 to 599"),
        ({"status": 9}, "400"),
        ({"method": "FETCH", "status": 500}, "GET"),
    ):
        with pytest.raises(ControlError, match=sentence) as refused:
            beside.kafka.registry.fail(**wrong)
        assert refused.value.status == 422
    for ask in (plane.kafka.registry.show, plane.kafka.registry.faults, plane.kafka.registry.heal):
        with pytest.raises(ControlError, match="--schema-registry PORT") as refused:
            ask()
        assert refused.value.status == 409
    with pytest.raises(ControlError, match="--schema-registry PORT"):
        plane.kafka.registry.fail(status=500)
