"""Settings for a secured cluster: TLS and SASL, from a properties file of Kafka's tools or of librdkafka."""

import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from protocol.client.sasl import SCRAM, Credentials
from storage.checkpoints import decode_properties

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", *SCRAM)
_NAMES: Final = {
    "security.protocol": "protocol",
    "sasl.mechanism": "mechanism",
    "sasl.mechanisms": "mechanism",
    "sasl.username": "username",
    "sasl.password": "password",
    "ssl.truststore.location": "authorities",
    "ssl.ca.location": "authorities",
    "ssl.keystore.location": "certificate",
    "ssl.certificate.location": "certificate",
    "ssl.key.location": "key",
    "ssl.key.password": "key_password",
}
_IDENTIFICATION: Final = "ssl.endpoint.identification.algorithm"
_IGNORED: Final = ("ssl.truststore.type", "ssl.keystore.type", "bootstrap.servers")


class SecurityError(ValueError):
    """An unusable client configuration; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Security:
    """Protocol and credentials. Files are PEM."""

    protocol: str = "PLAINTEXT"
    mechanism: str = "PLAIN"
    username: str = ""
    password: str = ""
    authorities: str | None = None
    certificate: str | None = None
    key: str | None = None
    key_password: str | None = None
    checks_host: bool = True

    @property
    def has_tls(self) -> bool:
        """Return whether connections are encrypted."""
        return self.protocol.endswith("SSL")

    @property
    def has_sasl(self) -> bool:
        """Return whether clients authenticate with SASL."""
        return self.protocol.startswith("SASL")

    @property
    def credentials(self) -> Credentials:
        """Return what a client authenticates with."""
        return Credentials(self.mechanism, self.username, self.password)

    def context(self) -> ssl.SSLContext:
        """Return the TLS settings. Raises SecurityError: a file cannot be read."""
        try:
            tls_context = ssl.create_default_context(cafile=self.authorities)
            if not self.checks_host:
                tls_context.check_hostname = False
            if self.certificate is not None:
                # Without any password OpenSSL would ask for one at the terminal.
                tls_context.load_cert_chain(self.certificate, self.key, self.key_password or "")
        except (OSError, ssl.SSLError) as error:
            raise SecurityError(f"TLS files cannot be used (PEM is needed): {error}") from None
        return tls_context


def scram_nonce() -> str:
    """Return a text that cannot be predicted."""
    # 18 bytes: ours, 144 bits cannot be guessed.
    return os.urandom(18).hex()  # noqa: TID251 - a nonce must be unpredictable


def read_security(path: str | None) -> Security:
    """Read the security settings of a client configuration file; without a file, plaintext.

    Raises:
        SecurityError: the file cannot be read, or has an unknown setting.
    """
    if path is None:
        return Security()
    try:
        properties = decode_properties(Path(path).read_bytes())
    except OSError as error:
        raise SecurityError(f"--client-config {path} cannot be read: {error.strerror}") from None
    return from_properties(properties)


def from_properties(properties: Mapping[str, str]) -> Security:
    """Return security settings from properties. Raises SecurityError."""
    fields: dict[str, str] = {}
    for name, value in properties.items():
        if name == "sasl.jaas.config":
            fields |= _from_jaas(value)
        elif name in _NAMES:
            fields[_NAMES[name]] = value
        elif name not in {_IDENTIFICATION, *_IGNORED}:
            raise SecurityError(f"--client-config: {name} is not known; there are {', '.join(sorted(_NAMES))}")
    security = Security(**fields, checks_host=properties.get(_IDENTIFICATION, "https") not in {"", "none"})
    if security.protocol not in PROTOCOLS:
        raise SecurityError(f"--client-config: security.protocol is one of {', '.join(PROTOCOLS)}")
    if security.has_sasl and security.mechanism not in MECHANISMS:
        raise SecurityError(f"--client-config: sasl.mechanism is one of {', '.join(MECHANISMS)}")
    return security


def _from_jaas(text: str) -> dict[str, str]:
    credentials = dict(re.findall(r'(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"', text))
    if set(credentials) != {"username", "password"}:
        raise SecurityError("--client-config: sasl.jaas.config has no username and password")
    return {name: re.sub(r"\\(.)", r"\1", value) for name, value in credentials.items()}
