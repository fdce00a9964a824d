"""SASL and TLS: the client's own exchange passes, or the proxy authenticates with credentials of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from confluent_kafka import Producer

from protocol.apis import ApiKey
from protocol.messages.metadata import MetadataRequest
from protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.ports import free_ports
from tests.proxy.conftest import ProxyTo
from tests.serving import Server, start, until
from tests.wire import Closed, framed

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `ca.pem`, and `server.pem` for localhost."""
    folder = tmp_path_factory.mktemp("tls")
    ca = trustme.CA()
    ca.cert_pem.write_to_path(folder / "ca.pem")
    ca.issue_cert("localhost", "127.0.0.1").private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
    return folder


@pytest.fixture(scope="module")
def guarded(authority: Path) -> Iterator[dict[str, str]]:
    """Security protocol -> address, of a broker that asks for PLAIN, with and without TLS."""
    plain, tls = free_ports(2)
    settings = {
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{LOGIN} user_alice="secret";',
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{LOGIN} user_alice="secret";',
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority / "server.pem"),
    }
    listeners = [f"SASL_PLAINTEXT://127.0.0.1:{plain}", f"SASL_SSL://localhost:{tls}"]
    server = Server(start(settings=settings, topics=["t:1"], listeners=listeners))
    yield {"SASL_PLAINTEXT": f"127.0.0.1:{plain}", "SASL_SSL": f"localhost:{tls}"}
    server.process.stop()


def error_of(settings: dict[str, str]) -> str | None:
    """Why a record was not delivered; ``None``: it was."""
    delivered: list[object] = []
    failed: list[str] = []
    producer = Producer({**settings, "error_cb": lambda error: failed.append(error.name()), "log_level": 0})
    producer.produce("t", b"v", on_delivery=lambda error, _: delivered.append(error))
    for _ in range(200):
        if delivered or failed:
            break
        producer.poll(0.05)
    producer.purge()
    return None if delivered == [None] else failed[0]


@pytest.mark.parametrize(("password", "expected"), [("secret", None), ("wrong", "_AUTHENTICATION")])
def test_the_clients_own_exchange_passes(
    guarded: dict[str, str], proxy_to: ProxyTo, password: str, expected: str | None
) -> None:
    """The broker decides, and the journal shows the exchange without the password."""
    proxy = proxy_to(guarded["SASL_PLAINTEXT"])
    settings = {
        "bootstrap.servers": proxy.addresses[0],
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": password,
    }
    assert error_of(settings) == expected
    seen = proxy.control("GET", "/v1/journal")["entries"]
    assert {"SaslHandshake", "SaslAuthenticate"} <= {each["api"] for each in seen}
    assert password not in str(seen).replace("'", "")


def test_tokens_without_a_header_pass(guarded: dict[str, str], proxy_to: ProxyTo) -> None:
    """After SaslHandshake v0 tokens are frames of their own (KIP-43); requests follow on the same connection."""
    proxy = proxy_to(guarded["SASL_PLAINTEXT"])
    wire = proxy.wire()
    wire.call(ApiKey.SASL_HANDSHAKE, 0, SaslHandshakeRequest("PLAIN"))
    wire.send_bytes(framed(b"\0alice\0secret"))
    assert wire.receive_frame() == b""
    assert wire.call(ApiKey.METADATA, 5, MetadataRequest(topics=None)).brokers
    apis = [each["api"] for each in proxy.control("GET", "/v1/journal")["entries"]]
    assert apis == ["SaslHandshake", "Metadata"]
    again = proxy.wire()
    again.call(ApiKey.SASL_HANDSHAKE, 0, SaslHandshakeRequest("PLAIN"))
    again.send_bytes(framed(b"\0alice\0wrong"))
    with pytest.raises(Closed):
        again.receive_frame()


@pytest.mark.parametrize(("password", "expected"), [("secret", None), ("wrong", "_ALL_BROKERS_DOWN")])
def test_the_proxy_authenticates_over_tls(
    guarded: dict[str, str], authority: Path, proxy_to: ProxyTo, tmp_path: Path, password: str, expected: str | None
) -> None:
    """With --client-config the proxy has the credentials, and clients need none."""
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={authority / 'ca.pem'}\n"
        f'sasl.jaas.config={LOGIN} username="alice" password="{password}";\n'
    )
    proxy = proxy_to(guarded["SASL_SSL"], client_config=str(config))
    failed = error_of({"bootstrap.servers": proxy.addresses[0]})
    assert failed == expected or (expected is not None and failed == "_TRANSPORT")


def test_clients_reach_the_proxy_over_tls(guarded: dict[str, str], authority: Path, proxy_to: ProxyTo) -> None:
    """--protocol ssl: TLS ends at the proxy, and SASL within it goes on to the broker."""
    proxy = proxy_to(
        guarded["SASL_PLAINTEXT"],
        protocol="ssl",
        settings={"ssl.keystore.type": "PEM", "ssl.keystore.location": str(authority / "server.pem")},
    )
    settings = {
        "bootstrap.servers": proxy.addresses[0],
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(authority / "ca.pem"),
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": "secret",
    }
    assert error_of(settings) is None


@pytest.fixture(scope="module")
def forgetful() -> Iterator[Server]:
    """A broker whose sessions last for a little longer than the second that has to pass between two renewals."""
    (guarded,) = free_ports(1)
    settings = {
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{LOGIN} user_alice="secret";',
        "connections.max.reauth.ms": "1200",
    }
    server = Server(start(settings=settings, topics=["t:1"], listeners=[f"SASL_PLAINTEXT://127.0.0.1:{guarded}"]))
    yield server
    server.process.stop()


def test_the_proxy_renews_its_session(forgetful: Server, proxy_to: ProxyTo, tmp_path: Path) -> None:
    """A client's connection outlives the session that the broker limits (KIP-368)."""
    guarded = next(each for each in forgetful.process.ready.brokers[0]["listeners"] if each["protocol"] != "PLAINTEXT")
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={LOGIN} username="alice" password="secret";\n'
    )
    proxy = proxy_to(f"{guarded['host']}:{guarded['port']}", client_config=str(config))
    wire = proxy.wire()

    def authentications() -> int:
        assert wire.call(ApiKey.METADATA, 12, MetadataRequest(topics=None)).brokers
        seen = forgetful.control("GET", "/v1/journal?api=SaslAuthenticate&limit=1000")["entries"]
        return len(seen)

    before = authentications()
    until(lambda: authentications() >= before + 2, "two renewals on one connection")
