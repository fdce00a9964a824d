"""Kafka's own tools log in: the Java client over SASL and TLS, and the tool that stores passwords."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from tests.clients.targets import free_ports
from tests.serving import Server, start
from tests.storage.kafka_tools import java, need_kafka

pytestmark = pytest.mark.interop
LOGIN = "org.apache.kafka.common.security"
OF = "listener.name.sasl_ssl"
SETTINGS = {
    "ssl.keystore.type": "PEM",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512,OAUTHBEARER",
    f"{OF}.plain.sasl.jaas.config": f'{LOGIN}.plain.PlainLoginModule required user_alice="secret";',
    f"{OF}.oauthbearer.sasl.jaas.config": f"{LOGIN}.oauthbearer.OAuthBearerLoginModule required;",
}
MODULES = {
    "PLAIN": 'plain.PlainLoginModule required username="alice" password="{}";',
    "SCRAM-SHA-512": 'scram.ScramLoginModule required username="bob" password="{}";',
    "OAUTHBEARER": 'oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{}";',
}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, str, Path]]:
    """A cluster with an encrypted listener that asks for passwords, its address, and whom clients trust."""
    need_kafka()
    folder = tmp_path_factory.mktemp("tls")
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(folder / "authority.pem"))
    ca.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(folder / "own.pem"))
    (port,) = free_ports(1)
    settings = {**SETTINGS, "ssl.keystore.location": folder / "own.pem"}
    server = Server(start(settings=settings, listeners=[f"SASL_SSL://127.0.0.1:{port}"]))
    yield server, f"127.0.0.1:{port}", folder
    server.process.stop()


def cluster_id(address: str, folder: Path, mechanism: str, password: str) -> str:
    """What kafka-cluster.sh prints."""
    file = folder / f"{mechanism}.properties"
    file.write_text(
        f"security.protocol=SASL_SSL\nssl.truststore.type=PEM\nssl.truststore.location={folder}/authority.pem\n"
        f"sasl.mechanism={mechanism}\nsasl.jaas.config={LOGIN}.{MODULES[mechanism].format(password)}\n"
    )
    words = ("cluster-id", "--bootstrap-server", address, "--command-config", str(file))
    return java("org.apache.kafka.tools.ClusterTool", *words)


def test_the_java_client_says_who_it_is(secured: tuple[Server, str, Path]) -> None:
    """By PLAIN, by a SCRAM password that kafka-configs.sh has stored, by a token; not with a wrong password."""
    server, address, folder = secured
    stored = ("--alter", "--add-config", "SCRAM-SHA-512=[iterations=8192,password=pw]")
    user = ("--entity-type", "users", "--entity-name", "bob")
    java("kafka.admin.ConfigCommand", "--bootstrap-server", server.addresses[0], *stored, *user)
    expected = f"Cluster ID: {server.process.ready.cluster_id}"
    for mechanism, password in (("PLAIN", "secret"), ("SCRAM-SHA-512", "pw"), ("OAUTHBEARER", "carl")):
        assert expected in cluster_id(address, folder, mechanism, password)
    with pytest.raises(AssertionError, match="Invalid username or password"):
        cluster_id(address, folder, "PLAIN", "wrong")
