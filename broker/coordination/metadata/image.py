"""Image of the cluster's metadata at one offset: plain objects in dicts.

Only :meth:`MetadataMachine.replay` changes an image. Brokers and partitions are immutable and are replaced by changes:
a reference keeps the state of its time, and can be compared by identity. After Kafka's ``MetadataImage``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any
from uuid import UUID

from protocol.deferred import dataclass
from protocol.java import HashTable, TimelineMap, string_hash, table_capacity

# --- client quotas ----------------------------------------------------------------------------------------------------

Entity = tuple[tuple[str, str | None], ...]
"""((type, name or None for the default), ...), sorted by type, in the image and in records."""
_Changes = HashTable[str, tuple[float | None]]
"""Quota key -> its new value; ``None`` if it is removed."""


def entity_hash(entity: Entity) -> int:
    """Return ``ClientQuotaEntity.hashCode``, the hash of a map from types to names; the hash of null is 0."""
    # 31: `Objects.hash` of a single value.
    return sum((string_hash(kind) ^ string_hash(name or "") for kind, name in entity), 31) & 0xFFFF_FFFF


class ClientQuotas(Mapping[Entity, Mapping[str, float]]):
    """Entity -> quota key -> value, in the order in which brokers list them (ClientQuotasImage, ClientQuotasDelta).

    Each delta makes new tables, sized for the old entries: first the old entries are inserted in the old order, then
    the new ones in the order of the delta's table. So the order depends on which quotas were set together.

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


# --- the image --------------------------------------------------------------------------------------------------------

NO_LEADER = -1
"""Leader of a partition without a leader."""

# org.apache.kafka.common.DirectoryId: reserved directory ids (KIP-858).
MIGRATING_DIRECTORY = UUID(int=0)
"""Of a replica that was placed before directories had ids."""
UNASSIGNED_DIRECTORY = UUID(int=1)
"""Of a replica whose broker has not placed it in a directory yet."""
LOST_DIRECTORY = UUID(int=2)
"""Of a replica in some directory that is offline."""

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Topics whose IsInternal is true (core B.1)."""

METADATA_TOPIC = "__cluster_metadata"
"""Reserved topic: never listed, cannot be created (core B.1)."""


@dataclass(frozen=True, slots=True)
class BrokerListener:
    """A broker's advertised listener. ``protocol`` is PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""

    host: str
    port: int
    protocol: str = "PLAINTEXT"


@dataclass(frozen=True, slots=True)
class Broker:
    """A registered broker. ``epoch`` is the log offset of its registration, as in Kafka."""

    id: int
    epoch: int
    incarnation_id: UUID
    listeners: Mapping[str, BrokerListener] = field(default_factory=dict)
    directories: tuple[UUID, ...] = ()
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    features: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Feature name -> supported (min, max)."""
    cordoned: tuple[UUID, ...] | None = None

    @property
    def active(self) -> bool:
        """Whether the broker may lead: neither fenced nor in controlled shutdown."""
        return not (self.fenced or self.in_controlled_shutdown)

    @property
    def default_directory(self) -> UUID:
        """The directory of a new replica: the only one, or unknown until the broker has placed it (defaultDir)."""
        if not self.directories:
            return MIGRATING_DIRECTORY
        return self.directories[0] if len(self.directories) == 1 else UNASSIGNED_DIRECTORY

    @property
    def takes_replicas(self) -> bool:
        """Whether not all of its log directories are cordoned (hasUncordonedDirs, KIP-1066)."""
        return not self.directories or not set(self.directories) <= set(self.cordoned or ())

    def has_online(self, directory_id: UUID) -> bool:
        """Whether a directory is online, as far as the controller knows (BrokerRegistration.hasOnlineDir)."""
        if directory_id in {MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY} or not self.directories:
            return True
        return directory_id in self.directories


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition's registration. All epochs and ids are Kafka's; ``leader`` is -1 for none."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    directories: tuple[UUID, ...] = ()
    recovering: bool = False
    """Whether the leader was elected uncleanly and is recovering (LeaderRecoveryState)."""

    def directory_of(self, broker_id: int) -> UUID:
        """Return the directory of a broker's replica; MIGRATING if none is recorded."""
        if broker_id not in self.replicas or len(self.directories) != len(self.replicas):
            return MIGRATING_DIRECTORY
        return self.directories[self.replicas.index(broker_id)]

    @property
    def reassigning(self) -> bool:
        """Whether a reassignment is in progress."""
        return bool(self.adding_replicas or self.removing_replicas)

    @property
    def preferred_leader(self) -> int:
        """The first replica, or -1."""
        return self.replicas[0] if self.replicas else NO_LEADER


