"""TLS contexts of listeners, built from Kafka's settings (core G.1).

Certificates and keys are read from PEM, in files or in the settings themselves (KIP-651), or from Java key stores.
"""

import os
import ssl
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from broker.access.tls.alerts import AlertingContext
from broker.access.tls.ciphers import is_of_tls_13, openssl_name
from broker.access.tls.principals import MappingError, PrincipalMapping
from broker.access.tls.stores import StoreError, read_store
from broker.settings import BrokerSettings
from broker.settings.endpoints import Endpoint

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_VERIFY = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_FILES = ("ssl.keystore.location", "ssl.truststore.location")
_PASSWORDS = ("ssl.keystore.password", "ssl.truststore.password", "ssl.key.password")
_NAMES = (
    *_FILES,
    *_PASSWORDS,
    "ssl.keystore.type",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.truststore.type",
    "ssl.truststore.certificates",
    "ssl.client.auth",
    "ssl.enabled.protocols",
    "ssl.cipher.suites",
)
Identity = tuple[object, ...]


class TlsError(ValueError):
    """A listener cannot use TLS; the message is one sentence with the remedy."""


def context_of(settings: BrokerSettings, endpoint: Endpoint) -> AlertingContext | None:
    """Return the TLS context of a listener; ``None`` if it does not use TLS.

    Raises:
        TlsError: certificate or key are missing, or cannot be read.
    """
    return _TlsSettings(settings, endpoint).context() if endpoint.has_tls else None


def mapping_of(settings: BrokerSettings, listener: str) -> PrincipalMapping:
    """Return the rules by which a listener maps the names in certificates. Raises TlsError."""
    try:
        return PrincipalMapping(str(settings.of_listener(listener, "ssl.principal.mapping.rules") or "DEFAULT"))
    except MappingError as error:
        raise TlsError(f"listener {listener}: {error}") from error


def identity_of(settings: BrokerSettings, listener: str) -> Identity:
    """Return what a listener's context depends on: values of settings, and modification times of files."""
    values = [settings.of_listener(listener, name) for name in _NAMES]
    times = []
    for name in _FILES:
        path = settings.of_listener(listener, name)
        try:
            times.append(None if path is None else Path(str(path)).stat().st_mtime_ns)
        except OSError:
            times.append(None)
    return (*values, *times)


