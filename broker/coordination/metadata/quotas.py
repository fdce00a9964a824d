"""Decisions of AlterClientQuotas and DescribeClientQuotas (core G.10).

After Kafka's ``ClientQuotaControlManager`` and ``ClientQuotasImage`` (KIP-546, KIP-612). Brokers enforce them.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any

from broker.coordination.metadata.image import ClusterImage, Entity, entity_hash
from protocol.deferred import dataclass
from protocol.errors import ErrorCode, KafkaError
from protocol.java import reserved_capacity, string_hash, table_capacity, table_order
from protocol.log_records.metadata_security import ClientQuotaRecord, QuotaEntity
from protocol.pauses import pause

USER, CLIENT_ID, IP = "user", "client-id", "ip"
PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE = "producer_byte_rate", "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"

Altered = tuple[Entity, KafkaError | None]

_LONG, _INT = 2.0**63, 2**31 - 1  # the limits of Java's types
_OF_CLIENTS: Mapping[str, tuple[str, float] | None] = {
    PRODUCER_BYTE_RATE: ("a LONG", _LONG),
    CONSUMER_BYTE_RATE: ("a LONG", _LONG),
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
}
"""Quota key -> Kafka's name of its integral type and its largest value; ``None``: any number."""
_OF_ADDRESSES: Mapping[str, tuple[str, float] | None] = {CONNECTION_CREATION_RATE: ("an INT", _INT)}


class MatchType(IntEnum):
    """How a component of a DescribeClientQuotas filter matches names."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


@dataclass(frozen=True, slots=True)
class Alteration:
    """Changes of one entity's quotas: (key, value or ``None`` to remove it), in the order of the request.

    The entity's parts are in the order of Kafka's map.
    """

    entity: Mapping[str, str | None]
    changes: Sequence[tuple[str, float | None]]

    @property
    def key(self) -> Entity:
        """The entity in the form of the image."""
        return tuple(sorted(self.entity.items(), key=lambda part: part[0]))


def alter(
    image: ClusterImage, wanted: Sequence[Alteration], resolves: Callable[[str], bool], *, finite: bool
) -> tuple[list[Altered], list[Any]]:
    """Return the result for each distinct entity, and the records. ``resolves(host)``: whether an IP or host is valid.

    ``finite`` is :attr:`Behaviour.FINITE_QUOTAS`.

    Quirk: if an entity is listed twice, the first entry takes effect, and the result is the second one's error.
    """
    answers: dict[Entity, KafkaError | None] = {}
    records: list[Any] = []
    for each in wanted:
        pause()
        named = dict(each.changes)
        keys = table_order(list(named), string_hash, table_capacity(len(each.changes)))
        changes = {key: named[key] for key in keys}
        if each.key in answers or len(changes) < len(each.changes):
            answers[each.key] = _invalid(f"Ignoring duplicate entity {_java(each.entity)}")
            continue
        try:
            keys_of = _keys_of(each.entity, resolves)
            for key, value in changes.items():
                if value is not None:
                    _check(keys_of, key, value, finite=finite)
            records += _alter_entity(image.quotas.get(each.key, {}), each, changes)
        except KafkaError as error:
            answers[each.key] = error
        else:
            answers[each.key] = None
    return [(entity, answers[entity]) for entity in table_order(list(answers), entity_hash)], records


def in_map(entity: Mapping[str, str | None], listed: int) -> dict[str, str | None]:
    """Return an entity's parts in the order of Kafka's map, sized for the number of parts in the request."""
    return {kind: entity[kind] for kind in table_order(list(entity), string_hash, table_capacity(listed))}


def _invalid(problem: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, problem)


def _java(entity: Mapping[str, str | None]) -> str:
    parts = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity.items())
    return f"ClientQuotaEntity(entries={{{parts}}})"


def _alter_entity(
    now: Mapping[str, float],
    alteration: Alteration,
    changes: Mapping[str, float | None],
) -> Iterator[ClientQuotaRecord]:
    """Iterate over the records of one entity's changed quotas."""
    parts = tuple(QuotaEntity(kind, name) for kind, name in alteration.key)
    for key, value in changes.items():
        if value is None:
            if key in now:
                yield ClientQuotaRecord(parts, key, remove=True)
        elif now.get(key) != value:
            yield ClientQuotaRecord(parts, key, value)


