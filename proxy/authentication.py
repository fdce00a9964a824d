"""SASL authentication of the proxy itself to a broker: PLAIN and SCRAM (KIP-43, KIP-84).

A session with a limited lifetime is renewed on the same connection (KIP-368), before the first request late in its
lifetime: a broker rejects requests of an expired session, but tolerates an idle one.
"""

import asyncio
import struct
from collections.abc import Awaitable
from typing import Any

from broker.request.answers import Disconnect
from pipeline.transfer.security import Security, scram_nonce
from protocol.apis import ApiKey
from protocol.client import sasl
from protocol.client.sasl import AuthenticationError, Rejected, UnsupportedMechanism
from protocol.codec import decode_response, encode_request
from proxy.link import Link

CLIENT_ID = "understudy-proxy"
PATIENCE_S = 30.0
"""Timeout of the authentication: the client may be gone by then, and the connection must not stay open forever.

The default of request.timeout.ms.
"""
_VERSION = 1
"""Version of SaslAuthenticate, which every broker since 2.2 supports."""
_RENEWED_AT = 0.85
"""Fraction of a session's lifetime after which it is renewed; Java's clients choose one from 0.85 to 0.95."""


async def authenticate(link: Link, security: Security) -> None:
    """Authenticate with the proxy's credentials, and note when the session has to be renewed.

    Raises:
        Disconnect: the broker rejects them, or does not support the mechanism.
    """
    exchange = sasl.authenticate(security.credentials, scram_nonce(), _VERSION)
    try:
        step = next(exchange)
        while True:
            step = exchange.send(await ask(link, *step))
    except StopIteration as end:
        lifetime_ms: int = end.value
    except UnsupportedMechanism as error:
        raise Disconnect(f"{link.broker} does not support SASL {security.mechanism}, but {error.offered}") from error
    except Rejected as error:
        reason = f"rejects the credentials of --client-config: {error.reason}"
        raise Disconnect(f"{link.broker} {reason}") from error
    except AuthenticationError as error:
        raise Disconnect(f"{link.broker}: {error}") from error
    link.renew_at_s = _now_s() + lifetime_ms / 1000 * _RENEWED_AT if lifetime_ms > 0 else None


async def in_time(authenticating: Awaitable[None], link: Link) -> None:
    """Authenticate on a new connection, in its own task. Raises Disconnect: the broker does not respond in time."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            await authenticating
    except TimeoutError:
        link.close()
        raise Disconnect(f"{link.broker} does not answer to SASL within {PATIENCE_S:g} s") from None


def has_to_be_renewed(link: Link) -> bool:
    """Whether the session on a connection will expire soon, or has expired."""
    return link.renew_at_s is not None and _now_s() >= link.renew_at_s


def _now_s() -> float:
    return asyncio.get_running_loop().time()


async def ask(link: Link, key: ApiKey, version: int, request: Any) -> Any:
    """Send a request of the proxy itself; return the response.

    Raises:
        Disconnect: the connection is closed, or the response cannot be read.
    """
    raw = await link.ask(encode_request(key, version, 0, CLIENT_ID, request)[4:])  # without the size
    try:
        return decode_response(key, version, raw)[1]
    except (IndexError, ValueError, struct.error) as error:
        raise Disconnect(f"{link.broker}: the response to {key.title} cannot be read: {error}") from error
