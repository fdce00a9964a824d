"""ACLs and client quotas over HTTP, in Python and in the shell; the brokers obey both."""

import pytest
from confluent_kafka import Producer

from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane
from understudy import results

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


def topics_of(plane: ControlPlane) -> set[str]:
    """The topics that an anonymous librdkafka may describe."""
    producer = Producer({"bootstrap.servers": plane.kafka.bootstrap_servers, "log_level": 0})
    return {name for name, topic in producer.list_topics(timeout=60).topics.items() if topic.error is None}


@pytest.mark.verb("acls add", "acls list", "acls remove")
def test_an_acl_is_obeyed_until_it_is_removed(plane_of: ControlPlaneOf) -> None:
    """The brokers hide a topic from those who may not describe it."""
    plane = plane_of(topics=["orders:1", "bills:1"], settings=AUTHORIZER)
    assert topics_of(plane) == {"orders", "bills"}
    added = plane.kafka.acls.add("User:*", "ALL", "TOPIC", "bil", pattern="PREFIXED", permission="DENY")
    assert topics_of(plane) == {"orders"}
    assert plane.http("GET", "/v1/acls")["enforced"] is True
    assert plane.kafka.acls.list() == [added]
    assert plane.kafka.acls.add("User:*", "ALL", "TOPIC", "bil", pattern="PREFIXED", permission="DENY") == added
    assert added.id in plane.ctl_text("acls", "list")
    assert plane.ctl("acls", "remove", added.id) == {"removed": 1}
    assert topics_of(plane) == {"orders", "bills"}


def test_acls_without_an_authorizer(plane: ControlPlane) -> None:
    """Nothing would obey them: Kafka refuses them as well."""
    code, problem = plane.refused(
        "POST",
        "/v1/acls",
        {"principal": "User:a", "operation": "READ", "resource_type": "TOPIC", "resource_name": "t"},
    )
    assert (code, "authorizer.class.name" in problem["detail"]) == (409, True)
    assert plane.http("GET", "/v1/acls") == {"enforced": False, "acls": []}


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"operation": "ANY"}, "operation"),
        ({"principal": "alice"}, "principal"),
        ({"host": "10.0.0.0/99"}, "10.0.0.0/99"),
        ({"resource_type": "CLUSTER"}, "kafka-cluster"),
    ],
)
def test_an_acl_that_kafka_refuses(plane_of: ControlPlaneOf, changed: dict[str, str], sentence: str) -> None:
    """422 with Kafka's reason; one that differs in this alone is taken."""
    plane = plane_of(settings=AUTHORIZER)
    acl = {"principal": "User:a", "operation": "READ", "resource_type": "TOPIC", "resource_name": "t"}
    code, problem = plane.refused("POST", "/v1/acls", {**acl, **changed})
    assert (code, sentence in problem["detail"]) == (422, True), problem
    assert plane.kafka.acls.list() == []
    plane.http("POST", "/v1/acls", acl)
    for unknown in ("none", "00000000-0000-0000-0000-000000000000"):
        code, problem = plane.refused("DELETE", f"/v1/acls/{unknown}")
        assert (code, "acls list" in problem["detail"]) == (404, True)
    assert len(plane.kafka.acls.list()) == 1


@pytest.mark.verb("quotas set", "quotas list")
def test_a_quota_throttles(plane: ControlPlane) -> None:
    """Set by entity, listed, obeyed, removed; the defaults are those of Kafka's tools."""
    quotas = plane.kafka.quotas
    assert quotas.set({"producer_byte_rate": 100.0}, client_id="slow") == results.Quota(
        client_id="slow", values={"producer_byte_rate": 100.0}
    )
    plane.http(
        "POST", "/v1/quotas", {"user": "<default>", "client_id": "<default>", "quotas": {"request_percentage": 50}}
    )
    assert {(each.user, each.client_id, each.ip) for each in quotas.list()} == {
        (None, "slow", None), ("<default>", "<default>", None)}  # fmt: skip
    producer = Producer({
        "bootstrap.servers": plane.kafka.bootstrap_servers, "client.id": "slow", "linger.ms": 0,
    })  # fmt: skip
    producer.produce("t", bytes(5000))
    assert producer.flush(60) == 0
    (entry,) = plane.kafka.journal.find(api="Produce")
    assert entry.response is not None
    assert entry.response["throttle_time_ms"] > 0
    assert "slow" in plane.ctl_text("quotas", "list")
    plane.kafka.quotas.set({"producer_byte_rate": None}, client_id="slow")
    assert [each.user for each in quotas.list()] == ["<default>"]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"quotas": {"producer_byte_rate": 1}}, "empty client quota entity"),
        ({"quotas": {"speed": 1}, "user": "a"}, "Invalid configuration key speed"),
        ({"quotas": {"producer_byte_rate": 0}, "user": "a"}, "must be greater than 0"),
        ({"quotas": {"connection_creation_rate": 5}, "ip": "no address"}, "not a valid IP"),
        ({"quotas": {}, "user": "a"}, "quotas"),
        ({"quotas": {"producer_byte_rate": "many"}, "user": "a"}, "producer_byte_rate"),
    ],
)
def test_a_quota_that_kafka_refuses(plane: ControlPlane, body: object, sentence: str) -> None:
    """422 with Kafka's reason, and nothing is stored."""
    code, problem = plane.refused("POST", "/v1/quotas", body)
    assert (code, sentence in problem["detail"]) == (422, True), problem
    assert plane.kafka.quotas.list() == []