class _TlsSettings:
    """The TLS settings of one listener."""

    def __init__(self, settings: BrokerSettings, endpoint: Endpoint) -> None:
        self._settings, self._listener, self._has_sasl = settings, endpoint.name, endpoint.has_sasl

    def _text(self, name: str) -> str | None:
        value = self._settings.of_listener(self._listener, name)
        return None if value is None else str(value)

    def _names(self, name: str) -> list[str]:
        value = self._settings.of_listener(self._listener, name)
        return [str(element) for element in value] if isinstance(value, list | tuple) else []

    def context(self) -> AlertingContext:
        context = AlertingContext(ssl.PROTOCOL_TLS_SERVER)
        context.arrived = deque()
        self._limit_versions(context)
        self._load_own(context)
        context.verify_mode = _VERIFY[self._client_auth()]
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as in Java, a trusted certificate need not be a root
        self._load_trusted(context)
        return context

    def _client_auth(self) -> str:
        """Return ssl.client.auth; with SASL only the listener's own setting counts (KIP-684)."""
        if self._has_sasl:
            return str(self._settings.of_listener_alone(self._listener, "ssl.client.auth") or "none")
        return str(self._text("ssl.client.auth"))

    def _limit_versions(self, context: ssl.SSLContext) -> None:
        enabled, suites = self._names("ssl.enabled.protocols"), self._names("ssl.cipher.suites")
        versions = [_VERSIONS[name] for name in enabled if name in _VERSIONS]
        if not versions:
            supported = " and ".join(_VERSIONS)
            raise TlsError(
                f"listener {self._listener} needs ssl.enabled.protocols of {supported}, not {tuple(enabled)}"
            )
        if suites:
            older = [name for suite in suites if (name := openssl_name(suite)) is not None]
            newer = any(map(is_of_tls_13, suites))
            versions = [version for version in versions if (newer if version is ssl.TLSVersion.TLSv1_3 else older)]
            try:
                if not versions:
                    raise ssl.SSLError("no suite of an enabled protocol")
                if older:
                    context.set_ciphers(":".join(older))
            except ssl.SSLError as error:
                raise TlsError(
                    f"listener {self._listener} can use none of the suites in ssl.cipher.suites={','.join(suites)}; "
                    f"give names such as TLS_AES_256_GCM_SHA384 or TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
                ) from error
        context.minimum_version, context.maximum_version = min(versions), max(versions)

    def _load_own(self, context: ssl.SSLContext) -> None:
        location, chain, key = (self._text(f"ssl.keystore.{part}") for part in ("location", "certificate.chain", "key"))
        if location is None and (chain is None or key is None):
            raise TlsError(
                f"listener {self._listener} needs a certificate: set ssl.keystore.type=PEM and ssl.keystore.location "
                "to a file with the certificate and its key, or ssl.keystore.location to a PKCS12 or JKS store"
            )
        self._check_store("keystore", ("key", "certificate.chain"))
        password = self._text("ssl.key.password")
        try:
            if location is not None and self._is_pem("ssl.keystore.type"):
                # Without any password OpenSSL would ask for one at the terminal, and the server would wait for it.
                context.load_cert_chain(location, password=password or "")
                return
            if location is not None:
                contents = read_store(location, self._text("ssl.keystore.password"), password)
                key, chain, password = contents.key, contents.chain, None
                if not key:
                    raise StoreError("it holds no private key")
            with _written(f"{chain}\n{key}\n") as file:
                context.load_cert_chain(file, password=password or "")
        except (OSError, ValueError) as error:
            remedy = "; an encrypted key needs ssl.key.password" if isinstance(error, ssl.SSLError) else ""
            raise TlsError(f"the certificate of listener {self._listener} cannot be read: {error}{remedy}") from error

    def _load_trusted(self, context: ssl.SSLContext) -> None:
        location, certificates = self._text("ssl.truststore.location"), self._text("ssl.truststore.certificates")
        if location is None and certificates is None:
            if context.verify_mode is not ssl.CERT_NONE:
                context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
            return
        self._check_store("truststore", ("certificates",))
        try:
            if location is not None and self._is_pem("ssl.truststore.type"):
                context.load_verify_locations(location)
                return
            if location is not None:
                certificates = read_store(location, self._text("ssl.truststore.password"), None).trusted
            context.load_verify_locations(cadata=str(certificates))
        except (OSError, ValueError) as error:
            message = f"the trusted certificates of listener {self._listener} cannot be read: {error}"
            raise TlsError(message) from error

    def _check_store(self, store: str, parts: Sequence[str]) -> None:
        """Refuse settings of a store that exclude each other (DefaultSslEngineFactory). Raises TlsError."""
        prefix = f"ssl.{store}."
        inline = [f"{prefix}{part}" for part in parts if self._text(f"{prefix}{part}") is not None]
        location, kind = self._text(f"{prefix}location"), self._text(f"{prefix}type")
        if inline and location is not None:
            raise TlsError(f"listener {self._listener} needs {prefix}location or {inline[0]}, not both")
        if inline and kind != "PEM":
            raise TlsError(f"listener {self._listener} needs {prefix}type=PEM for {inline[0]}, not {kind}")
        if (inline or kind == "PEM") and self._text(f"{prefix}password") is not None:
            raise TlsError(f"listener {self._listener} cannot have {prefix}password, because {prefix}type is PEM")

    def _is_pem(self, name: str) -> bool:
        kind = str(self._text(name))
        if kind != "PEM" and kind.upper() not in ("JKS", "PKCS12"):
            raise TlsError(f"listener {self._listener} needs {name} of PEM, PKCS12 or JKS, not {kind}")
        return kind == "PEM"


@contextmanager
def _written(text: str) -> Iterator[Path]:
    """Write a temporary file that only this user can read: Python loads keys only from files."""
    handle, name = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        yield Path(name)
    finally:
        Path(name).unlink()
