"""Keys and certificates from Java key stores: PEM (KIP-651), PKCS12 and JKS, converted to PEM.

A setting gives the type of a store, but Java reads PKCS12 if JKS is configured, and the reverse
(`keystore.type.compat`), so the first bytes decide. PKCS12 is read by `cryptography`. JKS is Sun's own format, which no
maintained library reads; its layout is simple, and its keys are protected by a stream of SHA-1 digests.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from broker.access.tls.principals import content_of

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

_MAGIC = 0xFEEDFEED  # of JKS; a PKCS12 store begins with an ASN.1 sequence
_KEY, _CERTIFICATE = 1, 2
_WHITENER = b"Mighty Aphrodite"
_SHA1_BYTES = 20  # 160 bits
_EXTRA = "stores of other types than PEM need the package cryptography: pip install 'understudy-kafka[security]'"


class StoreError(ValueError):
    """A store cannot be read; the message is the rest of a sentence."""


class Contents(NamedTuple):
    """The contents of a store, in PEM: the first key with its certificate chain, and all trusted certificates."""

    key: str
    chain: str
    trusted: str


def read_store(path: str, password: str | None, key_password: str | None) -> Contents:
    """Read a PKCS12 or JKS store.

    Args:
        path: the file.
        password: the password of the store; a JKS store without one is read unchecked, as in Java.
        key_password: the password of the key, if it has its own.

    Raises:
        StoreError: it is damaged or of another format, or the password is wrong.
        OSError: the file cannot be read.
    """
    data = Path(path).read_bytes()
    try:
        if data[:4] == _MAGIC.to_bytes(4, "big"):
            return _read_jks(data, password, key_password)
        return _read_pkcs12(data, password)
    except ImportError as error:
        raise StoreError(_EXTRA) from error


def _read_pkcs12(data: bytes, password: str | None) -> Contents:
    from cryptography.hazmat.primitives.serialization import pkcs12  # noqa: PLC0415 - optional

    try:
        entries = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError as error:
        raise StoreError(f"not a PKCS12 or JKS store, or the password is wrong ({error})") from error
    chain = [entries.cert, *entries.additional_certs] if entries.cert is not None else list(entries.additional_certs)
    certificates = [entry.certificate for entry in chain]
    return Contents("" if entries.key is None else _pem_key(entries.key), _pem(certificates), _pem(certificates))


# --- JKS -------------------------------------------------------------------------------------------------------------


class _Reader:
    """Reads the format of Java's DataOutputStream."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0

    def take(self, size: int) -> bytes:
        """Read this many bytes. Raises StoreError."""
        piece = self._data[self.at : self.at + size]
        if len(piece) != size:
            raise StoreError("the JKS store is truncated")
        self.at += size
        return piece

    def number(self, size: int) -> int:
        """Read a big-endian integer of this many bytes."""
        return int.from_bytes(self.take(size), "big")

    def block(self) -> bytes:
        """Read bytes that are preceded by their size."""
        return self.take(self.number(4))  # an int32

    def skip_text(self) -> None:
        """Skip a string that is preceded by its size."""
        self.take(self.number(2))


def _read_jks(data: bytes, password: str | None, key_password: str | None) -> Contents:
    from cryptography.hazmat.primitives.serialization import load_der_private_key  # noqa: PLC0415 - optional
    from cryptography.x509 import load_der_x509_certificate  # noqa: PLC0415

    if password is not None:
        digest = hashlib.sha1(_utf16(password) + _WHITENER + data[:-_SHA1_BYTES], usedforsecurity=False).digest()
        if digest != data[-_SHA1_BYTES:]:
            raise StoreError("the JKS store was damaged, or the password is wrong")
    reader = _Reader(data[:-_SHA1_BYTES])
    reader.number(4)  # the magic number; the integers of a JKS store have four bytes
    version = reader.number(4)
    key, chain, trusted = "", "", []
    for _ in range(reader.number(4)):
        kind = reader.number(4)
        reader.skip_text()  # the alias
        reader.number(8)  # its creation time
        protected = reader.block() if kind == _KEY else b""
        certificates = []
        for _ in range(reader.number(4) if kind == _KEY else 1):
            if version > 1:
                reader.skip_text()  # X.509
            certificates.append(load_der_x509_certificate(reader.block()))
        if kind not in (_KEY, _CERTIFICATE):
            raise StoreError(f"the JKS store has an entry of kind {kind}, which is not supported")
        if kind == _KEY and not key:
            plain = _unprotected(protected, key_password or password or "")
            key, chain = _pem_key(load_der_private_key(plain, None)), _pem(certificates)
        elif kind == _CERTIFICATE:
            trusted += certificates
    return Contents(key, chain, _pem(trusted))


def _unprotected(protected: bytes, password: str) -> bytes:
    """Remove Sun's protection (1.3.6.1.4.1.42.2.17.1.1) from a key: XOR with a chain of SHA-1 digests."""
    whole, _ = content_of(protected, 0)  # EncryptedPrivateKeyInfo
    _, after_algorithm = content_of(protected, whole)
    begin, end = content_of(protected, after_algorithm)
    octets, secret = protected[begin:end], _utf16(password)
    digest, stream = octets[:_SHA1_BYTES], b""
    body, check = octets[_SHA1_BYTES:-_SHA1_BYTES], octets[-_SHA1_BYTES:]
    while len(stream) < len(body):
        digest = hashlib.sha1(secret + digest, usedforsecurity=False).digest()
        stream += digest
    plain = bytes(left ^ right for left, right in zip(body, stream, strict=False))
    if hashlib.sha1(secret + plain, usedforsecurity=False).digest() != check:
        raise StoreError("the password of the key in the JKS store is wrong")
    return plain


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be")


# --- PEM -------------------------------------------------------------------------------------------------------------


def _pem(certificates: "Sequence[Certificate]") -> str:
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415 - optional

    return "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in certificates)


def _pem_key(key: object) -> str:
    from cryptography.hazmat.primitives import serialization as forms  # noqa: PLC0415 - optional

    assert hasattr(key, "private_bytes")
    text: bytes = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption())
    return text.decode()