def _keys_of(
    entity: Mapping[str, str | None], resolves: Callable[[str], bool]
) -> Mapping[str, tuple[str, float] | None]:
    """Return the quota keys that an entity may have, after checks in Kafka's order (core G.10).

    Raises:
        KafkaError: INVALID_REQUEST for an invalid entity.
    """
    if not entity:
        raise _invalid("Invalid empty client quota entity")
    for kind, name in entity.items():
        if kind not in (USER, CLIENT_ID, IP):
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
    if IP not in entity:
        return _OF_CLIENTS
    if len(entity) > 1:
        raise _invalid("Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId")
    address = entity[IP]
    if address is not None and not resolves(address):
        raise _invalid(f"{address} is not a valid IP or resolvable host.")
    return _OF_ADDRESSES


def _check(keys: Mapping[str, tuple[str, float] | None], key: str, value: float, *, finite: bool) -> None:
    """Check one value that an AlterClientQuotas request sets, in Kafka's order (core G.10)."""
    if key not in keys:
        raise _invalid(f"Invalid configuration key {key}")
    if finite and not math.isfinite(value):
        raise _invalid(f"Quota {key} must be a finite number")
    if value <= 0:
        raise _invalid(f"Quota {key} must be greater than 0")
    integral = keys[key]
    if integral is None:
        return
    called, most = integral
    if value > most:
        raise _invalid(f"Proposed value for {key} is too large for {called}.")
    if abs(math.fmod(value, 1.0)) > 1e-6:  # ClientQuotaControlManager allows for the rounding of a double
        raise _invalid(f"{key} cannot be a fractional value.")


# --- finding ---------------------------------------------------------------------------------------------------------


def find(
    image: ClusterImage, components: Sequence[tuple[str, int, str | None]], *, strict: bool, indexed: bool = True
) -> list[tuple[Entity, Mapping[str, float]]]:
    """Return the entities that match all components (type, match type, name), and with ``strict`` have no others.

    ``indexed`` is :attr:`Behaviour.QUOTAS_FOUND_BY_INDEX`. Each component is checked before their combination
    (core G.10).

    Raises:
        KafkaError: INVALID_REQUEST; UNSUPPORTED_VERSION for an unknown entity type.
    """
    wanted: dict[str, tuple[int, str | None]] = {}
    for kind, match_type, name in components:
        _check_component(kind, match_type, name, wanted)
        wanted[kind] = match_type, name
    if IP in wanted and len(wanted) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used with user or "
            "clientId filter component."
        )
    entities = _indexed(image, wanted) if indexed and wanted else list(image.quotas)
    return [(each, image.quotas[each]) for each in entities if _matches(dict(each), wanted, strict=strict)]


def _indexed(image: ClusterImage, wanted: Mapping[str, tuple[int, str | None]]) -> list[Entity]:
    """Return the entities that match the first component, in the order of a copy of its index."""
    kinds = [kind for kind, (match_type, _) in wanted.items() if match_type != MatchType.SPECIFIED] or list(wanted)
    first = table_order(kinds, string_hash)[0]
    component = {first: wanted[first]}
    index = table_order([each for each in image.quotas if _matches(dict(each), component, strict=False)], entity_hash)
    return table_order(index, entity_hash, reserved_capacity(len(index)))


def _check_component(kind: str, match_type: int, name: str | None, before: Mapping[str, object]) -> None:
    """Check one component of a DescribeClientQuotas filter; ``before`` has the types that came first (core G.10)."""
    if not kind:
        raise _invalid("Invalid empty entity type.")
    if kind in before:
        raise _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
    if kind not in (USER, CLIENT_ID, IP):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
    if match_type == MatchType.EXACT:
        if name is None:
            raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
    elif match_type not in (MatchType.DEFAULT, MatchType.SPECIFIED):
        raise _invalid(f"Unknown match type {match_type}")
    elif name is not None:
        called = f"MATCH_TYPE_{MatchType(match_type).name}"
        raise _invalid(f"Request specified {called}, but also specified a match string.")


def _matches(entity: Mapping[str, str | None], wanted: Mapping[str, tuple[int, str | None]], *, strict: bool) -> bool:
    if strict and len(entity) != len(wanted):
        return False
    for kind, (match_type, name) in wanted.items():
        if kind not in entity or (match_type != MatchType.SPECIFIED and entity[kind] != name):
            return False
    return True
