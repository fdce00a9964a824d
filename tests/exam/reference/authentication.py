"""The reference client authenticates itself and the broker: SASL with passwords and tokens, and TLS."""

import base64
import hashlib
import hmac
import secrets
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.wire import Wire

EARLY: Final = 0.85
"""Of a session's lifetime, after which the client authenticates again."""


class NotLetIn(Exception):
    """The broker refuses the credentials, or the client the broker. Trying again would not help."""

    def __init__(self, code: ErrorCode | None, message: str) -> None:
        super().__init__(message)
        self.code = code


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
        answer = wire.call(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism))
        if answer.error_code is not ErrorCode.NONE:
            raise NotLetIn(answer.error_code, f"the broker's mechanisms: {', '.join(answer.mechanisms)}")

        def exchange(token: bytes) -> Any:
            answer = wire.call(ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(token))
            if answer.error_code is not ErrorCode.NONE:
                raise NotLetIn(answer.error_code, answer.error_message)
            return answer

        if mechanism == "PLAIN":
            last = exchange(f"\0{self.options['sasl_username']}\0{self.options['sasl_password']}".encode())
        elif mechanism == "OAUTHBEARER":
            last = exchange(f"n,,\x01auth=Bearer {self.options['sasl_token']}\x01\x01".encode())
            if last.auth_bytes:  # the reason, which the client has to acknowledge (RFC 7628)
                last = exchange(b"\x01")
        else:
            last = self._scram(mechanism.removeprefix("SCRAM-").replace("-", "").lower(), exchange)
        if not last.session_lifetime_ms or "never-authenticates-again" in self.mutations:
            return None
        return time.monotonic() + EARLY * int(last.session_lifetime_ms) / 1000

    def _scram(self, name: str, exchange: Callable[[bytes], Any]) -> Any:
        """RFC 5802: both prove that they know the password. Raises NotLetIn."""
        first = f"n={self.options['sasl_username']},r={secrets.token_hex(12)}"
        answer = bytes(exchange(f"n,,{first}".encode()).auth_bytes).decode()
        fields = dict(part.split("=", 1) for part in answer.split(","))
        if "r" not in fields:
            raise NotLetIn(None, "the broker's first message has no nonce")
        salt, iterations = base64.b64decode(fields["s"]), int(fields["i"])
        salted = hashlib.pbkdf2_hmac(name, self.options["sasl_password"].encode(), salt, iterations)
        key = hmac.digest(salted, b"Client Key", name)
        unproved = f"c=biws,r={fields['r']}"
        signed = f"{first},{answer},{unproved}".encode()
        signature = hmac.digest(hashlib.new(name, key).digest(), signed, name)
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
        last = exchange(f"{unproved},p={proof}".encode())
        own = hmac.digest(hmac.digest(salted, b"Server Key", name), signed, name)
        known = bytes(last.auth_bytes) == b"v=" + base64.b64encode(own)
        if not known and "trusts-any-broker" not in self.mutations:
            raise NotLetIn(None, "authentication: the broker does not know the password")
        return last
