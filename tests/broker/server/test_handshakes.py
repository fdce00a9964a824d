"""TLS handshakes: refused with an alert, counted from accept on, with certificates that change."""

import asyncio
import errno
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12
from cryptography.x509 import load_der_x509_certificate, load_pem_x509_certificate

from broker.server.handshake import Handshake
from broker.settings.endpoints import Endpoint
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.broker.server.server_harness import echo, on_each_loop, seen, serving
from tests.ports import free_ports
from tests.serving import Server, start, until

OF = "listener.name.ssl"
MOST = 4


@dataclass
class Secured:
    """A server whose listener wants certificates, and the authority that it trusts."""

    server: Server
    port: int
    ca: trustme.CA
    store: Path

    def context(self, certificate: trustme.LeafCert | None = None) -> ssl.SSLContext:
        """A client's."""
        client_context = ssl.create_default_context()
        self.ca.configure_trust(client_context)
        if certificate is not None:
            certificate.configure_cert(client_context)
        return client_context

    def connect(self) -> socket.socket:
        """A connection without a handshake."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)


def store(issued: trustme.LeafCert) -> bytes:
    """A PKCS12 store of a key with its certificate."""
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    certificate = load_pem_x509_certificate(issued.cert_chain_pems[0].bytes())
    return pkcs12.serialize_key_and_certificates(b"own", key, certificate, None, BestAvailableEncryption(b"secret"))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Clients need a certificate; four connections from one address are the most."""
    folder = tmp_path_factory.mktemp("tls")
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(folder / "authority.pem"))
    (folder / "own.p12").write_bytes(store(ca.issue_cert("127.0.0.1")))
    (port,) = free_ports(1)
    settings = {
        f"{OF}.ssl.keystore.location": folder / "own.p12",
        f"{OF}.ssl.keystore.type": "PKCS12",
        f"{OF}.ssl.keystore.password": "secret",
        f"{OF}.ssl.truststore.type": "PEM",
        f"{OF}.ssl.truststore.location": folder / "authority.pem",
        f"{OF}.ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=(.*?),.*$/$1/L",
        "max.connections.per.ip": MOST,
        "understudy.partial.frame.timeout.ms": 30_000,
    }
    server = Server(start(settings=settings, listeners=[f"SSL://127.0.0.1:{port}"]))
    yield Secured(server, port, ca, folder / "own.p12")
    server.process.stop()


def versions(peer: ssl.SSLSocket) -> bytes:
    """The beginning of an answer to ApiVersions."""
    peer.sendall(b"\0\0\0\x0a\0\x12\0\0\0\0\0\7\xff\xff")
    return peer.recv(4096)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("known", [True, False])
def test_a_refused_certificate_gets_its_alert(secured: Secured, known: bool, version: ssl.TLSVersion) -> None:
    """And one line in the log. A missing one is refused as well as one of another authority; a good one is served."""
    with secured.connect() as peer:
        good = secured.context(secured.ca.issue_cert("a@example.org", common_name="Alice", organization_name="A"))
        with good.wrap_socket(peer, server_hostname="127.0.0.1") as encrypted:
            assert versions(encrypted)[4:8] == b"\0\0\0\7"
    before = secured.server.log_position()
    context = secured.context(None if known else trustme.CA().issue_cert("mallory@example.org"))
    context.maximum_version = version
    with (
        secured.connect() as peer,
        pytest.raises(ssl.SSLError, match="ALERT"),
        context.wrap_socket(peer, server_hostname="127.0.0.1") as encrypted,
    ):
        versions(encrypted)
    lines = until(lambda: secured.server.log_lines(before), "a line in the log")
    assert ["the TLS handshake failed" in line["reason"] for line in lines] == [True]


def test_connections_without_a_handshake_count(secured: Secured) -> None:
    """Silent ones keep others of their address out, until they time out or are closed."""
    with ExitStack() as stack:
        silent = [stack.enter_context(secured.connect()) for _ in range(MOST)]
        silent[0].sendall(b"\x16\x03")
        with secured.connect() as one_more:
            assert not one_more.recv(1)
        for peer in silent:
            peer.setblocking(False)
            with pytest.raises(BlockingIOError):
                peer.recv(1)
    certificate = secured.ca.issue_cert("alice@example.org", common_name="Alice", organization_name="A")

    def served() -> bool:
        with secured.connect() as peer:
            try:
                with secured.context(certificate).wrap_socket(peer, server_hostname="127.0.0.1") as encrypted:
                    return bool(versions(encrypted))
            except OSError:
                return False

    assert until(served, "a connection in their place")


