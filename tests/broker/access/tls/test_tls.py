"""Certificates and keys of listeners, as Kafka's settings give them (core G.1)."""

from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import serialization as form

from broker.access.tls.context import TlsError, context_of
from broker.settings import BrokerSettings
from broker.settings.endpoints import Endpoint

CERTIFICATE = trustme.CA().issue_cert("localhost")
KEY, CHAIN = CERTIFICATE.private_key_pem.bytes().decode(), CERTIFICATE.cert_chain_pems[0].bytes().decode()
PEM = {"ssl.keystore.type": "PEM"}
INLINE = PEM | {"ssl.keystore.key": KEY, "ssl.keystore.certificate.chain": CHAIN}
TRUST = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": CHAIN}


def problem(settings: dict[str, str]) -> str | None:
    """Why a listener with these settings cannot be opened."""
    try:
        context_of(BrokerSettings(1, settings), Endpoint("X", "SSL", "127.0.0.1", 0))
    except TlsError as error:
        return str(error)
    return None


def encrypted() -> str:
    """The key, with the password `secret`."""
    key = form.load_pem_private_key(KEY.encode(), None)
    kind = form.BestAvailableEncryption(b"secret")
    return key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, kind).decode()


def test_a_key_without_its_password_is_refused_without_asking_for_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """OpenSSL asks at the terminal, and the server would wait for the answer, also when it reads a new certificate."""
    inline = INLINE | {"ssl.keystore.key": encrypted()}
    file = tmp_path / "own.pem"
    file.write_text(CHAIN + encrypted())
    of_file = PEM | {"ssl.keystore.location": str(file)}
    for settings in (inline, of_file):
        assert "the certificate of listener X cannot be read" in str(problem(settings))
        assert problem(settings | {"ssl.key.password": "secret"}) is None
    assert "pass phrase" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            INLINE | {"ssl.keystore.location": "x"},
            "listener X needs ssl.keystore.location or ssl.keystore.key, not both",
        ),
        (INLINE | {"ssl.keystore.type": "JKS"}, "listener X needs ssl.keystore.type=PEM for ssl.keystore.key, not JKS"),
        (
            INLINE | {"ssl.keystore.password": "x"},
            "listener X cannot have ssl.keystore.password, because ssl.keystore.",
        ),
        (
            INLINE | TRUST | {"ssl.truststore.location": "x"},
            "listener X needs ssl.truststore.location or ssl.truststore.certificates, not both",
        ),
        (INLINE | TRUST | {"ssl.truststore.type": "JKS"}, "ssl.truststore.type=PEM for ssl.truststore.certificates"),
        (INLINE | TRUST | {"ssl.truststore.password": "x"}, "listener X cannot have ssl.truststore.password, because"),
        (
            {"ssl.keystore.type": "pem", "ssl.keystore.location": "x"},
            "listener X needs ssl.keystore.type of PEM, PKCS12 or JKS, not pem",
        ),
    ],
)
def test_settings_of_a_store_that_exclude_each_other_are_refused(settings: dict[str, str], sentence: str) -> None:
    """As by Kafka (DefaultSslEngineFactory)."""
    assert problem(INLINE | TRUST) is None
    assert sentence in str(problem(settings))
