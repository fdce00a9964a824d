"""SASL in front of the handlers: creates the gates of connections, and passes requests through them."""

import struct
from typing import TYPE_CHECKING, Final

from broker.access.sasl.key_set import KeySet
from broker.access.sasl.scram import Token
from broker.coordination.metadata.tokens import Rules
from broker.request.answers import Disconnect
from broker.request.api import AnyHandler
from broker.request.connection import Connection
from broker.request.context import ClusterView, RequestContext
from broker.request.sasl_gate import Gate, State
from broker.settings import BrokerSettings
from broker.settings.plugins import AuthenticationRequest, build_principal, principal_builder
from broker.time.clock import Waiter
from broker.time.rng import unguessable
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.metadata_security import DelegationTokenRecord, UserScramCredentialRecord
from protocol.messages.api_versions import ApiVersionsResponse
from protocol.types import Message
from protocol.writers import Parts

if TYPE_CHECKING:
    from broker.request.node import Node

_SIZE: Final = struct.Struct(">i")
_NONCE_BITS: Final = 160  # as ScramFormatter.secureRandomString: 20 bytes


def token_rules(settings: BrokerSettings) -> Rules | None:
    """Return a broker's rules for delegation tokens; ``None`` if it has no secret key for them."""
    key = settings.optional_string("delegation.token.secret.key")
    if key is None and isinstance(old := settings.get("delegation.token.master.key"), str):
        key = old  # the setting's name until 3.9
    if key is None:
        return None
    return Rules(
        key, settings.long("delegation.token.max.lifetime.ms"), settings.long("delegation.token.expiry.time.ms")
    )


class _Known:
    """The cluster's credentials for SASL mechanisms (:class:`~broker.access.sasl.mechanisms.Credentials`)."""

    def __init__(self, cluster: ClusterView, node: "Node") -> None:
        self._cluster, self._node, self._settings = cluster, node, node.settings

    def scram(self, user: str, mechanism: int) -> UserScramCredentialRecord | None:
        credential: UserScramCredentialRecord | None = self._cluster.image.scram.get((user, mechanism))
        return credential

    def token(self, token_id: str) -> Token | None:
        record: DelegationTokenRecord | None = self._cluster.image.tokens.get(token_id)
        rules = token_rules(self._settings)
        if record is None or rules is None:
            return None  # an expired one still authenticates: the next request closes the connection
        return Token(record.owner.partition(":")[2], rules.hmac(token_id), record.expiration_timestamp_ms)

    def nonce(self) -> str:
        return f"{unguessable(_NONCE_BITS):x}"

    def now_ms(self) -> int:
        return self._cluster.clock.now_ms()

    def keys(self, url: str, refresh_ms: int) -> KeySet:
        return self._node.key_sets.setdefault((url, refresh_ms), KeySet(url, refresh_ms))


def new_gate(connection: Connection, node: "Node", cluster: ClusterView) -> Gate | None:
    """Return the gate of a new connection; ``None`` if its listener requires no authentication."""
    endpoint, _ = node.bound.get(connection.listener, (None, 0))
    if endpoint is None or not endpoint.has_sasl:
        return None
    builder = principal_builder(node.settings, connection.listener)
    known = _Known(cluster, node)
    if builder is None:
        return Gate(node.settings, connection.listener, known)
    protocol, host = endpoint.protocol, connection.client_host

    def build(name: str, mechanism: str) -> str:
        return build_principal(builder, AuthenticationRequest(protocol, connection.listener, host, name, mechanism))

    return Gate(node.settings, connection.listener, known, build)


async def answer_raw_token(gate: Gate, frame: bytearray, connection: Connection) -> Parts:
    """Answer a token without Kafka's headers (core G.2 S4). Raises Disconnect if it is refused."""
    await gate.prepare()
    try:
        passed = gate.token(bytes(frame))
    except KafkaError as error:
        raise Disconnect(error.message or error.code.name) from error
    connection.principal = gate.principal or connection.principal
    return [_SIZE.pack(len(passed.token)), passed.token]


async def authenticate(gate: Gate, request: Message, ctx: RequestContext, handle: AnyHandler) -> Message | None:
    """Pass a request through its connection's gate, outside all middleware. After a failure the connection is closed.

    See core G.2 S1, S2, S5, S9.
    """
    response: Message | None
    if gate.refusal is None:
        response = await handle(request, ctx)
    else:
        response = ctx.api.refuse(request, gate.refusal, ctx.version)
    if response is not None and ctx.notes.byte_fault is None:
        await _finish(gate, response, ctx)
    return response


async def _finish(gate: Gate, response: Message, ctx: RequestContext) -> None:
    """Delay the response to a failed authentication, against guessing, and close the connection after it."""
    if isinstance(response, ApiVersionsResponse) and response.error_code is ErrorCode.NONE:
        gate.versions_sent()
    if gate.state is State.OVER:
        clock = ctx.cluster.clock
        delay_ms = ctx.node.settings.int("connection.failed.authentication.delay.ms")
        await Waiter().wait(clock, clock.now_ms() + delay_ms)
        ctx.notes.closes = True
