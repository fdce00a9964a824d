"""A blocking connection to a broker: plain or TLS, with or without SASL; one request at a time."""

import socket
import ssl
from typing import Any, Final

from pipeline.transfer.security import Security, SecurityError, scram_nonce
from protocol.apis import ApiKey
from protocol.client.in_flight import BadResponse, InFlightRequests
from protocol.client.sasl import AuthenticationError, authenticate
from protocol.client.steps import run

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
        self._requests = InFlightRequests(CLIENT_ID)
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
                run(authenticate(security.credentials, scram_nonce(), version=1), self._call)
        except AuthenticationError as error:
            self._socket.close()
            raise SecurityError(str(error)) from error
        except BaseException:
            self._socket.close()
            raise

    def ask(self, key: ApiKey, request: Any, version: int | None = None) -> Any:
        """Send a request and return the response. Raises OSError."""
        return self._call(key, _VERSIONS[key] if version is None else version, request)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _call(self, key: ApiKey, version: int, request: Any) -> Any:
        self._socket.sendall(self._requests.encode(key, version, request))
        try:
            while (frame := self._requests.frame()) is None:
                # At most a megabyte at a time, as large responses come in pieces anyway.
                data = self._socket.recv(min(self._requests.missing_bytes, 1 << 20))
                if not data:
                    raise ConnectionError("the broker closed the connection")
                self._requests.receive(data)
            return self._requests.decode(frame)
        except BadResponse as error:
            raise ConnectionError(str(error)) from error