@dataclass(slots=True)
class Topic:
    """A topic and its partitions by index (0..n-1, in order). The object lives as long as its topic id."""

    name: str
    id: UUID
    partitions: dict[int, Partition] = field(default_factory=dict)

    @property
    def internal(self) -> bool:
        """Whether responses mark the topic as internal."""
        return self.name in INTERNAL_TOPICS


@dataclass(slots=True)
class ClusterImage:
    """The metadata as of ``offset``, that of the last applied record (-1: none)."""

    offset: int = -1
    brokers: dict[int, Broker] = field(default_factory=dict)
    topics: dict[str, Topic] = field(default_factory=dict)
    topics_by_id: dict[UUID, Topic] = field(default_factory=dict)
    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    """(resource type of core C.1, name) -> key -> value, for dynamic settings."""
    config_order: dict[tuple[int, str], TimelineMap[None]] = field(default_factory=dict, compare=False)
    """The keys of :attr:`configs` in the order of Kafka's ``configData``."""
    subscription_changes: int = field(default=0, compare=False)
    """Incremented by every change of a CLIENT_METRICS resource's :attr:`configs`."""
    features: dict[str, int] = field(default_factory=dict)
    """Finalized levels above 0. FinalizedFeaturesEpoch of a broker is :attr:`offset`."""
    features_offset: int = field(default=-1, compare=False)
    """The offset of the last change of features: FinalizedFeaturesEpoch of a controller."""
    next_producer_id: int = 0
    colliding_names: dict[str, set[str]] = field(default_factory=dict)
    """Topic name with "." replaced by "_" -> the topics with that form, if their names have "." or "_" (core B.1)."""
    controllers: dict[int, Any] = field(default_factory=dict)
    """Controller id -> its registration record."""
    # Security state: each value is its record (protocol.log_records.metadata).
    acls: dict[UUID, Any] = field(default_factory=dict)
    acl_changes: int = field(default=0, compare=False)
    """Incremented by every change of :attr:`acls`, for caches of derived data."""
    quotas: ClientQuotas = field(default_factory=ClientQuotas)
    scram: dict[tuple[str, int], Any] = field(default_factory=dict)
    """(user, mechanism) -> credential record."""
    tokens: dict[str, Any] = field(default_factory=dict)
    """Token id -> delegation token record."""

    def topic(self, name: str) -> Topic | None:
        """Return the topic with that name, or ``None``."""
        return self.topics.get(name)

    def partition(self, topic: str, index: int) -> Partition | None:
        """Return a partition, or ``None``."""
        topic_record = self.topics.get(topic)
        return None if topic_record is None else topic_record.partitions.get(index)

    def config(self, resource_type: int, name: str) -> Mapping[str, str]:
        """Return the dynamic settings of a resource; empty if there are none."""
        return self.configs.get((resource_type, name), {})

    def alive(self, broker_id: int) -> bool:
        """Return whether the broker is registered and unfenced."""
        broker = self.brokers.get(broker_id)
        return broker is not None and not broker.fenced

    def alive_brokers(self) -> list[Broker]:
        """Return the unfenced brokers in the order of their ids."""
        return [broker for _, broker in sorted(self.brokers.items()) if not broker.fenced]

    def active(self, broker_id: int) -> bool:
        """Return whether the broker may be a leader."""
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.active

    def listener(self, broker_id: int, name: str) -> BrokerListener | None:
        """Return an unfenced broker's advertised address for clients of the listener ``name``, or ``None``."""
        broker = self.brokers.get(broker_id)
        return None if broker is None or broker.fenced else broker.listeners.get(name)

    def all_partitions(self) -> Iterator[tuple[Topic, int, Partition]]:
        """Iterate over all partitions of all topics."""
        for topic in self.topics.values():
            for index, partition in topic.partitions.items():
                yield topic, index, partition

    def with_eligible_replicas(self, topic: str) -> Iterator[tuple[Topic, int, Partition]]:
        """Iterate over partitions with an ELR or a last known ELR: those of a topic, or all for ``""``."""
        topics = [self.topics[topic]] if topic in self.topics else () if topic else self.topics.values()
        for each in topics:
            for index, partition in each.partitions.items():
                if partition.elr or partition.last_known_elr:
                    yield each, index, partition
