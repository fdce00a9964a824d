"""The client quotas of one broker: the quota that applies to each client, and its usage (core G.10).

Follows Kafka's ``ClientQuotaManager`` and its variants for request time, controller mutations (KIP-599) and connections
(KIP-612). A broker accounts usage only if the metadata has any quota, or a callable decides.
"""

import math
from collections import OrderedDict
from collections.abc import Mapping
from typing import Generic, TypeVar

from broker.access.rates import MOST_MS, Rate, TokenBucket, Windows
from broker.coordination.metadata.image import Entity
from broker.coordination.metadata.quotas import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
)
from broker.settings import BrokerSettings
from broker.settings.model import MAX_INT, MAX_LONG
from broker.settings.plugins import QuotaRequest, call
from control_api.plugins import QUOTA_CALLBACK, is_reference

REQUEST_COST = 0.01
"""The charge of each request, in percent of a thread's second: 100 us. Measured times would differ between runs.

Ours, about what a small request takes.
"""
FORGOTTEN_MS = 3_600_000
"""The idle time in ms after which a meter expires (ClientQuotaManager.INACTIVE_SENSOR_EXPIRATION_TIME_SECONDS)."""

_QUOTA_TYPES: Mapping[str, str] = {
    PRODUCER_BYTE_RATE: "PRODUCE",
    CONSUMER_BYTE_RATE: "FETCH",
    REQUEST_PERCENTAGE: "REQUEST",
    CONTROLLER_MUTATION_RATE: "CONTROLLER_MUTATION",
}
"""Key of a quota -> ``ClientQuotaType``."""
_MOST_KNOWN = 10_000  # entities whose usage is kept: clients choose their ids freely; arbitrary, more than a test has
_ABSENT = ""  # no entity has this name; None is that of the default entity
_Pair = tuple[str | None, str | None]
"""User and client id."""
Who = tuple[str, str]
"""The entity whose usage is counted: user and client id; one of them is empty if it does not matter."""
Quotas = Mapping[Entity, Mapping[str, float]]
M = TypeVar("M", Rate, TokenBucket)


class Bounds:
    """The quotas of one kind in the metadata, by user and client id."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._bounds: dict[_Pair, float] = {}
        self._levels: frozenset[tuple[bool, bool]] = frozenset()
        self._known: dict[Who, tuple[Who, float | None]] = {}
        self.callback: str | None = None
        """The reference of a callable that decides instead of the metadata (``client.quota.callback.class``)."""

    @property
    def exist(self) -> bool:
        """Whether there is any quota of this kind."""
        return bool(self._bounds) or self.callback is not None

    def follow(self, quotas: Quotas, default: float | None = None) -> None:
        """Apply the quotas of new metadata; ``default`` is for client ids if there is no default client id."""
        bounds: dict[_Pair, float] = {
            (parts.get(USER, _ABSENT), parts.get(CLIENT_ID, _ABSENT)): values[self._key]
            for entity, values in quotas.items()
            if self._key in values and IP not in (parts := dict(entity))
        }
        self._bounds = bounds if default is None else {(_ABSENT, None): default, **bounds}
        self._levels = frozenset((user != _ABSENT, client != _ABSENT) for user, client in self._bounds)
        self._known.clear()

    def of(self, user: str, client_id: str) -> tuple[Who, float | None]:
        """Return the entity for which a client's usage counts, and its quota, if any."""
        who = user, client_id
        if self.callback is not None:
            limit = call(self.callback, QuotaRequest(_QUOTA_TYPES[self._key], user, client_id))
            return who, None if limit is None else float(limit)
        bound = self._known.get(who)
        if bound is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            bound = self._known[who] = self._find(user, client_id)
        return bound

    def _find(self, user: str, client_id: str) -> tuple[Who, float | None]:
        """Find the most specific entity that has a quota (DefaultQuotaCallback)."""
        if not client_id:  # Quirk: as if there were no client-id quotas
            shared = self._first((user, _ABSENT), (None, _ABSENT))
            return (user if shared is not None else "", ""), shared
        both, alone = (user, client_id), (user, "")
        ranks: tuple[tuple[_Pair, Who], ...] = (
            ((user, client_id), both),
            ((user, None), both),
            ((user, _ABSENT), alone),
            ((None, client_id), both),
            ((None, None), both),
            ((None, _ABSENT), alone),
            ((_ABSENT, client_id), ("", client_id)),
            ((_ABSENT, None), ("", client_id)),
        )
        for entity, who in ranks:
            if (bound := self._bounds.get(entity)) is not None:
                return who, bound
        if self._levels == {(True, True)}:
            return both, None
        return alone if self._levels == {(True, False)} else ("", client_id), None

    def _first(self, *entities: _Pair) -> float | None:
        return next((self._bounds[entity] for entity in entities if entity in self._bounds), None)


class Meters(Generic[M]):
    """The usage for one kind of quota, by entity."""

    def __init__(self, kind: type[M], windows: Windows) -> None:
        self._kind: type[M] = kind
        self._windows = windows
        self._meters: OrderedDict[Who, M] = OrderedDict()
        """In the order of their last use."""

    def of(self, who: Who, now_ms: int) -> M:
        """Return the meter of an entity."""
        meter = self._meters.get(who)
        if meter is None or now_ms - meter.used_ms > FORGOTTEN_MS:
            self._forget(now_ms)
            meter = self._meters[who] = self._kind(self._windows)
        self._meters.move_to_end(who)
        meter.used_ms = now_ms
        return meter

    def _forget(self, now_ms: int) -> None:
        """Drop meters that were idle for long, and beyond the limit the least recently used one."""
        while self._meters:
            who, oldest = next(iter(self._meters.items()))
            if len(self._meters) < _MOST_KNOWN and now_ms - oldest.used_ms <= FORGOTTEN_MS:
                break
            del self._meters[who]


