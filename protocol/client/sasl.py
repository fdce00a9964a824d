"""Authentication of a client: SASL PLAIN, SCRAM (RFC 5802, KIP-84) and OAUTHBEARER (RFC 7628, KIP-255)."""

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Any, Final

from protocol.apis import ApiKey
from protocol.client.steps import Step, Steps
from protocol.deferred import dataclass
from protocol.errors import ErrorCode
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from protocol.messages.sasl_handshake import SaslHandshakeRequest

SCRAM: Final[Mapping[str, str]] = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""Mechanism -> hash function."""
_LEAST_ITERATIONS: Final = 4096
"""Minimum of Kafka's clients (``ScramMechanism``): with fewer it would be easy to find the password."""
_MOST_ITERATIONS: Final = 100_000
"""About a tenth of a second of work. Kafka's brokers store at most 16,384; its clients accept any number."""
_SHOWN_BYTES: Final = 200  # of a message that cannot be read, in the error; ours, enough to see what it is


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client proves: user and password, or a token of OAUTHBEARER.

    With ``by_token``, the user is the id of a delegation token, the password its HMAC in Base64 (KIP-48).
    """

    mechanism: str = "PLAIN"
    username: str = ""
    password: str = ""
    token: str = ""
    by_token: bool = False


class AuthenticationError(Exception):
    """Failed authentication; the message is a sentence."""

    code: ErrorCode | None = None


class UnsupportedMechanism(AuthenticationError):
    """The broker does not serve the mechanism, but ``offered``."""

    def __init__(self, mechanism: str, code: ErrorCode, offered: Sequence[str]) -> None:
        self.code, self.offered = code, ", ".join(offered) or "none"
        super().__init__(f"the broker does not serve SASL {mechanism}, but {self.offered}")


class Rejected(AuthenticationError):
    """The broker rejects the credentials. ``reason`` is its own message, or the error code."""

    def __init__(self, code: ErrorCode, message: str | None) -> None:
        self.code, self.broker_message = code, message
        self.reason = message or code.name
        super().__init__(f"authentication failed: {self.reason}")


class BadScram(AuthenticationError):
    """A message of SCRAM that is invalid, or does not prove that the broker knows the password."""


def authenticate(credentials: Credentials, nonce: str, version: int = 2) -> Steps[int]:
    """Authenticate; return the lifetime of the session in ms, 0 for no limit (KIP-368).

    ``nonce`` is an unpredictable text without commas, ``version`` that of SaslAuthenticate.

    Raises:
        AuthenticationError: the broker rejects the credentials, or does not know the password itself.
    """
    mechanism = credentials.mechanism
    response = yield Step(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism))
    if response.error_code is not ErrorCode.NONE:
        raise UnsupportedMechanism(mechanism, response.error_code, response.mechanisms)
    if mechanism == "PLAIN":
        last = yield from _token(f"\0{credentials.username}\0{credentials.password}".encode(), version)
    elif mechanism == "OAUTHBEARER":
        last = yield from _token(f"n,,\x01auth=Bearer {credentials.token}\x01\x01".encode(), version)
        if last.auth_bytes:  # the reason of a rejection, which the client has to acknowledge
            last = yield from _token(b"\x01", version)
    else:
        scram = Scram(credentials, nonce)
        first = yield from _token(scram.first(), version)
        last = yield from _token(scram.final(bytes(first.auth_bytes)), version)
        scram.check(bytes(last.auth_bytes))
    return int(last.session_lifetime_ms)


def _token(token: bytes, version: int) -> Steps[Any]:
    response = yield Step(ApiKey.SASL_AUTHENTICATE, version, SaslAuthenticateRequest(token))
    if response.error_code is not ErrorCode.NONE:
        raise Rejected(response.error_code, response.error_message)
    return response


class Scram:
    """The client side of SCRAM: `first`, `final` for the server's reply, `check` for its last message."""

    def __init__(self, credentials: Credentials, nonce: str) -> None:
        self._hash = SCRAM[credentials.mechanism]
        self._password, self._nonce = credentials.password.encode(), nonce
        name = credentials.username.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={nonce}" + (",tokenauth=true" if credentials.by_token else "")
        self._signature = b""

    def first(self) -> bytes:
        """Return the client's first message."""
        return f"n,,{self._bare}".encode()

    def final(self, challenge: bytes) -> bytes:
        """Return the client's proof. Raises BadScram: the server's message is invalid."""
        fields = _fields(challenge)
        nonce, count = fields.get("r", ""), fields.get("i", "")
        try:
            if not nonce.startswith(self._nonce):
                raise ValueError("another nonce")
            challenge_text, iterations = challenge.decode(), int(count)
            salt = base64.b64decode(fields.get("s", ""), validate=True)
        except ValueError as error:
            raise BadScram(f"the server's SCRAM message is invalid: {challenge[:_SHOWN_BYTES]!r}") from error
        if not _LEAST_ITERATIONS <= iterations <= _MOST_ITERATIONS:
            bounds = f"{_LEAST_ITERATIONS} to {_MOST_ITERATIONS}"
            raise BadScram(f"the server asks for {iterations} iterations of SCRAM, and not for {bounds}")
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        without_proof = f"c=biws,r={nonce}"
        signed = f"{self._bare},{challenge_text},{without_proof}".encode()
        stored = hashlib.new(self._hash, client_key).digest()
        proof = bytes(a ^ b for a, b in zip(client_key, hmac.digest(stored, signed, self._hash), strict=True))
        self._signature = hmac.digest(hmac.digest(salted, b"Server Key", self._hash), signed, self._hash)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def check(self, final: bytes) -> None:
        """Check that the server knows the password too. Raises BadScram."""
        if not hmac.compare_digest(_fields(final).get("v", "").encode(), base64.b64encode(self._signature)):
            raise BadScram("the server's SCRAM signature is wrong: it does not know the password")


def _fields(message: bytes) -> dict[str, str]:
    pairs = (part.partition("=") for part in message.decode(errors="replace").split(","))
    return {name: value for name, _, value in pairs}
