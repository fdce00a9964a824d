"""Telemetry subscriptions of clients that push their metrics (KIP-714, core H.1).

A client fetches its subscription and then pushes. Metrics are not collected: pushes are validated and dropped. State is
kept per client instance and broker (ClientMetricsManager); it ends with the connection on which it was created, after a
time without requests, and with any change of a subscription, matching or not. Quirk: it survives if the broker itself
closes the connection, because Kafka's SocketServer notifies no listener of that.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any
from uuid import UUID

from broker.settings import ConfigResourceType, client_metrics
from protocol.checksums import crc32c
from protocol.deferred import dataclass
from protocol.errors import ErrorCode, KafkaError
from protocol.java import HashMap, as_int, copied_capacity, string_hash, table_order, uuid_hash
from protocol.messages.push_telemetry import PushTelemetryRequest
from protocol.records.compression import decompress
from protocol.records.errors import RecordsError
from protocol.types import ZERO_UUID, uuid_text

COMPRESSION_TYPES = (4, 3, 1, 2)
"""Compression types accepted for pushes, in order of preference: zstd, lz4, gzip, snappy; 0 (none) always is."""

DEFAULT_INTERVAL_MS = 300_000
"""The default push interval; quirk: also the longest, since the minimum is taken with it (core H.1.3)."""
_LEAST_IDLE_MS = 60_000
"""An instance expires after so long without a request, or after three push intervals if those are longer (core H.1)."""
_RESERVED_IDS = (ZERO_UUID, UUID(int=1))
_MOST_INSTANCES = 16_384
"""ClientMetricsManager.CACHE_MAX_SIZE: the least recently used instance is evicted first."""
_NEVER_MS = -(1 << 40)  # 34 years before 1970, earlier than every clock

Configs = Mapping[tuple[int, str], Mapping[str, str]]
"""(resource type, name) -> its dynamic configs, as in the metadata image."""
Watch = Callable[[Callable[[bool], None]], None]
"""Registers a callback for the end of a connection, with whether the broker closed it because of what it sent."""


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """The configs of all CLIENT_METRICS resources; ``changes`` counts their changes."""

    configs: Configs = field(default_factory=dict)
    changes: int = 0


@dataclass(frozen=True, slots=True)
class Client:
    """The attributes of a client that subscriptions match, as of the first request of its instance."""

    instance_id: UUID
    connection: str
    client_id: str
    software_name: str
    software_version: str
    address: str
    port: int

    def attribute(self, name: str) -> str:
        """Return the value of a ``match`` attribute (core C.3)."""
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
    """One client instance: its subscription, and its requests since then; ``seen_ms`` is the time of any request."""

    client: Client
    changes: int
    subscription_id: int
    interval_ms: int
    metrics: tuple[str, ...]
    asked_ms: int = _NEVER_MS
    pushed_ms: int = _NEVER_MS
    seen_ms: int = _NEVER_MS
    terminating: bool = False
    last_error: ErrorCode = ErrorCode.NONE

    def waited(self, since_ms: int, now_ms: int) -> bool:
        """Whether a push interval has passed since then."""
        return now_ms - since_ms >= self.interval_ms


class Telemetry:
    """The client instances that one broker knows."""

    def __init__(self) -> None:
        self._instances: dict[UUID, Instance] = {}
        self._made_on: dict[str, UUID] = {}
        """Connection -> the instance created last on it, which ends with it."""

    def ask(self, client: Client, watch: Watch, subscriptions: Subscriptions, now_ms: int) -> Instance:
        """Answer GetTelemetrySubscriptions: return the client's instance.

        Quirk: a request allowed early because of a wrong push does not allow the next push (core H.1.2).

        Raises:
            KafkaError: THROTTLING_QUOTA_EXCEEDED before the interval has passed, unless the last push failed with
                UNKNOWN_SUBSCRIPTION_ID or UNSUPPORTED_COMPRESSION_TYPE.
        """
        instance = self._instance(client, watch, subscriptions, now_ms)
        if instance.waited(max(instance.asked_ms, instance.pushed_ms), now_ms):
            instance.asked_ms = now_ms
        elif instance.last_error not in (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE):
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        instance.last_error = ErrorCode.NONE
        return instance

    def push(
        self,
        client: Client,
        watch: Watch,
        subscriptions: Subscriptions,
        push: PushTelemetryRequest,
        most_bytes: int,
        now_ms: int,
    ) -> None:
        """Validate a PushTelemetry request, with Kafka's checks in Kafka's order.

        Quirk: every push sets whether the client is terminating, even one refused because the previous push terminated.

        Raises:
            KafkaError: with the code of core H.1.
        """
        if client.instance_id in _RESERVED_IDS:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        instance = self._instance(client, watch, subscriptions, now_ms)
        instance.last_error = _complaint(instance, push, most_bytes, now_ms)
        instance.terminating = push.terminating
        if instance.last_error is not ErrorCode.NONE:
            raise KafkaError(instance.last_error)

    def _instance(self, client: Client, watch: Watch, subscriptions: Subscriptions, now_ms: int) -> Instance:
        """Return the client's instance: a new one if there is none, or if any subscription has changed since."""
        instance = self._instances.pop(client.instance_id, None)
        if instance is not None and now_ms - instance.seen_ms >= max(_LEAST_IDLE_MS, 3 * instance.interval_ms):
            instance = None
        if instance is None or instance.changes != subscriptions.changes:
            instance = _subscribed(client if instance is None else instance.client, subscriptions)
            self._ends_with(client, watch)
        instance.seen_ms = now_ms
        self._instances[client.instance_id] = instance
        while len(self._instances) > _MOST_INSTANCES:
            del self._instances[next(iter(self._instances))]
        return instance

    def _ends_with(self, client: Client, watch: Watch) -> None:
        if client.connection not in self._made_on:
            watch(lambda by_broker: self._disconnected(client.connection, by_broker=by_broker))
        self._made_on[client.connection] = client.instance_id

    def _disconnected(self, connection: str, *, by_broker: bool) -> None:
        ended = self._made_on.pop(connection, None)
        if ended is not None and not by_broker:
            self._instances.pop(ended, None)


