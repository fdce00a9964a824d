"""Settings for a secured cluster: TLS and SASL, from a properties file of Kafka's tools or of librdkafka."""

import base64
import hashlib
import hmac
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from storage.checkpoints import decode_properties

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
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
_LEAST_ITERATIONS: Final = 4096
"""Minimum of Kafka's clients (``ScramMechanism``): with fewer it would be easy to find the password."""
_MOST_ITERATIONS: Final = 100_000
"""About a tenth of a second of work. Kafka's brokers store at most 16,384; its clients accept any number."""
_SHOWN_BYTES: Final = 200
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

    def context(self) -> ssl.SSLContext:
        """Return the TLS settings. Raises SecurityError: a file cannot be read."""
        try:
            made = ssl.create_default_context(cafile=self.authorities)
            if not self.checks_host:
                made.check_hostname = False
            if self.certificate is not None:
                # Without any password OpenSSL would ask for one at the terminal.
                made.load_cert_chain(self.certificate, self.key, self.key_password or "")
        except (OSError, ssl.SSLError) as error:
            raise SecurityError(f"TLS files cannot be used (PEM is needed): {error}") from None
        return made


def read_security(path: str | None) -> Security:
    """Read the security settings of a client configuration file; without a file, plaintext.

    Raises:
        SecurityError: the file cannot be read, or has an unknown setting.
    """
    if path is None:
        return Security()
    try:
        given = decode_properties(Path(path).read_bytes())
    except OSError as error:
        raise SecurityError(f"--client-config {path} cannot be read: {error.strerror}") from None
    return from_properties(given)


def from_properties(given: Mapping[str, str]) -> Security:
    """Return security settings from properties. Raises SecurityError."""
    fields: dict[str, str] = {}
    for name, value in given.items():
        if name == "sasl.jaas.config":
            fields |= _from_jaas(value)
        elif name in _NAMES:
            fields[_NAMES[name]] = value
        elif name not in {_IDENTIFICATION, *_IGNORED}:
            raise SecurityError(f"--client-config: {name} is not known; there are {', '.join(sorted(_NAMES))}")
    made = Security(**fields, checks_host=given.get(_IDENTIFICATION, "https") not in {"", "none"})
    if made.protocol not in PROTOCOLS:
        raise SecurityError(f"--client-config: security.protocol is one of {', '.join(PROTOCOLS)}")
    if made.has_sasl and made.mechanism not in {"PLAIN", *MECHANISMS}:
        raise SecurityError(f"--client-config: sasl.mechanism is one of PLAIN, {', '.join(MECHANISMS)}")
    return made


def _from_jaas(text: str) -> dict[str, str]:
    found = dict(re.findall(r'(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"', text))
    if set(found) != {"username", "password"}:
        raise SecurityError("--client-config: sasl.jaas.config has no username and password")
    return {name: re.sub(r"\\(.)", r"\1", value) for name, value in found.items()}


class Scram:
    """The client side of SCRAM (RFC 5802): `first`, `final` for the server's reply, `check` for its last message."""

    def __init__(self, security: Security) -> None:
        self._hash = MECHANISMS[security.mechanism]
        self._password = security.password.encode()
        self._nonce = os.urandom(18).hex()  # noqa: TID251 - a nonce must be unpredictable
        name = security.username.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={self._nonce}"
        self._signature = b""

    def first(self) -> bytes:
        """Return the client's first message."""
        return f"n,,{self._bare}".encode()

    def final(self, answer: bytes) -> bytes:
        """Return the client's proof. Raises SecurityError: the server's message is invalid."""
        fields = _fields(answer)
        nonce, count = fields.get("r", ""), fields.get("i", "")
        try:
            if not nonce.startswith(self._nonce):
                raise ValueError("another nonce")
            answer_text, iterations = answer.decode(), int(count)
            salt = base64.b64decode(fields.get("s", ""), validate=True)
        except ValueError as error:
            raise SecurityError(f"the server's SCRAM message is invalid: {answer[:_SHOWN_BYTES]!r}") from error
        if not _LEAST_ITERATIONS <= iterations <= _MOST_ITERATIONS:
            bounds = f"{_LEAST_ITERATIONS} to {_MOST_ITERATIONS}"
            raise SecurityError(f"the server asks for {iterations} iterations of SCRAM, and not for {bounds}")
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        client_key = self._hmac(salted, b"Client Key")
        without_proof = f"c=biws,r={nonce}"
        signed = f"{self._bare},{answer_text},{without_proof}".encode()
        stored = hashlib.new(self._hash, client_key).digest()
        proof = bytes(one ^ two for one, two in zip(client_key, self._hmac(stored, signed), strict=True))
        self._signature = self._hmac(self._hmac(salted, b"Server Key"), signed)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def check(self, answer: bytes) -> None:
        """Check that the server knows the password too. Raises SecurityError."""
        if not hmac.compare_digest(_fields(answer).get("v", "").encode(), base64.b64encode(self._signature)):
            raise SecurityError("the server's SCRAM signature is wrong: it does not know the password")

    def _hmac(self, key: bytes, text: bytes) -> bytes:
        return hmac.new(key, text, self._hash).digest()


def _fields(message: bytes) -> dict[str, str]:
    pairs = (part.partition("=") for part in message.decode(errors="replace").split(","))
    return {name: value for name, _, value in pairs}
