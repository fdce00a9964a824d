"""SASL towards the broker, where the proxy authenticates and not its clients: PLAIN and SCRAM (KIP-43, KIP-84)."""

from typing import Any

from broker.answers import Disconnect
from pipeline.transfer.security import Scram, Security, SecurityError
from protocol.apis import ApiKey
from protocol.codec import decode_response, encode_request
from protocol.errors import ErrorCode
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from protocol.messages.sasl_handshake import SaslHandshakeRequest
from proxy.link import Link

CLIENT_ID = "understudy-proxy"
_VERSION = 1
"""Of SaslHandshake and SaslAuthenticate: every broker since 2.2 has it."""


async def authenticate(link: Link, security: Security) -> None:
    """Authenticate with the broker's credentials.

    Raises:
        Disconnect: it refuses them, or does not serve the mechanism.
    """
    answer = await ask(link, ApiKey.SASL_HANDSHAKE, _VERSION, SaslHandshakeRequest(security.mechanism))
    if answer.error_code is not ErrorCode.NONE:
        offered = ", ".join(answer.mechanisms) or "none"
        raise Disconnect(f"{link.broker} does not serve SASL {security.mechanism}, but {offered}")
    try:
        if security.mechanism == "PLAIN":
            await _token(link, f"\0{security.username}\0{security.password}".encode())
            return
        scram = Scram(security)
        scram.check(await _token(link, scram.final(await _token(link, scram.first()))))
    except SecurityError as error:
        raise Disconnect(f"{link.broker}: {error}") from error


async def _token(link: Link, token: bytes) -> bytes:
    answer = await ask(link, ApiKey.SASL_AUTHENTICATE, _VERSION, SaslAuthenticateRequest(token))
    if answer.error_code is not ErrorCode.NONE:
        reason = answer.error_message or answer.error_code.name
        raise Disconnect(f"{link.broker} refuses the credentials of --client-config: {reason}")
    return bytes(answer.auth_bytes)


async def ask(link: Link, key: ApiKey, version: int, request: Any) -> Any:
    """A request of the proxy itself, and its response.

    Raises:
        Disconnect: the connection is closed, or the answer cannot be read.
    """
    raw = await link.ask(encode_request(key, version, 0, CLIENT_ID, request)[4:])
    try:
        return decode_response(key, version, raw)[1]
    except (IndexError, ValueError) as error:
        raise Disconnect(f"{link.broker}: the answer to {key.title} cannot be read: {error}") from error
