"""State of the clients that report their metrics (KIP-714, core H.1).

A client asks for a subscription and then pushes. Metrics are not collected: pushes are checked and dropped. State is
kept per client instance and broker, and ends with the connection or after a while without a request.
"""

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from broker.settings import ConfigResourceType, client_metrics
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.push_telemetry import PushTelemetryRequest
from protocol.types import uuid_text

COMPRESSION_TYPES = (4, 3, 1, 2)
"""Accepted for pushes, the most wanted first: zstd, lz4, gzip, snappy. 0 is none, always accepted."""

DEFAULT_INTERVAL_MS = 300_000
_LEAST_IDLE_MS = 60_000
_RESERVED_ID = UUID(int=1)
_MOST_INSTANCES = 16_384
"""ClientMetricsManager.CACHE_MAX_SIZE: the one that spoke first is forgotten first."""

Configs = Mapping[tuple[int, str], Mapping[str, str]]
"""(resource type, name) -> what is set there, as the image has it."""


@dataclass(frozen=True, slots=True)
class Client:
    """The attributes of a client that subscriptions match."""

    instance_id: UUID
    connection: str
    client_id: str
    software_name: str
    software_version: str
    address: str
    port: int

    def attribute(self, name: str) -> str:
        """The value of a ``match`` attribute (core C.3)."""
        values = {
            "client_instance_id": uuid_text(self.instance_id),
            "client_id": self.client_id,
            "client_software_name": self.software_name,
            "client_software_version": self.software_version,
            "client_source_address": self.address,
            "client_source_port": str(self.port),
        }
        return values[name]


@dataclass(slots=True)
class Instance:
    """One client's subscription, and when it last spoke; -1 never."""

    connection: str
    subscription_id: int
    interval_ms: int
    metrics: tuple[str, ...]
    asked_ms: int = -1
    pushed_ms: int = -1
    may_push: bool = False
    terminating: bool = False
    last_error: ErrorCode = ErrorCode.NONE

    @property
    def spoke_ms(self) -> int:
        """The time of the client's last subscription request or push."""
        return max(self.asked_ms, self.pushed_ms)


class Telemetry:
    """The client instances that one broker knows."""

    def __init__(self) -> None:
        self._instances: dict[UUID, Instance] = {}

    def ask(self, client: Client, configs: Configs, now_ms: int) -> Instance:
        """GetTelemetrySubscriptions.

        Raises:
            KafkaError: THROTTLING_QUOTA_EXCEEDED before the interval has passed, unless there is reason to ask again.
        """
        before = self._known(client, now_ms)
        instance = _subscription(client, configs)
        if before is not None:
            changed = before.subscription_id != instance.subscription_id
            wrong = before.last_error in (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
            if now_ms - before.spoke_ms < before.interval_ms and not changed and not wrong:
                raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
            instance.pushed_ms, instance.terminating = before.pushed_ms, before.terminating
        instance.asked_ms, instance.may_push = now_ms, True
        return self._remember(client, instance)

    def _remember(self, client: Client, instance: Instance) -> Instance:
        self._instances.pop(client.instance_id, None)
        while len(self._instances) >= _MOST_INSTANCES:
            del self._instances[next(iter(self._instances))]
        self._instances[client.instance_id] = instance
        return instance

    def push(
        self,
        client: Client,
        configs: Configs,
        push: PushTelemetryRequest,
        most_bytes: int,
        now_ms: int,
    ) -> None:
        """PushTelemetry: its checks in its order.

        Raises:
            KafkaError: with the code of core H.1.
        """
        if client.instance_id in (UUID(int=0), _RESERVED_ID):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        instance = self._known(client, now_ms)
        if instance is None:
            instance = self._remember(client, _subscription(client, configs))
        if instance.terminating:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        waited = instance.pushed_ms < 0 or now_ms - instance.pushed_ms >= instance.interval_ms
        if not (waited or instance.may_push or push.terminating):
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        instance.pushed_ms, instance.may_push, instance.terminating = now_ms, False, push.terminating
        current = _subscription(client, configs).subscription_id
        instance.last_error = _complaint(push, current, most_bytes)
        if instance.last_error is not ErrorCode.NONE:
            raise KafkaError(instance.last_error)

    def _known(self, client: Client, now_ms: int) -> Instance | None:
        """The state of the client; none over another connection, or after a long silence."""
        found = self._instances.get(client.instance_id)
        if found is None or found.connection != client.connection:
            return None
        idle_ms = now_ms - found.spoke_ms
        return None if idle_ms > max(_LEAST_IDLE_MS, 3 * found.interval_ms) else found


def _complaint(push: PushTelemetryRequest, subscription_id: int, most_bytes: int) -> ErrorCode:
    if push.subscription_id != subscription_id:
        return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    if push.compression_type not in (0, *COMPRESSION_TYPES):
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    if len(push.metrics) > most_bytes:
        return ErrorCode.TELEMETRY_TOO_LARGE
    return ErrorCode.NONE


def _subscription(client: Client, configs: Configs) -> Instance:
    """The union of what all subscriptions want of this client."""
    wanted: dict[str, None] = {}
    intervals = []
    for interval_ms, match, metrics in _subscriptions(configs):
        patterns = client_metrics.patterns(match)
        if all(pattern.fullmatch(client.attribute(name)) for name, pattern in patterns.items()):
            wanted.update(dict.fromkeys(metrics))
            intervals.append(interval_ms)
    union = ("*",) if "*" in wanted else tuple(wanted)
    interval_ms = min(intervals, default=DEFAULT_INTERVAL_MS)
    text = f"{sorted(union)}{interval_ms}".encode()
    number = (zlib.crc32(text) ^ zlib.crc32(client.instance_id.bytes)) & 0x7FFFFFFF
    return Instance(client.connection, number, interval_ms, union)


def _subscriptions(configs: Configs) -> Iterable[tuple[int, tuple[str, ...], tuple[str, ...]]]:
    """Interval, patterns and metrics of each CLIENT_METRICS resource."""
    for (resource_type, _name), stored in configs.items():
        if resource_type == ConfigResourceType.CLIENT_METRICS:
            values: dict[str, Any] = dict(client_metrics.effective(stored))
            yield values["interval.ms"], values["match"] or (), values["metrics"] or ()
