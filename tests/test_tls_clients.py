"""A real client on an encrypted listener: librdkafka, with and without a certificate of its own."""

import contextlib
import re
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
import trustme
from confluent_kafka import KafkaError, Producer
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

import understudy
from broker.access.tls.context import TlsError, context_of
from broker.access.tls.principals import ANONYMOUS, MappingError, PrincipalMapping, distinguished_name
from broker.server.listening import Listening, Tls
from broker.settings import BrokerSettings
from broker.settings.endpoints import Endpoint
from broker.time.clock import ManualClock
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from tests.ports import free_ports
from tests.serving import Server, start, until
from tests.wire import Wire

UNREACHABLE = ("_SSL", "_TRANSPORT", "_ALL_BROKERS_DOWN")
"""librdkafka's errors for a broker that it cannot talk to, in the order of its threads."""


@dataclass(frozen=True)
class Secured:
    """An encrypted listener, and what its clients need."""

    address: str
    authority: Path
    alice: Path
    server: Server


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Only alice may do anything; others are let in, and may do nothing."""
    folder = tmp_path_factory.mktemp("tls")
    authority, alice, own = (folder / f"{name}.pem" for name in ("authority", "alice", "own"))
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(authority))
    ca.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(own))
    named = ca.issue_cert(
        "alice@example.org", common_name="alice", organization_name="A, B", organization_unit_name="C"
    )
    named.private_key_and_cert_chain_pem.write_to_path(str(alice))
    (port,) = free_ports(1)
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": own,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority,
        "ssl.client.auth": "requested",
        "delegation.token.secret.key": "the key",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": r"User:CN=alice,OU=C,O=A\, B",
    }
    server = Server(start(settings=settings, topics=["t:1"], listeners=[f"SSL://127.0.0.1:{port}"]))
    yield Secured(f"127.0.0.1:{port}", authority, alice, server)
    server.process.stop()


def outcome(secured: Secured, **more: object) -> str:
    """What became of a record, or the error of the connection."""
    reported: list[str] = []
    failed: list[KafkaError] = []
    producer = Producer({
        "bootstrap.servers": secured.address, "error_cb": failed.append, "log_level": 0,
        **{name.replace("_", "."): value for name, value in more.items()},
    })  # fmt: skip
    producer.produce("t", b"v", on_delivery=lambda error, _: reported.append(error.name() if error else "written"))
    for _ in range(200):
        if reported or failed:
            break
        producer.poll(0.05)
    producer.purge()
    return reported[0] if reported else failed[0].name()


def test_a_certificate_names_the_principal(secured: Secured) -> None:
    """Its distinguished name is the principal; who has none is anonymous, and may not write here."""
    trusting = {"security_protocol": "SSL", "ssl_ca_location": str(secured.authority)}
    mine = {"ssl_certificate_location": str(secured.alice), "ssl_key_location": str(secured.alice)}
    assert outcome(secured, **trusting, **mine) == "written"
    assert outcome(secured, **trusting) == "TOPIC_AUTHORIZATION_FAILED"


def test_a_handshake_that_fails_is_in_the_report(secured: Secured) -> None:
    """Of a client that does not use TLS, and of one that does not trust the certificate; a good one adds nothing."""
    kafka = understudy.connect(secured.server.process.ready.control_url or "")
    trusting = {"security_protocol": "SSL", "ssl_ca_location": str(secured.authority)}
    assert outcome(secured, **trusting) == "TOPIC_AUTHORIZATION_FAILED"
    closed = "broker 1 closed the connection of 127.0.0.1:"
    assert closed not in kafka.report().text
    assert outcome(secured, security_protocol="PLAINTEXT") in UNREACHABLE
    assert re.search(f"{closed}.* the client does not use TLS, as this listener does", kafka.report().text)
    assert outcome(secured, security_protocol="SSL") in UNREACHABLE
    until(lambda: re.search(f"{closed}.* the TLS handshake failed: .*unknown ca", kafka.report().text), "the alert")


def test_a_certificate_is_enough_to_ask_for_a_delegation_token(secured: Secured) -> None:
    """Its name is the owner; without one the client is a stranger (core G.12.1)."""
    answers = []
    for certificate in (secured.alice, None):
        context = ssl.create_default_context(cafile=str(secured.authority))
        if certificate is not None:
            context.load_cert_chain(certificate)
        wire = Wire(secured.address)
        with context.wrap_socket(wire.socket, server_hostname="127.0.0.1") as wire.socket:
            answers.append(wire.call(ApiKey.CREATE_DELEGATION_TOKEN, 3, CreateDelegationTokenRequest()))
    refused = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert [each.error_code for each in answers] == [ErrorCode.NONE, refused]
    assert answers[0].principal_name == r"CN=alice,OU=C,O=A\, B"


def test_a_client_that_does_not_trust_the_broker_does_not_connect(secured: Secured) -> None:
    """A client that does not use TLS does not connect either."""
    assert outcome(secured, security_protocol="SSL") in UNREACHABLE
    assert outcome(secured, security_protocol="PLAINTEXT") in UNREACHABLE


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + bytes(70_000)])
def test_bytes_that_are_no_tls_end_the_connection(secured: Secured, data: bytes) -> None:
    """The listener serves other clients on."""
    host, port = secured.address.split(":")
    with socket.create_connection((host, int(port)), timeout=60) as peer:
        peer.sendall(data)
        with contextlib.suppress(ConnectionResetError):
            while peer.recv(4096):  # an alert, at most; a connection that stays open ends in a TimeoutError
                pass
    assert outcome(secured, security_protocol="SSL", ssl_ca_location=str(secured.authority)) not in UNREACHABLE


# --- set-up ----------------------------------------------------------------------------------------------------------

PEM = {"ssl.keystore.type": "PEM"}
OF = "listener.name.outside"
ENDPOINT = Endpoint("OUTSIDE", "SASL_SSL", "127.0.0.1", 0)


class Transport:
    """What is known of a peer."""

    def __init__(self, subject: object, encoded: bytes = b"") -> None:
        self._certificate, self._encoded = {"subject": subject}, encoded

    def get_extra_info(self, name: str) -> object:
        """The certificate, or what has it in DER."""
        return self._certificate if name == "peercert" else self

    def getpeercert(self, *, binary_form: bool) -> bytes:
        """As the peer sent it."""
        assert binary_form
        return self._encoded


def test_names_are_written_as_java_writes_them() -> None:
    """The last part first, with what could be mistaken escaped."""
    subject = ((("countryName", "DE"),), (("organizationName", "A, B"),), (("commonName", "x"), ("userId", "#1 ")))
    assert distinguished_name(Transport(subject)) == r"CN=x+UID=\#1\ ,O=A\, B,C=DE"  # type: ignore[arg-type]


def test_with_sasl_a_certificate_names_no_principal() -> None:
    """So no rule has to apply to its name; with TLS alone one has to."""
    transport: Any = Transport(((("commonName", "x"),),))
    for guarded in (False, True):
        listening = Listening(cast("Any", None), BrokerSettings(1), ManualClock(), cast("Any", None))
        rules = PrincipalMapping("RULE:^OU=(.*)$/$1/")
        listening.tls["OUTSIDE"] = Tls(ENDPOINT, cast("Any", None), rules, ())
        listening.guarded = {"OUTSIDE"} if guarded else set()
        with contextlib.nullcontext() if guarded else pytest.raises(MappingError):
            assert listening.principal_of("OUTSIDE", transport, "127.0.0.1") == ANONYMOUS


def test_other_attributes_are_object_ids_in_a_name() -> None:
    """With the value in hexadecimal, as X500Principal.getName writes them: an address of mail, a serial number."""
    key = ec.generate_private_key(ec.SECP256R1())
    attributes = [
        (NameOID.COUNTRY_NAME, "DE"),
        (NameOID.SERIAL_NUMBER, "7"),
        (NameOID.COMMON_NAME, "alice"),
        (NameOID.EMAIL_ADDRESS, "a@b.org"),
    ]
    name = x509.Name([x509.NameAttribute(oid, value) for oid, value in attributes])
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    certificate = x509.CertificateBuilder(name, name, key.public_key(), 1, begin, begin).sign(key, hashes.SHA256())
    subject = (
        (("countryName", "DE"),),
        (("serialNumber", "7"),),
        (("commonName", "alice"),),
        (("emailAddress", "a@b.org"),),
    )
    transport: Any = Transport(subject, certificate.public_bytes(Encoding.DER))
    expected = f"1.2.840.113549.1.9.1=#1607{b'a@b.org'.hex()},CN=alice,2.5.4.5=#130137,C=DE"
    assert distinguished_name(transport) == expected


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        ({}, "needs a certificate: set ssl.keystore.type=PEM"),
        ({"ssl.keystore.location": "x.jks"}, "No such file"),
        ({**PEM, "ssl.keystore.location": "/nowhere"}, "cannot be read"),
        ({**PEM, "ssl.keystore.certificate.chain": "no", "ssl.keystore.key": "no"}, "cannot be read"),
        ({"ssl.enabled.protocols": "SSLv3"}, "needs ssl.enabled.protocols of TLSv1.2 and TLSv1.3"),
    ],
)  # fmt: skip
def test_a_missing_setting_is_named(texts: dict[str, str], problem: str) -> None:
    """In one sentence, with the listener's name."""
    with pytest.raises(TlsError, match="OUTSIDE") as reported:
        context_of(BrokerSettings(1, texts), ENDPOINT)
    assert problem in str(reported.value)
    assert context_of(BrokerSettings(1, texts), Endpoint("INSIDE", "PLAINTEXT", "127.0.0.1", 0)) is None


