"""The connections and the metadata of the reference client: small, blocking, correct, unless a mutation breaks it."""

import itertools
import math
import select
import struct
import threading
import time
import uuid
from collections.abc import Mapping
from typing import Any

from protocol.apis import ApiKey
from protocol.client.steps import Call, run
from protocol.client.versions import negotiate
from protocol.codec import decode_response
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.exam.reference.authentication import NotLetIn, Security
from tests.exam.reference.planted import Planted
from tests.wire import Closed, Wire

BACKOFF_S = 0.05
RETRIABLE = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)


class Lost(Exception):
    """A request without an answer: the connection ended, or took too long, or answered something else."""


class Refused(Exception):
    """An error that is reported to the application."""

    def __init__(self, kind: str, code: ErrorCode | None, message: str) -> None:
        super().__init__(message)
        self.kind, self.code = kind, None if code is None else code.name


class Trusting(Wire):
    """A connection that takes any answer for the one to its oldest request."""

    def answer(self) -> Any:
        """The next frame, decoded as the answer to the oldest request."""
        frame = self.receive_frame()
        oldest = self.requests.pending.popleft()
        return decode_response(oldest.key, oldest.version, frame)[1]


class Hasty(Wire):
    """A connection that takes the bytes that have arrived for the whole frame."""

    def receive_frame(self) -> bytes:
        """What one read brings, after the size."""
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def _read(self, size: int) -> bytes:
        select.select([self.socket], [], [], self.socket.gettimeout())
        part = self.socket.recv(size)
        if not part:
            raise Closed
        return part


