"""Authentication of a connection: SASL PLAIN with a password, SCRAM-SHA-256 with a password or a delegation token."""

import hashlib
import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from protocol.messages.sasl_handshake import SaslHandshakeRequest

PLAIN, SCRAM = "PLAIN", "SCRAM-SHA-256"
Call = Callable[[ApiKey, int, Any], Any]


class Refused(Exception):
    """Rejected login. The message is the error code, and the broker's own message."""


@dataclass(frozen=True, slots=True)
class Login:
    """Credentials. ``by_token``: the user is a token's id, the password its HMAC in Base64 (KIP-48)."""

    user: str
    password: str
    mechanism: str = PLAIN
    by_token: bool = False


def log_in(call: Call, login: Login) -> None:
    """Log in. Raises Refused."""
    _checked(call(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(login.mechanism)))
    if login.mechanism == PLAIN:
        _answered(call, f"\0{login.user}\0{login.password}".encode())
        return
    nonce = secrets.token_urlsafe(18)
    user = login.user.replace("=", "=3D").replace(",", "=2C")
    first = f"n={user},r={nonce}" + (",tokenauth=true" if login.by_token else "")
    challenge = _answered(call, b"n,," + first.encode()).decode()
    fields = dict(part.split("=", 1) for part in challenge.split(","))
    final = f"c=biws,r={fields['r']}"
    password = hashlib.pbkdf2_hmac("sha256", login.password.encode(), b64decode(fields["s"]), int(fields["i"]))
    key = hmac.digest(password, b"Client Key", "sha256")
    signed = hmac.digest(hashlib.sha256(key).digest(), f"{first},{challenge},{final}".encode(), "sha256")
    proof = b64encode(bytes(a ^ b for a, b in zip(key, signed, strict=True))).decode()
    _answered(call, f"{final},p={proof}".encode())


def _answered(call: Call, token: bytes) -> bytes:
    answer = _checked(call(ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(token)))
    return bytes(answer.auth_bytes)


def _checked(answer: Any) -> Any:
    if answer.error_code is not ErrorCode.NONE:
        message = getattr(answer, "error_message", None)
        raise Refused(answer.error_code.name if message is None else f"{answer.error_code.name}: {message}")
    return answer