def test_a_certificate_that_no_rule_maps_is_no_principal(secured: Secured) -> None:
    """The connection is closed with a line in the log."""
    before = secured.server.log_position()
    context = secured.context(secured.ca.issue_cert("unknown@example.org"))
    with secured.connect() as peer, context.wrap_socket(peer, server_hostname="127.0.0.1") as encrypted:
        assert not versions(encrypted)
    (line,) = until(lambda: secured.server.log_lines(before), "a line in the log")
    assert "no rule of ssl.principal.mapping.rules applies" in line["reason"]


def serial_number(secured: Secured) -> int:
    """The serial number of the server's certificate."""
    context = secured.context(secured.ca.issue_cert("a@example.org", common_name="Alice", organization_name="A"))
    with secured.connect() as peer, context.wrap_socket(peer, server_hostname="127.0.0.1") as encrypted:
        certificate = encrypted.getpeercert(binary_form=True)
        assert certificate is not None
        return load_der_x509_certificate(certificate).serial_number


def alter(secured: Secured, name: str, value: str) -> ErrorCode:
    """Alter a setting of broker 1."""
    resource = AlterConfigsResource(4, "1", [AlterableConfig(f"{OF}.{name}", 0, value)])
    with secured.server.wire() as wire:
        (response,) = wire.call(
            ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest([resource], False)
        ).responses
    return ErrorCode(response.error_code)


def test_a_certificate_changes_while_the_broker_runs(secured: Secured) -> None:
    """By another store, and by another file of the same name; what cannot be read changes nothing."""
    first = serial_number(secured)
    other = secured.store.with_name("other.p12")
    other.write_bytes(store(secured.ca.issue_cert("127.0.0.1")))
    assert alter(secured, "ssl.keystore.location", str(other)) is ErrorCode.NONE
    second = serial_number(secured)
    assert second != first
    other.write_bytes(store(secured.ca.issue_cert("127.0.0.1")))
    assert serial_number(secured) == second
    assert alter(secured, "ssl.keystore.location", str(other)) is ErrorCode.NONE
    third = serial_number(secured)
    assert third not in (first, second)
    alter(secured, "ssl.keystore.location", "/nowhere")
    assert serial_number(secured) == third


async def test_an_alert_needs_no_further_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error would end the server; and peers that do not close their side hold 64 descriptors at most."""

    def none_left(_own: socket.socket) -> socket.socket:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(socket.socket, "dup", none_left)
    server = SimpleNamespace(farewells=0, connections=SimpleNamespace(leave=lambda _held: None))
    handshake = Handshake(cast("Any", server), "SSL")
    handshake._over = True  # the line in the log has been written
    refusal = ssl.SSLError(1, "certificate required")
    refusal.alert = b"alert"  # type: ignore[attr-defined]
    pairs = [socket.socketpair() for _ in range(65)]
    for spare, _ in pairs:
        handshake._refuse_alerting(refusal, spare)
        spare.close()
    assert [peer.recv(16) for _, peer in pairs] == [*[b"alert"] * 64, b""]
    for _, peer in pairs:
        peer.close()
    await seen(lambda: server.farewells == 0)


@on_each_loop
async def test_a_paused_broker_begins_no_handshake() -> None:
    """New connections with TLS are left unread too, and served when it goes on."""
    ca = trustme.CA()
    own = ca.issue_cert("127.0.0.1")
    settings: dict[str, object] = {
        "ssl_keystore_type": "PEM",
        "ssl_keystore_certificate_chain": own.cert_chain_pems[0].bytes().decode(),
        "ssl_keystore_key": own.private_key_pem.bytes().decode(),
    }
    context, incoming, outgoing = ssl.create_default_context(), ssl.MemoryBIO(), ssl.MemoryBIO()
    ca.configure_trust(context)
    client = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    async with serving(echo, Endpoint("SSL", "SSL", "127.0.0.1", 0), **settings) as bench:
        bench.server.pause()
        peer = await bench.connect()
        peer.writer.write(outgoing.read())
        answer = asyncio.create_task(peer.reader.read(1))
        for _ in range(200):
            await asyncio.sleep(0)
        assert not answer.done()
        bench.server.resume()
        assert await answer == b"\x16"
