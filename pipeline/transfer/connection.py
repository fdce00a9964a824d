"""A blocking connection to a broker: plain or TLS, with or without SASL; one request at a time."""

import socket
import ssl
import struct
from typing import Any, Final

from pipeline.transfer.security import Scram, Security, SecurityError
from protocol.apis import ApiKey
from protocol.codec import decode_response, encode_request
from protocol.errors import ErrorCode
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from protocol.messages.sasl_handshake import SaslHandshakeRequest

CLIENT_ID: Final = "understudy"
_VERSIONS: Final = {
    ApiKey.METADATA: 9,
    ApiKey.LIST_OFFSETS: 5,
    ApiKey.FETCH: 11,
    ApiKey.PRODUCE: 8,
    ApiKey.CREATE_TOPICS: 5,
    ApiKey.DELETE_TOPICS: 3,
    ApiKey.DESCRIBE_CONFIGS: 2,
    ApiKey.INIT_PRODUCER_ID: 1,
    ApiKey.SASL_HANDSHAKE: 1,
    ApiKey.SASL_AUTHENTICATE: 1,
    ApiKey.API_VERSIONS: 0,
    ApiKey.LIST_GROUPS: 3,
    ApiKey.OFFSET_FETCH: 5,
    ApiKey.DESCRIBE_PRODUCERS: 0,
    ApiKey.LIST_TRANSACTIONS: 0,
    ApiKey.DESCRIBE_TRANSACTIONS: 0,
}
"""Versions that every broker from 2.4 to 4.x serves; the last three only since 2.8 and 3.0."""


class Connection:
    """A connection to one address."""

    def __init__(self, address: tuple[str, int], patience_s: float, security: Security) -> None:
        """Connect and authenticate. Raises OSError, SecurityError."""
        self._count = 0
        try:
            self._socket = socket.create_connection(address, timeout=patience_s)
        except (ValueError, OverflowError) as error:  # an invalid host name, or an invalid port
            raise ConnectionError(str(error)) from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            if security.has_tls:
                try:
                    self._socket = security.context().wrap_socket(self._socket, server_hostname=address[0])
                except ssl.SSLError as error:
                    raise SecurityError(f"{address[0]}:{address[1]}: TLS failed: {error.reason or error}") from None
            if security.has_sasl:
                self._authenticate(security)
        except BaseException:
            self._socket.close()
            raise

    def ask(self, key: ApiKey, request: Any, version: int | None = None) -> Any:
        """Send a request and return the response. Raises OSError."""
        self._count += 1
        version = _VERSIONS[key] if version is None else version
        self._socket.sendall(encode_request(key, version, self._count, CLIENT_ID, request))
        (size,) = struct.unpack(">i", self._receive(4))
        try:
            return decode_response(key, version, self._receive(size))[1]
        except (IndexError, ValueError, struct.error) as error:
            raise ConnectionError(f"a response to {ApiKey(key).name} cannot be read: {error}") from error

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _authenticate(self, security: Security) -> None:
        answer = self.ask(ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest(security.mechanism))
        if answer.error_code is not ErrorCode.NONE:
            offered = ", ".join(answer.mechanisms)
            raise SecurityError(f"the broker does not serve SASL {security.mechanism}, but {offered or 'none'}")
        if security.mechanism == "PLAIN":
            self._token(f"\0{security.username}\0{security.password}".encode())
            return
        scram = Scram(security)
        scram.check(self._token(scram.final(self._token(scram.first()))))

    def _token(self, token: bytes) -> bytes:
        answer = self.ask(ApiKey.SASL_AUTHENTICATE, SaslAuthenticateRequest(token))
        if answer.error_code is not ErrorCode.NONE:
            raise SecurityError(f"authentication failed: {answer.error_message or answer.error_code.name}")
        return bytes(answer.auth_bytes)

    def _receive(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(min(size - len(parts), 1 << 20))
            if not part:
                raise ConnectionError("the broker closed the connection")
            parts += part
        return bytes(parts)
