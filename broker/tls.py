"""TLS of a listener, from Kafka's own settings (core G.1; PEM stores: KIP-651).

Certificates and keys are PEM, in files or in the settings themselves: what Python's ``ssl`` reads. Java's own formats
(JKS, PKCS12) are refused with a sentence that says so.
"""

import asyncio
import os
import ssl
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from broker.endpoints import Endpoint
from broker.settings import BrokerSettings

ANONYMOUS = "User:ANONYMOUS"
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_VERIFY = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
# How Java writes the parts of a distinguished name (RFC 2253); others keep the name that OpenSSL has for them.
_SHORT = {
    "commonName": "CN",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}


class TlsError(ValueError):
    """The listener cannot be encrypted; the message is one sentence that says what to do."""


def context_of(settings: BrokerSettings, endpoint: Endpoint) -> ssl.SSLContext | None:
    """What a listener encrypts with; ``None`` where it does not.

    Raises:
        TlsError: certificate or key are missing, or cannot be read.
    """
    if not endpoint.has_tls:
        return None
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _limit_versions(made, settings.of_listener(endpoint.name, "ssl.enabled.protocols"), endpoint.name)
    _load_own(made, settings, endpoint.name)
    made.verify_mode = _VERIFY[str(settings.of_listener(endpoint.name, "ssl.client.auth"))]
    _load_trusted(made, settings, endpoint.name)
    return made


def principal_of(transport: asyncio.BaseTransport) -> str:
    """Who the peer's certificate names, as ``User:<distinguished name>``; nobody where there is none."""
    certificate = transport.get_extra_info("peercert")
    if not certificate:
        return ANONYMOUS
    return f"User:{_distinguished(certificate['subject'])}"


def _distinguished(subject: Sequence[Sequence[Sequence[str]]]) -> str:
    """The last part first, as RFC 2253 wants it."""
    parts = ["+".join(f"{_SHORT.get(name, name)}={_escaped(value)}" for name, value in rdn) for rdn in subject]
    return ",".join(reversed(parts))


def _escaped(value: str) -> str:
    text = "".join(f"\\{each}" if each in ',+"\\<>;' else each for each in value)
    if text[:1] in (" ", "#"):
        text = f"\\{text}"
    return f"{text[:-1]}\\ " if text.endswith(" ") and len(text) > 1 else text


def _limit_versions(made: ssl.SSLContext, enabled: Any, listener: str) -> None:
    versions = [_VERSIONS[name] for name in enabled if name in _VERSIONS]
    if not versions:
        raise TlsError(f"listener {listener} needs ssl.enabled.protocols of {' and '.join(_VERSIONS)}, not {enabled}")
    made.minimum_version, made.maximum_version = min(versions), max(versions)


def _load_own(made: ssl.SSLContext, settings: BrokerSettings, listener: str) -> None:
    def value(name: str) -> str | None:
        found = settings.of_listener(listener, name)
        return None if found is None else str(found)

    location, chain, key = (value(f"ssl.keystore.{each}") for each in ("location", "certificate.chain", "key"))
    if location is None and (chain is None or key is None):
        raise TlsError(
            f"listener {listener} needs a certificate: set ssl.keystore.type=PEM and ssl.keystore.location to a file "
            "with the certificate and its key"
        )
    _check_pem(value("ssl.keystore.type"), "ssl.keystore.type", listener)
    password = value("ssl.key.password")
    try:
        if location is not None:
            made.load_cert_chain(location, password=password)
        else:
            with _written(f"{chain}\n{key}\n") as file:
                made.load_cert_chain(file, password=password)
    except (OSError, ValueError) as error:
        raise TlsError(f"the certificate of listener {listener} cannot be read: {error}") from error


def _load_trusted(made: ssl.SSLContext, settings: BrokerSettings, listener: str) -> None:
    location = settings.of_listener(listener, "ssl.truststore.location")
    certificates = settings.of_listener(listener, "ssl.truststore.certificates")
    if location is None and certificates is None:
        if made.verify_mode is not ssl.CERT_NONE:
            made.load_default_certs(ssl.Purpose.CLIENT_AUTH)
        return
    _check_pem(settings.of_listener(listener, "ssl.truststore.type"), "ssl.truststore.type", listener)
    try:
        if location is not None:
            made.load_verify_locations(str(location))
        else:
            made.load_verify_locations(cadata=str(certificates))
    except (OSError, ValueError) as error:
        raise TlsError(f"the trusted certificates of listener {listener} cannot be read: {error}") from error


def _check_pem(kind: Any, name: str, listener: str) -> None:
    if str(kind).upper() != "PEM":
        raise TlsError(f"listener {listener} needs {name}=PEM: stores of type {kind} are not read here")


@contextmanager
def _written(text: str) -> Iterator[Path]:
    """A file that nobody else may read, for as long as it takes: Python takes a key from nowhere else."""
    handle, name = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        yield Path(name)
    finally:
        Path(name).unlink()
