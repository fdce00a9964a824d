"""The versions that clients are given, and metrics."""

import pytest
from confluent_kafka import Producer

import understudy
from protocol.apis import ApiKey
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.metadata import MetadataRequest
from tests.control.harness import ControlPlane
from tests.wire import Wire


def listed(wire: Wire) -> dict[int, tuple[int, int]]:
    """API key -> versions, as ApiVersions lists them."""
    answer = wire.call(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("walker", "1"))
    return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}


def test_new_connections_are_given_other_versions(plane: ControlPlane) -> None:
    """And served no others; existing connections notice nothing."""
    old = plane.server.wire()
    before = listed(old)
    plane.kafka.versions.set(InitProducerId=(0, 3), Metadata=(1, 8))
    new = plane.server.wire()
    after = listed(new)
    assert (after[ApiKey.INIT_PRODUCER_ID], after[ApiKey.METADATA]) == ((0, 3), (1, 8))
    assert listed(old) == before
    assert old.call(ApiKey.METADATA, 12, MetadataRequest(None)).brokers
    assert new.call(ApiKey.METADATA, 8, MetadataRequest(None)).brokers
    new.send(ApiKey.METADATA, 9, MetadataRequest(None))
    new.check_closed()
    assert plane.kafka.versions.show()["InitProducerId"] == understudy.results.VersionRange(0, 3)


def test_an_api_can_be_taken_away(plane: ControlPlane) -> None:
    """Not listed, not served; {} gives everything back, as a reset does that does not keep it."""
    plane.http("PUT", "/v1/versions", {"DescribeCluster": None})
    wire = plane.server.wire()
    assert ApiKey.DESCRIBE_CLUSTER not in listed(wire)
    assert plane.http("GET", "/v1/versions")["apis"]["DescribeCluster"] is None
    plane.http("POST", "/v1/reset", {"keep": ["versions"]})
    assert ApiKey.DESCRIBE_CLUSTER not in listed(plane.server.wire())
    plane.http("PUT", "/v1/versions", {})
    assert ApiKey.DESCRIBE_CLUSTER in listed(plane.server.wire())


def test_a_release_is_played_to_new_connections(plane: ControlPlane) -> None:
    """Its versions, its features; overrides of single APIs go on top, as on a cluster that is half upgraded."""
    old = plane.server.wire()
    before = listed(old)
    plane.kafka.versions.set(as_version="2.8", EndTxn=(0, 1))
    wire = plane.server.wire()
    after = listed(wire)
    assert (after[ApiKey.METADATA], after[ApiKey.END_TXN]) == ((0, 11), (0, 1))
    assert ApiKey.DESCRIBE_TRANSACTIONS not in after
    assert listed(old) == before
    assert plane.http("GET", "/v1/versions")["as_version"] == "2.8"
    assert plane.http("GET", "/v1/cluster")["as_version"] == "2.8"
    wire.send(ApiKey.METADATA, 12, MetadataRequest(None))
    wire.check_closed()
    plane.http("PUT", "/v1/versions", {})
    assert listed(plane.server.wire()) == before


def test_null_is_the_release_of_the_start_with_versions_of_apis_too(plane: ControlPlane) -> None:
    """Rather than the one that is emulated at the moment."""
    plane.kafka.versions.set(as_version="3.9")
    changed = plane.http("PUT", "/v1/versions", {"as_version": None, "EndTxn": {"min": 0, "max": 3}})
    assert (changed["as_version"], changed["apis"]["EndTxn"]) == ("4.4", {"min": 0, "max": 3})


def test_features_follow_the_release(plane: ControlPlane) -> None:
    """transaction.version came with 4.0, features with 3.3 (before, ZooKeeper had none)."""

    def features() -> dict[str, int]:
        answer = plane.server.wire().call(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("walker", "1"))
        return {each.name: each.max_version_level for each in answer.finalized_features}

    assert features()["transaction.version"] == 2
    plane.kafka.versions.set(as_version="3.9")
    assert features() == {"metadata.version": 21}
    plane.kafka.versions.set(as_version="3.2")
    assert features() == {}
    plane.kafka.versions.set(as_version="4.0")
    assert features() == {"group.version": 1, "metadata.version": 25, "transaction.version": 2}
    plane.http("POST", "/v1/reset")
    assert features()["metadata.version"] == 33


def test_the_shell_sets_and_shows_versions(plane: ControlPlane) -> None:
    """`ctl versions set` and `show` print the versions as JSON."""
    plane.ctl("versions", "set", "--apis", '{"EndTxn": {"min": 0, "max": 3}}')
    assert plane.ctl("versions", "show")["apis"]["EndTxn"] == {"min": 0, "max": 3}


@pytest.mark.verb("versions set")
def test_a_real_client_uses_the_versions_that_it_is_given(plane: ControlPlane) -> None:
    """Produce in version 3 to 5, seen in the journal."""
    plane.kafka.versions.set(Produce=(0, 5))
    producer = Producer({"bootstrap.servers": plane.bootstrap, "linger.ms": 0})
    producer.produce("t", b"v")
    assert producer.flush(60) == 0
    assert {entry.version for entry in plane.kafka.journal.find(api="Produce")} <= {3, 4, 5}


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ({"as_version": "2.9"}, 422, "one of 0.11, 1.0"),
        ({"InitProducrId": {"min": 0, "max": 1}}, 422, "did you mean InitProducerId"),
        ({"InitProducerId": {"min": 0}}, 422, "needs"),
        ({"InitProducerId": {"min": 2, "max": 1}}, 422, "versions 0 to"),
        ({"InitProducerId": {"min": 0, "max": 99}}, 422, "versions 0 to"),
    ],
)
def test_versions_make_sense(plane: ControlPlane, body: dict[str, object], status: int, text: str) -> None:
    """A release that was; versions within what is served."""
    actual_status, problem = plane.refused("PUT", "/v1/versions", body)
    assert actual_status == status
    assert text in problem["detail"]


def test_metrics_are_prometheus_text(plane: ControlPlane) -> None:
    """Requests by API, state of the cluster, ends of logs; also through Python and the shell."""
    plane.kafka.topics["t"].write({"value": "a", "partition": 1})
    listed(plane.server.wire())
    text = plane.kafka.metrics()
    assert 'understudy_requests_total{api="ApiVersions"}' in text
    assert 'understudy_log_end_offset{partition="1",topic="t"} 1.0' in text
    assert "# TYPE understudy_request_seconds_total counter" in text
    assert "understudy_brokers_up 1.0" in text
    assert "understudy_brokers_up 1.0" in plane.ctl_text("metrics")
