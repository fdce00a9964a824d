"""Kafka's own tools log in: the Java client over SASL and TLS, and the tool that stores passwords."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from tests.broker.access.sasl.issuer import Issuer
from tests.broker.server.test_handshakes import store
from tests.ports import free_ports
from tests.serving import Server, start
from tests.storage.kafka_tools import java, need_kafka
from tests.through_proxy import WayTo

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
def secured(tmp_path_factory: pytest.TempPathFactory, way_to: WayTo) -> Iterator[tuple[Server, str, Path]]:
    """A cluster with an encrypted listener that asks for passwords, its address, and whom clients trust.

    Through a proxy, TLS ends there and begins again, and SASL within it passes.
    """
    need_kafka()
    folder = tmp_path_factory.mktemp("tls")
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(folder / "authority.pem"))
    ca.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(folder / "own.pem"))
    (port,) = free_ports(1)
    settings = {**SETTINGS, "ssl.keystore.location": folder / "own.pem"}
    server = Server(start(settings=settings, listeners=[f"SASL_SSL://127.0.0.1:{port}"]))
    trusting = folder / "proxy.properties"
    trusting.write_text(
        f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={folder}/authority.pem\n"
    )
    own = {name: value for name, value in settings.items() if name.startswith("ssl.")}
    yield server, way_to(f"127.0.0.1:{port}", protocol="ssl", client_config=trusting, settings=own), folder
    server.process.stop()


def cluster_id(address: str, folder: Path, mechanism: str, password: str) -> str:
    """What kafka-cluster.sh prints."""
    file = folder / f"{mechanism}.properties"
    file.write_text(
        f"security.protocol=SASL_SSL\nssl.truststore.type=PEM\nssl.truststore.location={folder}/authority.pem\n"
        f"sasl.mechanism={mechanism}\nsasl.jaas.config={LOGIN}.{MODULES[mechanism].format(password)}\n"
    )
    arguments = ("cluster-id", "--bootstrap-server", address, "--command-config", str(file))
    return java("org.apache.kafka.tools.ClusterTool", *arguments)


def test_the_java_client_authenticates(secured: tuple[Server, str, Path]) -> None:
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


def test_a_refused_certificate_is_an_authentication_error(tmp_path: Path, way_to: WayTo) -> None:
    """Java reports an SslAuthenticationException; with a certificate of the authority it is served, from PKCS12."""
    if way_to.through_proxy:
        pytest.skip("TLS ends at a proxy: the broker sees the proxy's certificate, and none of its clients'")
    need_kafka()
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    (tmp_path / "own.p12").write_bytes(store(ca.issue_cert("127.0.0.1")))
    (tmp_path / "alice.p12").write_bytes(store(ca.issue_cert("alice@example.org", common_name="alice")))
    (tmp_path / "mallory.p12").write_bytes(store(trustme.CA().issue_cert("mallory@example.org")))
    (port,) = free_ports(1)
    settings = {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": tmp_path / "own.p12",
        "listener.name.ssl.ssl.keystore.password": "secret",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": tmp_path / "authority.pem",
        "ssl.client.auth": "required",
    }
    server = Server(start(settings=settings, listeners=[f"SSL://127.0.0.1:{port}"]))

    def cluster_id_for(name: str) -> str:
        file = tmp_path / f"{name}.properties"
        file.write_text(
            f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={tmp_path}/authority.pem\n"
            f"ssl.keystore.type=PKCS12\nssl.keystore.location={tmp_path}/{name}.p12\nssl.keystore.password=secret\n"
        )
        arguments = ("cluster-id", "--bootstrap-server", f"127.0.0.1:{port}", "--command-config", str(file))
        return java("org.apache.kafka.tools.ClusterTool", *arguments)

    try:
        assert server.process.ready.cluster_id in cluster_id_for("alice")
        with pytest.raises(AssertionError, match="SslAuthenticationException"):
            cluster_id_for("mallory")
    finally:
        server.process.stop()


def test_the_java_client_logs_in_with_client_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way_to: WayTo
) -> None:
    """It gets a signed token from an identity provider; a wrong secret gets none, a token for others is refused."""
    need_kafka()
    issuer, of = Issuer(), "listener.name.sasl_plaintext.oauthbearer"
    login = f"{LOGIN}.oauthbearer.OAuthBearerLogin"
    with issuer.served(int(time.time())) as address:
        monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={address}/token")
        settings = {
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{of}.sasl.jaas.config": f"{LOGIN}.oauthbearer.OAuthBearerLoginModule required;",
            f"{of}.sasl.server.callback.handler.class": f"{LOGIN}.oauthbearer.OAuthBearerValidatorCallbackHandler",
            "sasl.oauthbearer.jwks.endpoint.url": f"{address}/keys",
            "sasl.oauthbearer.expected.audience": "kafka",
        }
        (port,) = free_ports(1)
        server = Server(start(settings=settings, listeners=[f"SASL_PLAINTEXT://127.0.0.1:{port}"]))
        bootstrap = way_to(f"127.0.0.1:{port}")

        def cluster_id_for(secret: str) -> str:
            file = tmp_path / "client.properties"
            file.write_text(
                "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
                f"sasl.login.callback.handler.class={login}CallbackHandler\n"
                f"sasl.oauthbearer.token.endpoint.url={address}/token\n"
                f'sasl.jaas.config={login}Module required clientId="alice" clientSecret="{secret}";\n'
            )
            arguments = ("cluster-id", "--bootstrap-server", bootstrap, "--command-config", str(file))
            return java("org.apache.kafka.tools.ClusterTool", *arguments)

        try:
            assert server.process.ready.cluster_id in cluster_id_for("secret")
            with pytest.raises(AssertionError):
                cluster_id_for("wrong")
            issuer.audience = "others"
            with pytest.raises(AssertionError, match="invalid_token"):
                cluster_id_for("secret")
        finally:
            server.process.stop()
