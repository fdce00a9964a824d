"""OAUTHBEARER with unsigned tokens (RFC 7628, KIP-255; core G.6).

Follows Kafka's ``OAuthBearerSaslServer`` and ``OAuthBearerUnsecuredValidatorCallbackHandler``: for tests, as in Kafka.
"""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any

from broker.access.sasl.exchange import Identity, Refused

_FIRST = re.compile(
    rb"n,(?:a=(?P<authorization>(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+))?,"
    rb"\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
_AUTH = re.compile(rb"[Bb][Ee][Aa][Rr][Ee][Rr] +(?P<token>[-_.~+/A-Za-z0-9]+=*)")
_OPTION = "unsecuredValidator"
CLOCK_SKEW = f"{_OPTION}AllowableClockSkewMs"
_GIVEN_UP = b"\x01"
_MOST_S = 1e12
"""Ours, beyond any date: larger ones and infinity would not be an int64 of ms."""


class OAuthBearerExchange:
    """One step if the token is valid; two if not, since the client gets the reason and then aborts."""

    def __init__(self, options: Mapping[str, str], now_ms: int) -> None:
        """``options``: those of the login module that begin with ``unsecuredValidator``."""
        self._options, self._now_ms = options, now_ms
        self._problem: str | None = None
        self.identity: Identity | None = None

    def step(self, token: bytes) -> bytes:
        """See :class:`~broker.access.sasl.exchange.Exchange`."""
        # An invalid token is no failure yet: the client reads why, and answers with one byte (core G.6.4).
        if self._problem is not None:
            raise Refused(self._problem if token == _GIVEN_UP else None)
        first = _FIRST.fullmatch(token)
        auth = None if first is None else _AUTH.fullmatch(_pairs(first["pairs"]).get(b"auth", b""))
        if first is None or auth is None:
            raise Refused
        try:
            identity = self._authenticated(auth["token"].decode())
        except InvalidToken as invalid:
            self._problem = invalid.response
            return self._problem.encode()
        # After the token, which decides as whom the client may act (core G.6.3).
        wanted = (first["authorization"] or b"").decode("utf-8", "replace")
        if wanted not in ("", identity.name):
            raise Refused(
                f"Authentication failed: Client requested an authorization id ({wanted}) that is different from the "
                f"token's principal name ({identity.name})"
            )
        self.identity = identity
        return b""

    def _authenticated(self, token: str) -> Identity:
        """Return the identity in a token. Raises InvalidToken."""
        return self._checked(_claims(token))

    def _option(self, name: str, default: str) -> str:
        return self._options.get(f"{_OPTION}{name}", default)

    def _checked(self, claims: Mapping[str, Any]) -> Identity:
        """Validate the claims, in no visible order: only a missing scope has its own response. Raises InvalidToken."""
        skew_ms = int(self._options.get(CLOCK_SKEW, "").strip() or "0")
        name = principal_name(claims, self._option("PrincipalClaimName", "sub"))
        expires_ms, issued_ms = time_ms(claims, "exp"), time_ms(claims, "iat")
        if expires_ms is None:
            raise InvalidToken
        if expires_ms + skew_ms <= self._now_ms:
            raise InvalidToken
        if issued_ms is not None and (issued_ms - skew_ms > self._now_ms or expires_ms <= issued_ms):
            raise InvalidToken
        required = self._option("RequiredScope", "").split()
        claim = claims.get(self._option("ScopeClaimName", "scope"), "")
        scopes = claim if isinstance(claim, list) else str(claim).split()
        if not all(scope in scopes for scope in required):
            raise InvalidToken(" ".join(required))
        return Identity(name, expires_ms)


def _pairs(written: bytes) -> dict[bytes, bytes]:
    """Return keys and values of the first message, which may be in any order (OAuthBearerClientInitialResponse)."""
    split = (pair.partition(b"=") for pair in written.split(b"\x01") if pair)
    return {key: value for key, _, value in split}


class InvalidToken(Exception):
    """An invalid token, or one without a required scope, which is given."""

    def __init__(self, scope: str | None = None) -> None:
        super().__init__(scope)
        status = {"status": "invalid_token"} if scope is None else {"status": "insufficient_scope", "scope": scope}
        self.response = json.dumps(status, separators=(",", ":"))


def _claims(token: str) -> dict[str, Any]:
    """Return the claims of an unsigned token. Raises InvalidToken."""
    pieces = token.split(".")
    if len(pieces) != 3 or pieces[2]:  # header, claims and an empty signature (RFC 7515)
        raise InvalidToken
    header, claims = (_decoded(piece) for piece in pieces[:2])
    if header.get("alg") != "none":
        raise InvalidToken
    return claims


def _decoded(piece: str) -> dict[str, Any]:
    try:
        # A JWT leaves out the padding.
        decoded = json.loads(base64.urlsafe_b64decode(piece + "=" * (-len(piece) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        raise InvalidToken from None
    if not isinstance(decoded, dict):
        raise InvalidToken
    return decoded


def principal_name(claims: Mapping[str, Any], claim: str) -> str:
    """Return the principal's name. Raises InvalidToken if it is not a valid string, such as half a surrogate pair."""
    name = claims.get(claim)
    if not isinstance(name, str) or not name.strip() or any("\ud800" <= character <= "\udfff" for character in name):
        raise InvalidToken
    return name


def time_ms(claims: Mapping[str, Any], name: str) -> int | None:
    """Return a claim in seconds since 1970 as ms, if present. Raises InvalidToken if it is not a number."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _MOST_S:  # NaN fails too
        raise InvalidToken
    return round(value * 1000)
