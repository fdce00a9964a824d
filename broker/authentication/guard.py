"""Gates between connections and the dispatcher: who needs one, and what becomes of an answer behind it."""

import struct
from typing import TYPE_CHECKING, Any

from broker.authentication.gate import Gate, State
from broker.chain import Disconnect
from broker.clock import Waiter
from broker.context import ClusterView, Connection
from broker.coordination.metadata.tokens import Rules
from broker.sasl.scram import Token
from broker.settings import BrokerSettings
from broker.wire import Sending
from protocol.apis import ApiKey
from protocol.compiled import Parts
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.metadata_security import DelegationTokenRecord, UserScramCredentialRecord

if TYPE_CHECKING:
    from broker.node import Node

_SIZE = struct.Struct(">i")
_NONCE_BITS = 160


def token_rules(settings: BrokerSettings) -> Rules | None:
    """How a broker makes and keeps delegation tokens; ``None`` where it has no key for them."""
    key = settings.optional_string("delegation.token.secret.key")
    if key is None:
        return None
    return Rules(
        key, settings.long("delegation.token.max.lifetime.ms"), settings.long("delegation.token.expiry.time.ms")
    )


class _Known:
    """What mechanisms ask the cluster for (:class:`~broker.sasl.mechanisms.Credentials`)."""

    def __init__(self, cluster: ClusterView, settings: BrokerSettings) -> None:
        self._cluster, self._settings = cluster, settings

    def scram(self, user: str, mechanism: int) -> UserScramCredentialRecord | None:
        found: UserScramCredentialRecord | None = self._cluster.image.scram.get((user, mechanism))
        return found

    def token(self, token_id: str) -> Token | None:
        found: DelegationTokenRecord | None = self._cluster.image.tokens.get(token_id)
        rules = token_rules(self._settings)
        if found is None or rules is None or found.expiration_timestamp_ms < self.now_ms():
            return None
        return Token(found.owner.partition(":")[2], rules.hmac(token_id), found.expiration_timestamp_ms)

    def nonce(self) -> str:
        return f"{self._cluster.random.getrandbits(_NONCE_BITS):x}"

    def now_ms(self) -> int:
        return self._cluster.clock.now_ms()


def gate_of(connection: Connection, node: "Node", cluster: ClusterView) -> Gate | None:
    """The gate of a new connection; ``None`` where nobody has to say who it is."""
    endpoint, _ = node.bound.get(connection.listener, (None, 0))
    if endpoint is None or not endpoint.has_sasl:
        return None
    return Gate(node.settings, connection.listener, _Known(cluster, node.settings))


def raw_answer(gate: Gate, frame: bytearray, connection: Connection) -> Parts:
    """The answer to a token without headers (rule S4). Raises Disconnect where it is not taken."""
    try:
        passed = gate.token(bytes(frame))
    except KafkaError as error:
        raise Disconnect(error.message or error.code.name) from error
    connection.principal = gate.principal or connection.principal
    return [_SIZE.pack(len(passed.token)), passed.token]


async def let_out(gate: Gate, key: int, response: Any, parts: Parts, delay_ms: int, cluster: ClusterView) -> Any:
    """What goes out instead of an answer: itself, or itself after a while and then the end (rules S1, S2, S5, S9)."""
    if key == ApiKey.API_VERSIONS and response.error_code is ErrorCode.NONE:
        gate.versions_told()
    if gate.state is not State.OVER:
        return parts
    await Waiter().wait(cluster.clock, cluster.clock.now_ms() + delay_ms)
    return Sending((b"".join(parts),), closes=True)