def test_a_certificate_may_be_in_the_settings() -> None:
    """Its text is the setting's value; trusted certificates may be text too."""
    ca = trustme.CA()
    issued = ca.issue_cert("localhost")
    texts = {
        "listener.name.outside.ssl.keystore.type": "PEM",
        "listener.name.outside.ssl.keystore.certificate.chain": issued.cert_chain_pems[0].bytes().decode(),
        "listener.name.outside.ssl.keystore.key": issued.private_key_pem.bytes().decode(),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": ca.cert_pem.bytes().decode(),
        "ssl.client.auth": "required",
    }
    context = context_of(BrokerSettings(1, texts), ENDPOINT)
    assert context is not None
    assert len(context.get_ca_certs()) == 1


@pytest.mark.parametrize(
    ("protocol", "texts", "mode"),
    [
        ("SSL", {"ssl.client.auth": "required"}, ssl.CERT_REQUIRED),
        ("SASL_SSL", {"ssl.client.auth": "required"}, ssl.CERT_NONE),
        ("SASL_SSL", {f"{OF}.ssl.client.auth": "required"}, ssl.CERT_REQUIRED),
        ("SASL_SSL", {"ssl.client.auth": "required", f"{OF}.ssl.client.auth": "requested"}, ssl.CERT_OPTIONAL),
    ],
)
def test_with_sasl_certificates_are_asked_for_by_the_listeners_own_setting(
    protocol: str, texts: dict[str, str], mode: ssl.VerifyMode
) -> None:
    """The broker's is for listeners with TLS alone (KIP-684): clients with a password need no certificate."""
    issued = trustme.CA().issue_cert("localhost")
    own = {
        f"{OF}.ssl.keystore.type": "PEM",
        f"{OF}.ssl.keystore.certificate.chain": issued.cert_chain_pems[0].bytes().decode(),
        f"{OF}.ssl.keystore.key": issued.private_key_pem.bytes().decode(),
    }
    context = context_of(BrokerSettings(1, {**own, **texts}), Endpoint("OUTSIDE", protocol, "127.0.0.1", 0))
    assert context is not None
    assert context.verify_mode is mode
