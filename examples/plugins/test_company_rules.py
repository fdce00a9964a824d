"""The company's rules, as its clients meet them: `pytest examples/plugins`."""

import sys
import time
from concurrent.futures import Future
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

import understudy
from understudy import Cluster

sys.path.insert(0, str(Path(__file__).parent))  # as pytest does, unless its import mode is importlib
RULES = {
    "create.topic.policy.class.name": "company_rules:check_topic",
    "alter.config.policy.class.name": "company_rules:check_configs",
    "authorizer.class.name": "company_rules:authorize",
    "client.quota.callback.class": "company_rules:limit",
    "group.consumer.assignors": "uniform,company_rules:first_takes_all",
    "understudy.principals": "*orders*=User:orders",
}
pytestmark = pytest.mark.kafka(settings=RULES)


@pytest.fixture
def admin(kafka: Cluster) -> AdminClient:
    """An administrator, and the topic orders.placed with three partitions."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_topics([NewTopic("orders.placed", 3)])["orders.placed"].result(10)
    return admin


def refusal(future: Future[None]) -> tuple[str, str]:
    """The code and the message of the error."""
    with pytest.raises(KafkaException) as raised:
        future.result(10)
    return raised.value.args[0].name(), raised.value.args[0].str()


@pytest.mark.parametrize(
    ("topic", "partitions", "message"),
    [
        ("tmp", 3, "tmp: the name must begin with a team, orders or billing"),
        ("billing.paid", 1, "billing.paid: at least 3 partitions are needed"),
    ],
)
def test_a_topic_follows_the_rules(admin: AdminClient, topic: str, partitions: int, message: str) -> None:
    created = admin.create_topics([NewTopic(topic, partitions)])[topic]
    assert refusal(created) == ("POLICY_VIOLATION", message)


def test_a_retention_is_a_week_at_most(admin: AdminClient) -> None:
    entry = ConfigEntry("retention.ms", "-1", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource("topic", "orders.placed", incremental_configs=[entry])
    (altered,) = admin.incremental_alter_configs([resource]).values()
    assert refusal(altered) == ("POLICY_VIOLATION", "retention.ms may be a week at most")


@pytest.mark.usefixtures("admin")
@pytest.mark.parametrize(("client", "error"), [("orders-app", None), ("report", "TOPIC_AUTHORIZATION_FAILED")])
def test_only_its_team_writes_to_a_topic(kafka: Cluster, client: str, error: str | None) -> None:
    reports: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "client.id": client})
    producer.produce("orders.placed", b"v", on_delivery=lambda failure, _message: reports.append(failure))
    producer.flush(10)
    assert [None if failure is None else failure.name() for failure in reports] == [error]


def test_a_service_account_is_its_team() -> None:
    settings = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "authorizer.class.name": "company_rules:authorize",
        "principal.builder.class": "company_rules:principal",
    }
    account = "SCRAM-SHA-256=[name=billing-api,password=secret]"
    with understudy.start(settings=settings, add_scram=[account], topics=["billing.paid", "orders.placed"]) as kafka:
        producer = Producer({
            "bootstrap.servers": kafka.bootstrap_servers, "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "billing-api", "sasl.password": "secret",
        })  # fmt: skip
        reports: dict[str | None, str | None] = {}
        for topic in ("billing.paid", "orders.placed"):
            producer.produce(
                topic, b"v", on_delivery=lambda e, m: reports.update({m.topic(): None if e is None else e.name()})
            )
        producer.flush(10)
        assert reports == {"billing.paid": None, "orders.placed": "TOPIC_AUTHORIZATION_FAILED"}


@pytest.mark.usefixtures("admin")
def test_a_batch_job_is_throttled(kafka: Cluster) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "client.id": "batch-orders"})
    for _ in range(2):
        producer.produce("orders.placed", bytes(50_000), partition=0)
        producer.flush(10)
    throttled_ms = [
        (entry.response or {})["throttle_time_ms"]
        for entry in kafka.journal.find(api="Produce", client_id="batch-orders")
    ]
    assert throttled_ms[0] > 0


@pytest.mark.usefixtures("admin")
def test_consumers_may_choose_the_company_s_assignor(kafka: Cluster) -> None:
    settings = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": "all-to-one",
        "group.protocol": "consumer",
        "group.remote.assignor": "first_takes_all",
    }
    consumers = [Consumer(settings), Consumer(settings)]
    for consumer in consumers:
        consumer.subscribe(["orders.placed"])
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for consumer in consumers:
            consumer.poll(0.1)
        owned = sorted(len(consumer.assignment()) for consumer in consumers)
        if owned == [0, 3] and len(kafka.groups["all-to-one"].show().members) == 2:
            break
    for consumer in consumers:
        consumer.close()
    assert owned == [0, 3]
