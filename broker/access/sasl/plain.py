"""PLAIN: user name and password in clear text (RFC 4616; Kafka's ``PlainSaslServer``, core G.3)."""

import hmac
from collections.abc import Mapping

from broker.access.sasl.exchange import Identity, Refused

_PARTS = 3  # authorization id, user, password (RFC 4616)
_FAILED = "Authentication failed: "


class PlainExchange:
    """One step: authorization id, user and password, separated by NUL."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords
        self.identity: Identity | None = None

    def step(self, token: bytes) -> bytes:
        """See :class:`~broker.access.sasl.exchange.Exchange`; the checks are in Kafka's order."""
        parts = token.decode("utf-8", "replace").split("\0", _PARTS)
        if len(parts) != _PARTS:
            raise Refused(f"Invalid SASL/PLAIN response: expected {_PARTS} tokens, got {len(parts)}")
        authorization_id, user, password = parts
        if not user:
            raise Refused(f"{_FAILED}username not specified")
        if not password:
            raise Refused(f"{_FAILED}password not specified")
        expected = self._passwords.get(user)
        if expected is None or not hmac.compare_digest(expected.encode(), password.encode()):
            raise Refused(f"{_FAILED}Invalid username or password")
        if authorization_id not in ("", user):
            raise Refused(f"{_FAILED}Client requested an authorization id that is different from username")
        self.identity = Identity(user)
        return b""