def _complaint(instance: Instance, push: PushTelemetryRequest, most_bytes: int, now_ms: int) -> ErrorCode:
    # In the order of core H.1; the time of a push counts even if its contents are refused below.
    if instance.terminating:
        return ErrorCode.INVALID_REQUEST
    if instance.asked_ms > instance.pushed_ms or instance.waited(instance.pushed_ms, now_ms):
        instance.pushed_ms = now_ms
    elif not push.terminating:
        return ErrorCode.THROTTLING_QUOTA_EXCEEDED
    if push.subscription_id != instance.subscription_id:
        return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    if push.compression_type not in (0, *COMPRESSION_TYPES):
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    if len(push.metrics) > most_bytes:
        return ErrorCode.TELEMETRY_TOO_LARGE
    return ErrorCode.NONE if _is_readable(push, most_bytes) else ErrorCode.INVALID_RECORD


def _is_readable(push: PushTelemetryRequest, most_bytes: int) -> bool:
    """Whether compressed metrics can be read and are not too large: a broker without a plugin reads them too."""
    if not push.compression_type or not push.metrics:
        return True
    try:
        decompress(push.compression_type, push.metrics, most_bytes)
    except RecordsError:
        return False
    return True


def _subscribed(client: Client, subscriptions: Subscriptions) -> Instance:
    """Compute the union of all subscriptions that match the client, in the order of Kafka's hash sets."""
    wanted: HashMap[None] = HashMap()
    interval_ms = DEFAULT_INTERVAL_MS
    for own_interval_ms, match, metrics in _in_order(subscriptions.configs):
        try:
            patterns = client_metrics.patterns(match)
        except KafkaError:  # from a data directory: a pattern that Java accepts
            continue
        if all(pattern.fullmatch(client.attribute(name)) for name, pattern in patterns.items()):
            for metric in table_order(tuple(dict.fromkeys(metrics)), string_hash, copied_capacity(len(metrics))):
                wanted[metric] = None
            interval_ms = min(interval_ms, own_interval_ms)
    union = ("*",) if "*" in wanted else tuple(wanted)
    text = f"[{', '.join(union)}]{interval_ms}"
    number = crc32c(text.encode()) ^ uuid_hash(client.instance_id)
    return Instance(client, subscriptions.changes, as_int(number), interval_ms, union)


def _in_order(configs: Configs) -> Iterable[tuple[int, tuple[str, ...], tuple[str, ...]]]:
    """Yield interval, patterns and metrics of each CLIENT_METRICS resource, in the order of Java's HashMap."""
    kind = ConfigResourceType.CLIENT_METRICS
    for stored in HashMap((name, each) for (own, name), each in configs.items() if own == kind).values():
        values: dict[str, Any] = dict(client_metrics.effective(stored))
        yield values["interval.ms"], values["match"] or (), values["metrics"] or ()
