"""Java's stores of keys and certificates."""

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
import trustme

from broker.access.tls.context import TlsError, context_of
from broker.access.tls.stores import StoreError, read_store
from broker.settings import BrokerSettings
from broker.settings.endpoints import Endpoint
from tests.broker.server.test_handshakes import store

ENDPOINT = Endpoint("SSL", "SSL", "127.0.0.1", 0)


def keytool(*arguments: str) -> None:
    """Run Java's tool."""
    program = shutil.which("keytool")
    if program is None:
        pytest.skip("keytool of a JDK is not there")
    subprocess.run([program, *arguments], check=True, capture_output=True)


def test_a_pkcs12_store_has_key_and_certificates(tmp_path: Path) -> None:
    """With its password; not with another one, and not where it is damaged."""
    issued = trustme.CA().issue_cert("localhost")
    path = tmp_path / "own.p12"
    path.write_bytes(store(issued))
    key_store = read_store(str(path), "secret", None)
    assert key_store.chain.strip() == issued.cert_chain_pems[0].bytes().decode().strip()
    assert key_store.key.startswith("-----BEGIN PRIVATE KEY")
    for password, data in (("wrong", store(issued)), ("secret", b"nonsense"), ("secret", b"\xfe\xed\xfe\xed\0\0\0\2")):
        path.write_bytes(data)
        with pytest.raises(StoreError):
            read_store(str(path), password, None)


@pytest.mark.interop
@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_stores_of_keytool_are_read(tmp_path: Path, kind: str) -> None:
    """A key with a password of its own where the format has that; a store of trusted certificates."""
    own, trusted, certificate = (str(tmp_path / name) for name in ("own", "trusted", "certificate"))
    key_password = "key-secret" if kind == "JKS" else "secret"
    common = ("-storetype", kind, "-storepass", "secret", "-alias", "own")
    keytool("-genkeypair", *common, "-keystore", own, "-keyalg", "RSA", "-dname", "CN=localhost",
            "-keypass", key_password)  # fmt: skip
    keytool("-exportcert", *common, "-keystore", own, "-rfc", "-file", certificate)
    keytool("-importcert", *common, "-keystore", trusted, "-noprompt", "-file", certificate)
    store = read_store(own, "secret", key_password)
    exported = Path(certificate).read_text(encoding="ascii").replace("\r", "")
    assert store.chain.split() == exported.split()
    assert read_store(trusted, "secret", None).trusted.split() == exported.split()
    settings = {
        "ssl.keystore.location": own, "ssl.keystore.type": kind, "ssl.keystore.password": "secret",
        "ssl.key.password": key_password, "ssl.truststore.location": trusted, "ssl.truststore.type": kind,
        "ssl.truststore.password": "secret", "ssl.client.auth": "required",
    }  # fmt: skip
    context = context_of(BrokerSettings(1, settings), ENDPOINT)
    assert context is not None
    assert context.cert_store_stats()["x509"] == 1
    with pytest.raises(TlsError, match="password"):
        context_of(BrokerSettings(1, {**settings, "ssl.keystore.password": "wrong"}), ENDPOINT)


def test_cipher_suites_limit_what_is_offered(tmp_path: Path) -> None:
    """By Java's names: suites of TLS 1.2 alone end TLS 1.3, and the other way round; unknown ones are refused."""
    path = tmp_path / "own.pem"
    trustme.CA().issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(path))
    texts = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(path)}

    def context_with(suites: str) -> ssl.SSLContext:
        context = context_of(BrokerSettings(1, {**texts, "ssl.cipher.suites": suites}), ENDPOINT)
        assert context is not None
        return context

    older = context_with("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256")
    names = [each["name"] for each in older.get_ciphers() if each["protocol"] != "TLSv1.3"]
    assert names == ["ECDHE-RSA-AES128-GCM-SHA256"]
    assert older.maximum_version is ssl.TLSVersion.TLSv1_2
    assert context_with("TLS_AES_128_GCM_SHA256").minimum_version is ssl.TLSVersion.TLSv1_3
    both = context_with("TLS_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256")
    assert (both.minimum_version, both.maximum_version) == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
    for wrong in ("TLS_NO_WITH_SUCH", "nonsense"):
        with pytest.raises(TlsError, match="suites"):
            context_with(wrong)
