"""From a frame to the parts of its answer: header, version gate, body, chain, encoding.

The order of the checks is Kafka's (core A.2). Whatever cannot be answered raises :class:`~broker.chain.Disconnect`.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from broker.authentication.gate import State
from broker.authentication.guard import gate_of, let_out, raw_answer
from broker.chain import Api, Disconnect, Middleware, NeverAnswer, chain
from broker.context import ClusterView, Connection, RequestContext
from broker.handlers.api_versions import unsupported_version
from broker.middleware.actions import BYTES_NOTE
from broker.middleware.journal import Journal, Served
from broker.node import Node
from broker.releases import Behaviour
from broker.throttling import charged
from broker.wire import Sending
from protocol.apis import ApiKey
from protocol.codec import BadFrame, RequestHeader, decode_header, decode_request, encode_response
from protocol.compiled import Parts
from protocol.errors import ErrorCode, KafkaError

_log = structlog.get_logger(__name__)
_KEY_AND_VERSION = struct.Struct(">hh")
_AUTHENTICATING = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})


async def answer_errors(request: Any, ctx: RequestContext, handle: Any) -> Any:
    """Middleware: an error of a handler becomes the API's own way of saying so (core 0.3.1).

    A protocol error keeps its code and message. Anything else is a fault of ours: the client hears
    UNKNOWN_SERVER_ERROR without a message, and the log has the traceback.
    """
    try:
        return await handle(request, ctx)
    except KafkaError as error:
        return ctx.api.refuse(request, error, ctx.version)
    except Disconnect:
        raise
    except Exception:  # noqa: BLE001 - a fault of ours is answered, as Kafka answers its own
        _log.exception("handler failed", api=ctx.api.key.title, version=ctx.version, client_id=ctx.client_id)
        return ctx.api.refuse(request, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR), ctx.version)


class Dispatcher:
    """Answers the frames that come in on one broker's connections."""

    def __init__(
        self,
        node: Node,
        cluster: ClusterView,
        apis: Sequence[Api],
        middleware: Sequence[Middleware],
        journal: Journal,
        watches: Sequence[Mapping[ApiKey, Middleware]] = (),
    ) -> None:
        """``watches`` stand outside the middleware, each for some APIs."""
        self._node, self._cluster, self._journal = node, cluster, journal
        self._apis: Mapping[int, Api] = {int(api.key): api for api in apis}
        self._handlers = {
            int(api.key): chain((*(each[api.key] for each in watches if api.key in each), *middleware), api.handle)
            for api in apis
        }

    async def answer(self, frame: bytearray, connection: Connection) -> Parts | Sending | None:
        """The parts of the answer, or ``None`` where none is sent; :class:`Sending` where a fault spoils its bytes.

        Raises:
            Disconnect: the connection is to be closed.
            NeverAnswer: the connection is to be left open, and nothing on it answered.
        """
        if not connection.number:
            connection.number = self._journal.new_connection()
            connection.versions, connection.release = self._cluster.versions, self._cluster.release
            connection.gate = gate_of(connection, self._node, self._cluster)
        if connection.gate is not None and connection.gate.state is State.RAW:
            return raw_answer(connection.gate, frame, connection)
        served = Served(frame, connection, self._node.id, self._cluster.clock.now_ms())
        self._journal.arrive(served)
        try:
            return await self._serve(served)
        except Disconnect as disconnect:
            served.outcome = f"closed: {disconnect.reason}"
            raise
        except NeverAnswer:
            served.outcome = "never answered"
            raise
        except BaseException:
            served.outcome = "failed"
            raise
        finally:
            self._journal.settle(served)

    async def _serve(self, served: Served) -> Parts | Sending | None:
        try:
            header = decode_header(served.frame)
            gate = served.connection.gate
            refused = None if gate is None else gate.admit(header.api_key)
            api = self._gate(header, served.connection)
            if api is None:
                served.parts = unsupported_version(header.correlation_id, served.connection)
                return served.parts
            served.request = request = decode_request(served.frame, header)
        except BadFrame as error:
            raise Disconnect(str(error)) from error
        key, version = header.api_key, header.api_version
        ctx = RequestContext(
            api, version, header.correlation_id, header.client_id, served.connection, self._node, self._cluster
        )
        served.notes = ctx.notes
        handle = self._handlers[key]
        response = await handle(request, ctx) if refused is None else api.refuse(request, refused, version)
        quotas = self._node.quotas
        if quotas is not None and (gate is None or (gate.state is State.READY and key not in _AUTHENTICATING)):
            response = charged(quotas, ctx, request, response, len(served.frame))
        if response is None:
            served.outcome = "asked for no answer"
            return None
        served.parts = parts = encode_response(key, version, header.correlation_id, response)
        if ctx.notes and BYTES_NOTE in ctx.notes:
            spoiled: Sending = ctx.notes[BYTES_NOTE].spoil(b"".join(parts))
            return spoiled
        if gate is not None:
            delay_ms = self._node.settings.int("connection.failed.authentication.delay.ms")
            let: Parts | Sending = await let_out(gate, key, response, parts, delay_ms, self._cluster)
            return let
        return parts

    def _gate(self, header: RequestHeader, connection: Connection) -> Api | None:
        """The API that serves the request; ``None`` for an ApiVersions version that we do not know (KIP-511)."""
        api = self._apis.get(header.api_key)
        if api is None:
            raise Disconnect(f"{_title(header.api_key)} is not served here")
        steered = connection.versions
        limits = steered.get(header.api_key, ()) if steered else ()
        if limits is None:
            raise Disconnect(f"{api.key.title} is not served on this connection")
        low, high = limits or api.versions
        if not limits and api.unstable is not None:
            low, high = api.range(unstable=self._node.settings.boolean("unstable.api.versions.enable"))
        removed = header.api_version < api.versions[0] and connection.release.has(Behaviour.OLD_VERSIONS_CLOSE)
        if low <= header.api_version <= high and not removed:
            return api
        if header.api_key == ApiKey.API_VERSIONS:
            return None
        raise Disconnect(f"{api.key.title} v{header.api_version} is outside {low} to {high}")


def named_in(frame: bytes | bytearray) -> dict[str, Any]:
    """``api`` and ``version`` of a request, as far as its first bytes tell them: for the log."""
    if len(frame) < _KEY_AND_VERSION.size:
        return {}
    key, version = _KEY_AND_VERSION.unpack_from(frame)
    return {"api": _title(key), "version": version}


def _title(key: int) -> str:
    try:
        return ApiKey(key).title
    except ValueError:
        return f"api key {key}"
