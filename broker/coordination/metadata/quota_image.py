"""Client quotas of the image, in the order in which brokers list them.

After Kafka's ``ClientQuotasImage`` and ``ClientQuotasDelta``. Each delta makes new tables, sized for the old entries:
first the old entries are inserted in the old order, then the new ones in the order of the delta's table. So the order
depends on which quotas were set together.
"""

from collections.abc import Iterator, Mapping

from protocol.java import HashTable, string_hash, table_capacity

Entity = tuple[tuple[str, str | None], ...]
"""((type, name or None for the default), ...), sorted by type, in the image and in records."""
_Changes = HashTable[str, tuple[float | None]]
"""Quota key -> its new value; ``None`` if it is removed."""


def entity_hash(entity: Entity) -> int:
    """Return ``ClientQuotaEntity.hashCode``, the hash of a map from types to names; the hash of null is 0."""
    return sum((string_hash(kind) ^ string_hash(name or "") for kind, name in entity), 31) & 0xFFFF_FFFF


class ClientQuotas(Mapping[Entity, Mapping[str, float]]):
    """Entity -> quota key -> value.

    All changes until the next read form one delta. The controller reads the quotas before each alteration, so each
    append is one delta, and a loaded log is a single delta, as on a broker.
    """

    __slots__ = ("_changes", "_entities")

    def __init__(self) -> None:
        self._entities: dict[Entity, dict[str, float]] = {}
        self._changes: HashTable[Entity, _Changes] = HashTable(entity_hash)

    def change(self, entity: Entity, key: str, value: float | None) -> None:
        """Set a quota, or remove it (``None``), in the current delta."""
        self._changes.get_or_create(entity, lambda: HashTable(string_hash)).put(key, (value,))

    def __getitem__(self, entity: Entity) -> Mapping[str, float]:
        return self._current()[entity]

    def __iter__(self) -> Iterator[Entity]:
        return iter(self._current())

    def __len__(self) -> int:
        return len(self._current())

    def _current(self) -> dict[Entity, dict[str, float]]:
        if len(self._changes):
            self._entities = self._applied()
            self._changes = HashTable(entity_hash)
        return self._entities

    def _applied(self) -> dict[Entity, dict[str, float]]:
        entities: HashTable[Entity, dict[str, float]] = HashTable(entity_hash, table_capacity(len(self._entities)))
        for entity, before in (*self._entities.items(), *((each, {}) for each in self._changes)):
            if entity in entities:
                continue
            changes = self._changes.get(entity)
            quotas = before if changes is None else _values(before, changes)
            if quotas:
                entities.put(entity, quotas)
        return dict(entities.items())


def _values(before: Mapping[str, float], changes: _Changes) -> dict[str, float]:
    values: HashTable[str, float] = HashTable(string_hash, table_capacity(len(before)))
    for key, value in before.items():
        changed = (value,) if (change := changes.get(key)) is None else change
        if changed[0] is not None:
            values.put(key, changed[0])
    for key, (new,) in changes.items():
        if key not in values and new is not None:
            values.put(key, new)
    return dict(values.items())
