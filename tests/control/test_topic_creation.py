"""Topics come and go by the control plane, with the errors that Kafka's controller gives."""

from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]

from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane
from tests.serving import until


@pytest.mark.verb("topics create", "topics delete")
def test_a_topic_is_there_for_a_client_until_it_is_deleted(plane_of: ControlPlaneOf) -> None:
    """With its partitions and settings; clients are answered that a deleted topic does not exist."""
    plane = plane_of(settings={"auto.create.topics.enable": False})
    created = plane.kafka.topics.create("returns", partitions=3, configs={"cleanup.policy": "compact"})
    assert (created.name, [each.leader for each in created.partitions], created.configs) == (
        "returns", [1, 1, 1], {"cleanup.policy": "compact"})  # fmt: skip
    producer, refused = Producer({"bootstrap.servers": plane.bootstrap}), []
    producer.produce("returns", b"v", key=b"k", partition=2, on_delivery=lambda error, _: refused.append(error))
    assert producer.flush(60) == 0
    assert refused == [None]
    resource = ConfigResource(ConfigResource.Type.TOPIC, "returns")
    admin = AdminClient({"bootstrap.servers": plane.bootstrap})
    assert admin.describe_configs([resource])[resource].result(60)["cleanup.policy"].value == "compact"
    plane.kafka.topics["returns"].delete()
    consumer = Consumer({"bootstrap.servers": plane.bootstrap, "group.id": "g"})
    consumer.subscribe(["returns"])
    error = until(lambda: consumer.poll(0.2), "an error").error()
    assert error is not None
    assert error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    consumer.close()
    assert [topic.name for topic in plane.kafka.topics.list() if not topic.internal] == []


def test_ctl_takes_partitions_and_settings_behind_the_name(plane: ControlPlane) -> None:
    """As `understudy serve --topic` does; options override them."""
    topic = plane.ctl("topics", "create", "a:2:cleanup.policy=compact,delete,retention.ms=5")
    assert (len(topic["partitions"]), topic["configs"]) == (
        2,
        {"cleanup.policy": "compact,delete", "retention.ms": "5"},
    )
    assert len(plane.ctl("topics", "create", "b:2", "--partitions", "4")["partitions"]) == 4
    assert plane.ctl("topics", "create", "c", "--configs", "retention.ms=5")["configs"] == {"retention.ms": "5"}
    with pytest.raises(SystemExit):
        plane.ctl("topics", "create", "d:two")
    assert "a  " in plane.ctl_text("topics", "list")


def test_defaults_are_the_clusters(plane_of: ControlPlaneOf) -> None:
    """num.partitions and default.replication.factor."""
    plane = plane_of(brokers=3, settings={"num.partitions": 2, "default.replication.factor": 3})
    topic = plane.http("POST", "/v1/topics", {"name": "a"})
    assert [len(partition["replicas"]) for partition in topic["partitions"]] == [3, 3]


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ({"name": "t"}, 409, "TOPIC_ALREADY_EXISTS: Topic 't' already exists."),
        ({"name": "a b"}, 409, "INVALID_TOPIC_EXCEPTION: "),
        ({"name": "__cluster_metadata"}, 409, "INVALID_REQUEST: Creation of internal topic __cluster_metadata is"),
        ({"name": "a", "partitions": 0}, 409, "INVALID_PARTITIONS: Number of partitions was set to an invalid"),
        ({"name": "a", "partitions": 1_000_000}, 409, "POLICY_VIOLATION: Excessively large number of partitions"),
        ({"name": "a", "replication_factor": 2}, 409, "INVALID_REPLICATION_FACTOR: "),
        ({"name": "a", "configs": {"retention.msec": "5"}}, 409, "INVALID_CONFIG: Unknown topic config name"),
        ({"name": "a", "configs": {"retention.ms": 5}}, 422, """'retention.ms' must be a text, not 5: write it as"""),
        ({"partitions": 3}, 422, 'the body needs "name", a text'),
        ({"name": "a", "partition": 3}, 422, "unknown field 'partition'; known fields: name, partitions, "),
    ],
)
def test_what_cannot_be_created_is_refused_as_by_kafka(plane: ControlPlane, body: Any, status: int, text: str) -> None:
    """With the controller's own sentence, and nothing is created."""
    actual_status, problem = plane.refused("POST", "/v1/topics", body)
    assert (actual_status, text in problem["detail"]) == (status, True), problem["detail"]
    assert [topic.name for topic in plane.kafka.topics.list()] == ["t", "u"]


def test_what_cannot_be_deleted_is_refused(plane_of: ControlPlaneOf) -> None:
    """A topic that is not there, and any where delete.topic.enable is false."""
    plane = plane_of(topics=["t"], settings={"delete.topic.enable": False})
    assert plane.refused("DELETE", "/v1/topics/tt")[0] == 404
    status, problem = plane.refused("DELETE", "/v1/topics/t")
    assert (status, "TOPIC_DELETION_DISABLED" in problem["detail"]) == (409, True)
    assert len(plane.kafka.topics.list()) == 1


@pytest.mark.verb("topics configure")
def test_settings_of_a_topic_change_for_clients(plane_of: ControlPlaneOf) -> None:
    """Set and removed, also in a shell; an unknown one is refused as by Kafka, and the others are kept."""
    plane = plane_of(topics=["t:1:retention.ms=7"])
    topic = plane.kafka.topics["t"]
    changed = topic.configure({"cleanup.policy": "compact"})
    assert changed.configs == {"cleanup.policy": "compact", "retention.ms": "7"}
    resource = ConfigResource(ConfigResource.Type.TOPIC, "t")
    admin = AdminClient({"bootstrap.servers": plane.bootstrap})
    assert admin.describe_configs([resource])[resource].result(60)["cleanup.policy"].value == "compact"
    assert topic.configure({"retention.ms": None}).configs == {"cleanup.policy": "compact"}
    assert plane.ctl("topics", "configure", "t", "retention.ms=9")["configs"]["retention.ms"] == "9"
    _, problem = plane.refused("PUT", "/v1/topics/t/configs", {"configs": {"retention": "1"}})
    assert "INVALID_CONFIG" in problem["detail"]
    status, _ = plane.refused("PUT", "/v1/topics/none/configs", {"configs": {"retention.ms": "1"}})
    assert status == 404
    assert topic.show().configs == {"cleanup.policy": "compact", "retention.ms": "9"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/topics", {"name": "__consumer_offsets"}),
        ("/v1/coordinators/move", {"type": "group", "key": "g", "broker": 1}),
        ("/v1/groups/g/offsets", {"topic": "t", "to": "latest"}),
    ],
)
def test_a_topic_of_coordinators_needs_enough_brokers(plane_of: ControlPlaneOf, path: str, body: Any) -> None:
    """One broker with the settings of a cluster of three: every verb that would create it names the reason."""
    plane = plane_of(topics=["t"], settings={"offsets.topic.replication.factor": 3})
    status, problem = plane.refused("POST", path, body)
    assert (status, "INVALID_REPLICATION_FACTOR" in problem["detail"]) == (409, True)
    assert "__consumer_offsets" not in [topic.name for topic in plane.kafka.topics.list()]
