"""ACLs as clients meet them: an administrator who makes them, and producers and consumers without a right."""

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.conftest import BrokerWith
from tests.serving import Server, until

SETTINGS: dict[str, object] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
    "understudy.principals": "admin=User:admin;orders-*=User:orders",
    "group.initial.rebalance.delay.ms": 0,
}


ANY: Any = None  # the client's types know no filter for any name
EVERYTHING = AclBindingFilter(
    ResourceType.ANY, ANY, ResourcePatternType.ANY, ANY, ANY, AclOperation.ANY, AclPermissionType.ANY
)


class Guarded:
    """Clients called orders-* are User:orders, and the one called admin may do everything."""

    def __init__(self, server: Server) -> None:
        self._address = server.addresses[0]
        self.admin = AdminClient(self.settings("admin"))

    def settings(self, client_id: str, **more: Any) -> dict[str, Any]:
        """Of a client, with dots for underscores."""
        named = {key.replace("_", "."): value for key, value in more.items()}
        return {"bootstrap.servers": self._address, "client.id": client_id, **named}

    def allow(self, *bindings: AclBinding) -> None:
        """Create ACLs."""
        for future in self.admin.create_acls(list(bindings)).values():
            future.result(60)


@pytest.fixture
def guarded(broker_with: BrokerWith) -> Guarded:
    """One broker with the topic orders."""
    stage = Guarded(broker_with(settings=SETTINGS))
    (creation,) = stage.admin.create_topics([NewTopic("orders", 1)]).values()
    creation.result(60)
    return stage


def binding(kind: ResourceType, name: str, operation: AclOperation) -> AclBinding:
    """Something that User:orders may do."""
    return AclBinding(kind, name, ResourcePatternType.LITERAL, "User:orders", "*", operation, AclPermissionType.ALLOW)


def produced(producer: Producer) -> str | None:
    """What becomes of a record for the topic orders: nothing, or the name of an error."""
    reports: list[KafkaError | None] = []
    producer.produce("orders", b"v", on_delivery=lambda error, _message: reports.append(error))
    producer.flush(60)
    (error,) = reports
    return None if error is None else str(error.name())


def refusal(call: Callable[[], Any]) -> KafkaError:
    """The error that a call raises."""
    with pytest.raises(KafkaException) as caught:
        call()
    error = caught.value.args[0]
    assert isinstance(error, KafkaError)
    return error


def test_an_administrator_makes_finds_and_removes_acls(guarded: Guarded) -> None:
    """With AdminClient, as with a real broker."""
    one = binding(ResourceType.TOPIC, "orders", AclOperation.READ)
    other = binding(ResourceType.GROUP, "shipping", AclOperation.READ)
    guarded.allow(one, other)
    assert set(guarded.admin.describe_acls(EVERYTHING).result(60)) == {one, other}
    of_topics = AclBindingFilter(
        ResourceType.TOPIC, "orders", ResourcePatternType.MATCH, ANY, ANY, AclOperation.ANY, AclPermissionType.ANY
    )
    ((_, removed),) = guarded.admin.delete_acls([of_topics]).items()
    assert removed.result(60) == [one]
    assert guarded.admin.describe_acls(EVERYTHING).result(60) == [other]


def test_a_user_without_alter_creates_no_acls(guarded: Guarded) -> None:
    """Without ALTER on the cluster CreateAcls gets CLUSTER_AUTHORIZATION_FAILED."""
    other = AdminClient(guarded.settings("orders-1"))
    (future,) = other.create_acls([binding(ResourceType.TOPIC, "orders", AclOperation.WRITE)]).values()
    assert refusal(lambda: future.result(60)).code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED
    assert guarded.admin.describe_acls(EVERYTHING).result(60) == []


def test_a_producer_without_write_is_refused(guarded: Guarded) -> None:
    """A right for orders-* opens the topic to them alone."""
    assert produced(Producer(guarded.settings("orders-1"))) == "TOPIC_AUTHORIZATION_FAILED"
    guarded.allow(binding(ResourceType.TOPIC, "orders", AclOperation.WRITE))
    assert produced(Producer(guarded.settings("orders-1"))) is None
    assert produced(Producer(guarded.settings("another"))) == "TOPIC_AUTHORIZATION_FAILED"


def test_a_transactional_producer_needs_a_right_for_its_name(guarded: Guarded) -> None:
    """Without WRITE on its transactional id a producer ends at once, with a fatal error."""
    producer = Producer(guarded.settings("orders-1", transactional_id="payments-1"))
    error = refusal(lambda: producer.init_transactions(60))
    assert error.code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert error.fatal()
    guarded.allow(
        binding(ResourceType.TRANSACTIONAL_ID, "payments-1", AclOperation.WRITE),
        binding(ResourceType.TOPIC, "orders", AclOperation.WRITE),
    )
    allowed = Producer(guarded.settings("orders-1", transactional_id="payments-1"))
    allowed.init_transactions(60)
    allowed.begin_transaction()
    assert produced(allowed) is None
    allowed.commit_transaction(60)


def consumed(guarded: Guarded) -> str:
    """What a new consumer hears first: the record, or the name of an error."""
    consumer = Consumer(guarded.settings("orders-2", group_id="shipping", auto_offset_reset="earliest"))
    consumer.subscribe(["orders"])
    heard: list[str] = []

    def polled() -> bool:
        message = consumer.poll(0.1)
        if message is not None:
            error = message.error()
            heard.append("a record" if error is None else str(error.name()))
        return bool(heard)

    until(polled, "a record or an error")
    consumer.close()
    return heard[0]


def test_a_consumer_needs_its_group_and_its_topic(guarded: Guarded) -> None:
    """Each is refused by its own error, and then there are records."""
    guarded.allow(binding(ResourceType.TOPIC, "orders", AclOperation.WRITE))
    assert produced(Producer(guarded.settings("orders-1"))) is None
    assert consumed(guarded) == "GROUP_AUTHORIZATION_FAILED"
    guarded.allow(binding(ResourceType.GROUP, "shipping", AclOperation.READ))
    assert consumed(guarded) == "TOPIC_AUTHORIZATION_FAILED"
    guarded.allow(binding(ResourceType.TOPIC, "orders", AclOperation.READ))
    assert consumed(guarded) == "a record"


def test_principals_can_be_changed_while_clients_run(guarded: Guarded) -> None:
    """The setting is altered like any other of a broker."""
    guarded.allow(binding(ResourceType.TOPIC, "orders", AclOperation.WRITE))
    assert produced(Producer(guarded.settings("guest"))) == "TOPIC_AUTHORIZATION_FAILED"
    rules = ConfigEntry(
        "understudy.principals",
        "admin=User:admin;guest=User:orders",
        incremental_operation=AlterConfigOpType.SET,
    )
    resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[rules])
    for future in guarded.admin.incremental_alter_configs([resource]).values():
        future.result(60)
    assert produced(Producer(guarded.settings("guest"))) is None
