"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802; Kafka's ``ScramSaslServer`` and ``ScramFormatter``, core G.4)."""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable
from typing import NamedTuple

from broker.access.sasl.exchange import Identity, Refused
from broker.coordination.metadata.scram import LEAST_ITERATIONS
from protocol.deferred import dataclass
from protocol.log_records.metadata_security import UserScramCredentialRecord

_HASHES = {1: "sha256", 2: "sha512"}
_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
_EXTENSIONS = r"(?:,[A-Za-z]+=[\x01-\x2b\x2d-\x7f]+)*"
_BASE64 = r"[A-Za-z0-9+/]+={0,2}"
_FIRST = re.compile(
    rf"n,(?:a=(?P<authorization>{_NAME}))?,"
    rf"(?P<bare>(?:m=[^,]+,)?n=(?P<user>{_NAME}),r=(?P<nonce>{_PRINTABLE})(?P<extensions>{_EXTENSIONS}))"
)
_FINAL = re.compile(rf"(?P<unproved>c={_BASE64},r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})")


@dataclass(frozen=True, slots=True)
class _Challenge:
    """The state after the first message and its response."""

    nonce: str
    credential: UserScramCredentialRecord
    identity: Identity
    """The identity to set if the proof is valid."""
    messages: str
    """Both messages, as the proof signs them."""


class Token(NamedTuple):
    """A delegation token: its owner, its HMAC, and when it expires."""

    owner: str
    proof: bytes
    expires_at_ms: int


class ScramExchange:
    """Two steps: user name, then proof. ``find`` returns a user's stored credential, ``token`` a delegation token."""

    def __init__(
        self,
        mechanism: int,
        find: Callable[[str], UserScramCredentialRecord | None],
        new_nonce: Callable[[], str],
        token: Callable[[str], Token | None] = lambda _: None,
    ) -> None:
        self._mechanism, self._hash = mechanism, _HASHES[mechanism]
        self._find, self._new_nonce, self._token = find, new_nonce, token
        self._challenge: _Challenge | None = None
        self.identity: Identity | None = None

    def step(self, token: bytes) -> bytes:
        """See :class:`~broker.access.sasl.exchange.Exchange`."""
        try:
            message = token.decode()
        except UnicodeDecodeError:
            raise Refused from None
        return self._first(message) if self._challenge is None else self._final(message, self._challenge)

    def _first(self, message: str) -> bytes:
        """Answer the client's first message (core G.4.2).

        The error is the same for a malformed message and an unknown user, who fails here and not at the password.
        """
        first = _FIRST.fullmatch(message)
        if first is None:
            raise Refused
        user = _unescaped(first["user"])
        stored, identity = self._known(user, by_token="tokenauth=true" in first["extensions"].lower().split(","))
        if first["authorization"] is not None and _unescaped(first["authorization"]) != user:
            raise Refused("Authentication failed: Client requested an authorization id that is different from username")
        if stored.iterations < LEAST_ITERATIONS:
            raise Refused
        nonce = first["nonce"] + self._new_nonce()
        answer = f"r={nonce},s={base64.b64encode(stored.salt).decode()},i={stored.iterations}"
        self._challenge = _Challenge(nonce, stored, identity, f"{first['bare']},{answer}")
        return answer.encode()

    def _known(self, user: str, *, by_token: bool) -> tuple[UserScramCredentialRecord, Identity]:
        """Return the stored credential of a user, or that of the delegation token whose id is the user name."""
        if not by_token:
            stored = self._find(user)
            if stored is None:
                raise Refused
            return stored, Identity(user)
        token = self._token(user)
        if token is None:
            raise Refused
        password, salt = base64.b64encode(token.proof).decode(), user.encode()
        key = salted(self._mechanism, password, salt, LEAST_ITERATIONS)
        token_credential = credential(user, self._mechanism, salt, key, LEAST_ITERATIONS)
        return token_credential, Identity(token.owner, token.expires_at_ms, by_token=True)

    def _final(self, message: str, challenge: _Challenge) -> bytes:
        final = _FINAL.fullmatch(message)
        if final is None or final["nonce"] != challenge.nonce:
            raise Refused
        signed = f"{challenge.messages},{final['unproved']}".encode()
        try:
            proof = base64.b64decode(final["proof"], validate=True)
        except binascii.Error:
            raise Refused from None
        signature = hmac.digest(challenge.credential.stored_key, signed, self._hash)
        if len(proof) != len(signature):  # ScramFormatter.xor
            raise Refused
        key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        if not hmac.compare_digest(hashlib.new(self._hash, key).digest(), challenge.credential.stored_key):
            raise Refused
        self.identity = challenge.identity
        return b"v=" + base64.b64encode(hmac.digest(challenge.credential.server_key, signed, self._hash))


def credential(
    user: str, mechanism: int, salt: bytes, salted_password: bytes, iterations: int
) -> UserScramCredentialRecord:
    """Derive the stored keys of a salted password, which verify it without revealing it (core G.4.6)."""
    name = _HASHES[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", name)
    stored_key = hashlib.new(name, client_key).digest()
    server_key = hmac.digest(salted_password, b"Server Key", name)
    return UserScramCredentialRecord(user, mechanism, salt, stored_key, server_key, iterations)


def salted(mechanism: int, password: str, salt: bytes, iterations: int) -> bytes:
    """Return the salted password as clients send it to be stored: PBKDF2 of the password."""
    return hashlib.pbkdf2_hmac(_HASHES[mechanism], password.encode(), salt, iterations)


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")