class RateQuota:
    """A kind of quota that limits a rate: bytes, or percents of a thread."""

    def __init__(self, key: str, windows: Windows, most_ms: int = MOST_MS) -> None:
        """``most_ms``: the maximum throttle time."""
        self.bounds = Bounds(key)
        self._windows, self._most_ms = windows, most_ms
        self._meters = Meters(Rate, windows)

    def charge(self, user: str, client_id: str, value: float, now_ms: int) -> int:
        """Record usage; return the throttle time in ms."""
        if not self.bounds.exist:
            return 0
        who, bound = self.bounds.of(user, client_id)
        meter = self._meters.of(who, now_ms)
        meter.record(value, now_ms)
        return 0 if bound is None else min(meter.throttle_ms(bound, now_ms), self._most_ms)

    def give_back(self, user: str, client_id: str, value: float, now_ms: int) -> None:
        """Undo a charge."""
        if self.bounds.exist:
            self._meters.of(self.bounds.of(user, client_id)[0], now_ms).record(-value, now_ms)

    def most_at_once(self, user: str, client_id: str) -> int | None:
        """Return the most that a client may use in all full windows together; ``None``: it has no quota."""
        bound = self.bounds.of(user, client_id)[1] if self.bounds.exist else None
        if bound is None:
            return None
        most = bound * (self._windows.number - 1) * (self._windows.size_ms // 1000)
        return 0 if math.isnan(most) else int(min(most, MAX_INT))


class MutationQuota:
    """The quota of created and deleted partitions, a token bucket (KIP-599). Only the controller has it."""

    def __init__(self, windows: Windows) -> None:
        self.bounds = Bounds(CONTROLLER_MUTATION_RATE)
        self._meters = Meters(TokenBucket, windows)

    def charge(self, user: str, client_id: str, partitions: int, now_ms: int, *, strict: bool) -> int:
        """Record a change of this many partitions; return the throttle time in ms.

        With ``strict``, nothing is charged if tokens are missing already, and the caller has to refuse the request.
        """
        if not self.bounds.exist:
            return 0
        who, bound = self.bounds.of(user, client_id)
        if bound is None:
            return 0
        bucket = self._meters.of(who, now_ms)
        if strict and (missing_ms := bucket.throttle_ms(bound, now_ms)):
            return missing_ms
        bucket.record(partitions, bound, now_ms)
        return 0 if strict else bucket.throttle_ms(bound, now_ms)


class ConnectionQuota:
    """The quota of connections that an address may open per second (KIP-612)."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._bounds: dict[str | None, float] = {}
        self._meters = Meters(Rate, windows)

    def follow(self, quotas: Quotas) -> None:
        """Apply the quotas of new metadata."""
        self._bounds = {
            entity[0][1]: values[CONNECTION_CREATION_RATE]
            for entity, values in quotas.items()
            if CONNECTION_CREATION_RATE in values
        }

    def charge(self, address: str, now_ms: int) -> int:
        """Record a new connection; return for how many ms it is left unread and then closed; 0: it is served."""
        bound = self._bounds.get(address, self._bounds.get(None))
        if bound is None:
            return 0
        meter = self._meters.of((address, ""), now_ms)
        meter.record(1, now_ms)
        throttle_ms = min(meter.throttle_ms(bound, now_ms), self._windows.size_ms)
        if throttle_ms:
            meter.record(-1, now_ms)
        return throttle_ms


class BrokerQuotas:
    """All quotas of a broker. ``mutations`` is used at the controller's broker only."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        windows = _windows(settings, "quota.window")
        self.produce = RateQuota(PRODUCER_BYTE_RATE, windows)
        self.fetch = RateQuota(CONSUMER_BYTE_RATE, windows)
        self.request = RateQuota(REQUEST_PERCENTAGE, windows, windows.size_ms)
        self.mutations = MutationQuota(_windows(settings, "controller.quota.window"))
        self.connections = ConnectionQuota(windows)
        callback = settings.optional_string(QUOTA_CALLBACK)
        self.has_callback = is_reference(callback)
        if self.has_callback:
            for quota in (self.produce, self.fetch, self.request, self.mutations):
                quota.bounds.callback = callback

    def follow(self, quotas: Quotas) -> None:
        """Apply the quotas of new metadata; recorded usage stays."""
        self.produce.bounds.follow(quotas, _static(self._settings, "quota.producer.default"))
        self.fetch.bounds.follow(quotas, _static(self._settings, "quota.consumer.default"))
        for bounds in (self.request.bounds, self.mutations.bounds):
            bounds.follow(quotas)
        self.connections.follow(quotas)


def _static(settings: BrokerSettings, name: str) -> float | None:
    """Return a default quota in the broker's settings, as before 3.0 (ClientQuotaManagerConfig.quotaDefault)."""
    value = settings.get(name)
    return float(value) if isinstance(value, int) and value < MAX_LONG else None


def _windows(settings: BrokerSettings, name: str) -> Windows:
    return Windows(settings.int(f"{name}.num"), settings.int(f"{name}.size.seconds") * 1000)
