"""A real client authenticates: librdkafka, by each mechanism that a password is enough for."""

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from tests.ports import free_ports
from tests.serving import Server, start
from tests.through_proxy import WayTo

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SETTINGS = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{LOGIN} user_alice="secret";',
}
KINDS = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)


@pytest.fixture(scope="module", params=["directly", "through a proxy"])
def guarded(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a listener that asks who is there; alice's password is in its settings, the others' are stored."""
    (port,) = free_ports(1)
    server = Server(start(settings=SETTINGS, topics=["t:1"], listeners=[f"SASL_PLAINTEXT://127.0.0.1:{port}"]))
    admin = AdminClient({"bootstrap.servers": server.addresses[0]})
    stored = [UserScramCredentialUpsertion("alice", ScramCredentialInfo(kind, 4096), b"secret") for kind in KINDS]
    for each in stored:
        admin.alter_user_scram_credentials([each])["alice"].result(60)
    way_to = WayTo(through_proxy=request.param != "directly")
    yield way_to(f"127.0.0.1:{port}")
    way_to.close()
    server.process.stop()


def outcome(address: str, mechanism: str, password: str) -> str:
    """Whether a record arrived, or the error of the connection."""
    reported: list[str] = []
    failed: list[KafkaError] = []
    producer = Producer({
        "bootstrap.servers": address, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism,
        "sasl.username": "alice", "sasl.password": password, "error_cb": failed.append, "log_level": 0,
    })  # fmt: skip
    producer.produce("t", b"v", on_delivery=lambda error, _: reported.append(str(error)))
    for _ in range(200):
        if reported or failed:
            break
        producer.poll(0.05)
    producer.purge()
    return reported[0] if reported else failed[0].name()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_librdkafka_authenticates(guarded: str, mechanism: str) -> None:
    """With the right password it produces, with another one it fails to authenticate."""
    assert outcome(guarded, mechanism, "secret") == "None"
    assert outcome(guarded, mechanism, "wrong") == "_AUTHENTICATION"
