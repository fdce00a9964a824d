"""The reference client authenticates itself and the broker: SASL with passwords and tokens, and TLS."""

import secrets
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from protocol.apis import ApiKey
from protocol.client.sasl import AuthenticationError, BadScram, Credentials, authenticate
from protocol.client.steps import Call, run
from protocol.errors import ErrorCode
from tests.exam.reference.planted import Planted
from tests.wire import Wire

EARLY: Final = 0.85
"""Of a session's lifetime, after which the client authenticates again."""


class NotLetIn(Exception):
    """The broker refuses the credentials, or the client the broker. Trying again would not help."""

    def __init__(self, code: ErrorCode | None, message: str) -> None:
        super().__init__(message)
        self.code = code


def believing(call: Call, nonce: str) -> Call:
    """Return a function that takes any nonce of a server for one that continues the client's (RFC 5802 section 5.1)."""

    def believe(key: ApiKey, version: int, request: Any) -> Any:
        answer = call(key, version, request)
        if key is ApiKey.SASL_AUTHENTICATE and bytes(answer.auth_bytes).startswith(b"r="):
            foreign = not bytes(answer.auth_bytes).startswith(b"r=" + nonce.encode())
            answer.auth_bytes = (b"r=" + nonce.encode() if foreign else b"r=") + bytes(answer.auth_bytes)[2:]
        return answer

    return believe


@dataclass(frozen=True)
class Security:
    """The options of a client; a plain connection has none of them."""

    options: Mapping[str, Any]
    mutations: frozenset[str]

    def wrap(self, wire: Wire, host: str) -> None:
        """Begin TLS. Raises NotLetIn: the certificate proves nothing."""
        authority = self.options.get("tls_ca")
        if authority is None or "skips-tls" in self.mutations:
            return
        context = ssl.create_default_context(cafile=authority)
        context.check_hostname = self.mutations.isdisjoint({"ignores-host-names", "ignores-certificates"})
        if "ignores-certificates" in self.mutations:
            context.verify_mode = ssl.CERT_NONE
        try:
            wire.socket = context.wrap_socket(wire.socket, server_hostname=host)
        except ssl.SSLCertVerificationError as error:
            raise NotLetIn(None, f"the certificate is refused: {error.verify_message}") from error

    def authenticate(self, wire: Wire) -> float | None:
        """Authenticate; until when the session lasts, on the monotonic clock. Raises NotLetIn."""
        mechanism = self.options.get("sasl_mechanism")
        if mechanism is None or "skips-authentication" in self.mutations:
            return None
        username, password = self.options.get("sasl_username", ""), self.options.get("sasl_password", "")
        credentials = Credentials(mechanism, username, password, self.options.get("sasl_token", ""))
        try:
            nonce = secrets.token_hex(12)
            call = Planted(self.mutations).through(wire.call)
            if "accepts-foreign-nonce" in self.mutations:
                call = believing(call, nonce)
            lifetime_ms = run(authenticate(credentials, nonce), call)
        except BadScram as error:
            if "trusts-any-broker" in self.mutations:
                return None
            raise NotLetIn(None, f"authentication: {error}") from error
        except AuthenticationError as error:
            raise NotLetIn(error.code, str(error)) from error
        if not lifetime_ms or "never-authenticates-again" in self.mutations:
            return None
        return time.monotonic() + EARLY * lifetime_ms / 1000