class Network:
    """Connections by address, and who leads what."""

    def __init__(self, bootstrap: str, client_id: str, options: Mapping[str, Any], mutations: frozenset[str]) -> None:
        """`options` are those of the producer or consumer."""
        self.bootstrap = bootstrap.split(",")
        self.security = Security(options, mutations)
        self.sessions: dict[str, float | None] = {}
        request_timeout_ms = options["request_timeout_ms"]
        self.client_id, self.patience_s, self.mutations = client_id, request_timeout_ms / 1000, mutations
        self.wires: dict[str, Wire] = {}
        self.nodes: dict[int, str] = {}
        self.leaders: dict[tuple[str, int], int] = {}
        self.leader_epochs: dict[tuple[str, int], int] = {}
        self.partitions: dict[str, int] = {}
        """Topic -> how many partitions its metadata last had."""
        self.topic_ids: dict[str, uuid.UUID] = {}
        self.coordinators: dict[tuple[int, str], str] = {}
        self.planted = Planted(mutations)
        self.never = threading.Event()
        self.quiet_until: dict[str, float] = {}
        self.has_asked_for_telemetry = False

    def ask(self, address: str, key: ApiKey, version: int, request: Any, patience_s: float | None = None) -> Any:
        """One request and its answer. Raises Lost; the connection is closed then. Raises Refused: it is not let in."""
        if "ignores-throttling" not in self.mutations:
            self.never.wait(max(self.quiet_until.get(address, 0) - time.monotonic(), 0))
        try:
            wire = self._connected(address)
            wire.socket.settimeout(patience_s or self.patience_s)
            if time.monotonic() >= (self.sessions[address] or math.inf):
                self.sessions[address] = self.security.authenticate(wire)
            answer = self.planted.through(wire.call)(key, version, request)
        except NotLetIn as error:
            self.disconnect(address)
            if "retries-refused-passwords" in self.mutations:
                raise Lost(str(error)) from error
            raise Refused("fatal", error.code, str(error)) from error
        except (Closed, OSError, ValueError, IndexError, struct.error) as error:
            if isinstance(error, TimeoutError) and "waits-no-longer" in self.mutations and address in self.wires:
                self.wires[address].requests.pending.clear()
            else:
                self.disconnect(address)
            raise Lost(str(error)) from error
        throttle_ms = getattr(answer, "throttle_time_ms", 0)
        self.quiet_until[address] = time.monotonic() + throttle_ms / 1000
        if throttle_ms and "throttling-is-loss" in self.mutations:
            raise Lost("throttled")
        return answer

    def _connected(self, address: str) -> Wire:
        if address not in self.wires:
            kind = Wire if {"trusts-any-answer", "waits-no-longer"}.isdisjoint(self.mutations) else Trusting
            kind = Hasty if "reads-once-per-frame" in self.mutations else kind
            wire = kind(address, self.client_id, self.patience_s)
            try:
                self.security.wrap(wire, address.rpartition(":")[0])
                self._negotiate(wire)
                self.sessions[address] = self.security.authenticate(wire)
            except BaseException:
                wire.close()
                raise
            self.wires[address] = wire
        return self.wires[address]

    def _negotiate(self, wire: Wire) -> None:
        old = "no-older-api-versions" in self.mutations
        try:
            run(negotiate("reference", "1.0"), once(wire.call) if old else wire.call)
        except KafkaError as error:
            raise Closed from error

    def disconnect(self, address: str) -> None:
        """Close a connection, if there is one."""
        wire = self.wires.pop(address, None)
        if wire is not None:
            wire.close()

    def close(self) -> None:
        """Close all connections."""
        for address in list(self.wires):
            self.disconnect(address)

    # --- who does what -----------------------------------------------------------------------------------------------

    def ask_any(self, key: ApiKey, version: int, request: Any, deadline: float) -> Any:
        """An answer from any broker. Raises Refused at the deadline."""
        while True:
            addresses = list(dict.fromkeys([*self.nodes.values(), *self.bootstrap]))
            if self.nodes and "forgets-bootstrap" in self.mutations:
                addresses = list(self.nodes.values())
            if "one-bootstrap-server" in self.mutations:
                addresses = self.bootstrap[:1]
            for address in addresses:
                try:
                    return self.ask(address, key, version, request)
                except Lost:
                    if "gives-up-when-lost" in self.mutations:
                        raise Refused("other", None, "the connection was lost") from None
            if self.nodes and "forgets-bootstrap" in self.mutations:
                raise Refused("other", None, "no broker is left")
            self.pause(deadline)

    def pause(self, deadline: float) -> None:
        """A back-off. Raises Refused at the deadline."""
        if time.monotonic() > deadline:
            raise Refused("timeout", ErrorCode.REQUEST_TIMED_OUT, "the deadline has passed")
        self.never.wait(BACKOFF_S)

    def leader(self, topic: str, partition: int, deadline: float) -> str:
        """The address of a partition's leader, looked up where it is not known. Raises Refused."""
        self._ask_for_telemetry()
        while (topic, partition) not in self.leaders:
            answer = self.ask_any(ApiKey.METADATA, 13, MetadataRequest([MetadataRequestTopic(topic)]), deadline)
            if answer.error_code is ErrorCode.REBOOTSTRAP_REQUIRED:
                if "does-not-rebootstrap" in self.mutations:
                    raise Refused("other", answer.error_code, "a code that it does not know")
                self.nodes = {}
                continue
            self.nodes = {broker.node_id: f"{broker.host}:{broker.port}" for broker in answer.brokers}
            (metadata,) = answer.topics
            self.partitions[topic] = len(metadata.partitions)
            self.topic_ids[topic] = metadata.topic_id
            for each in metadata.partitions:
                if each.leader_id in self.nodes:
                    self.leaders[topic, each.partition_index] = each.leader_id
                    self.leader_epochs[topic, each.partition_index] = each.leader_epoch
            if (topic, partition) not in self.leaders:
                if "gives-up-without-leader" in self.mutations:
                    raise Refused("other", ErrorCode.LEADER_NOT_AVAILABLE, "no leader")
                self.pause(deadline)
        return self.nodes[self.leaders[topic, partition]]

    def _ask_for_telemetry(self) -> None:
        """Once, without waiting long: nothing depends on the answer (KIP-714)."""
        if self.has_asked_for_telemetry:
            return
        self.has_asked_for_telemetry = True
        request = GetTelemetrySubscriptionsRequest()
        vital = "telemetry-is-vital" in self.mutations
        try:
            answer = self.ask(self.bootstrap[0], ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, request, 0.5)
        except Lost:
            if vital or "gives-up-when-lost" in self.mutations:  # it is the first request on the first connection
                raise Refused("other", None, "no subscriptions") from None
        else:
            if vital and answer.error_code is not ErrorCode.NONE:
                raise Refused("other", answer.error_code, "no subscriptions")

    def forget_leader(self, topic: str, partition: int) -> None:
        """Look it up before the next request."""
        if "keeps-old-leader" not in self.mutations:
            self.leaders.pop((topic, partition), None)

    def coordinator(self, kind: int, key: str, deadline: float) -> str:
        """The address of a group's (0) or transactional id's (1) coordinator. Raises Refused."""
        while (kind, key) not in self.coordinators:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
            (entry,) = self.ask_any(ApiKey.FIND_COORDINATOR, 4, request, deadline).coordinators
            if entry.error_code is ErrorCode.NONE:
                self.coordinators[kind, key] = f"{entry.host}:{entry.port}"
            elif "gives-up-on-errors" in self.mutations or entry.error_code not in RETRIABLE:
                raise Refused("other", entry.error_code, "no coordinator")
            else:
                self.pause(deadline)
        return self.coordinators[kind, key]

    def ask_coordinator(
        self,
        kind: int,
        key: str,
        api: ApiKey,
        version: int,
        request: Any,
        deadline: float,
        patience_s: float | None = None,
    ) -> Any:
        """An answer without a retriable error from the coordinator. Raises Refused."""
        while True:
            try:
                answer = self.ask(self.coordinator(kind, key, deadline), api, version, request, patience_s)
            except Lost:
                if "gives-up-when-lost" in self.mutations:
                    raise Refused("other", None, "the connection was lost") from None
                if "keeps-old-coordinator" not in self.mutations:
                    self.coordinators.pop((kind, key), None)
                self.pause(deadline)
                continue
            code = first_error(answer)
            if code not in RETRIABLE:
                return answer
            if "gives-up-on-errors" in self.mutations:
                raise Refused("other", code, code.name)
            if "keeps-old-coordinator" not in self.mutations:
                self.coordinators.pop((kind, key), None)
            self.pause(deadline)


def once(call: Call) -> Call:
    """The function, which ends the connection when it is called again."""
    calls = itertools.count()

    def first(key: ApiKey, version: int, request: Any) -> Any:
        if next(calls):
            raise Closed
        return call(key, version, request)

    return first


def first_error(answer: Any) -> ErrorCode:
    """The first error code of an answer of a coordinator, at any depth."""
    code: ErrorCode = getattr(answer, "error_code", ErrorCode.NONE)
    if code is not ErrorCode.NONE:
        return code
    for field in ("groups", "topics", "partitions"):
        for each in getattr(answer, field, None) or ():
            inner = first_error(each)
            if inner is not ErrorCode.NONE:
                return inner
    return ErrorCode.NONE
