"""Replays the metadata log record by record, like a controller, and reports records that contradict earlier ones.

After Kafka's control managers (`ReplicationControlManager`, `ClusterControlManager`, `AclControlManager`, ...), some of
which terminate the process on such a record.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final
from uuid import UUID

from protocol.log_records import metadata as md
from protocol.log_records import metadata_security as security

NO_LEADER: Final = -1
_UNCHANGED: Final = -2
_WITH_CONTROLLERS: Final = 15
"""The feature level of `metadata.version` since which controllers register (3.7)."""
_WITH_DIRECTORIES: Final = 17
"""As above, since which brokers register their log directories (KIP-858)."""
_RESERVED: Final = 100
"""Below it, ids of log directories have a meaning or are reserved (DirectoryId)."""
_NEVER_BACK: Final = "kraft.version"
"""The feature that cannot be downgraded (QuorumFeatures); metadata.version can, if that loses no metadata."""
_METADATA: Final = "metadata.version"
_TOPIC: Final = 2
_KEY_SIZES: Final = {1: 32, 2: 64}
"""SCRAM mechanism -> bytes of a key: those of SHA-256 and SHA-512."""
_ITERATIONS: Final = range(4096, 16385)
"""Iterations that a controller accepts (core G.11)."""
_PROTOCOLS: Final = range(4)
"""Ids of SecurityProtocol, PLAINTEXT to SASL_SSL."""
_ENTITIES: Final = frozenset({"user", "client-id", "ip"})
_CLIENT_QUOTAS: Final = frozenset(
    {"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"}
)
_ADDRESS_QUOTAS: Final = frozenset({"connection_creation_rate"})
_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_PRINCIPAL: Final = re.compile(r"[^:]+:.+")
_ACL_RANGES: Final = {
    "resource_type": range(2, 8), "pattern_type": range(3, 5),
    "operation": range(2, 16), "permission_type": range(2, 4),
}  # fmt: skip
"""Codes of what is stored (`protocol.acls`): neither unknown nor one of those that only filters have."""


@dataclass(slots=True)
class Place:
    """A partition's replicas and leader."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    others: dict[str, tuple[Any, ...]]
    """`adding_replicas`, `removing_replicas`, `eligible_leader_replicas`, `directories`."""
    recovery: int = 0
    former: frozenset[int] = frozenset()
    """Brokers that were replicas, or that a snapshot has as eligible: a reassignment may leave one eligible."""


@dataclass(slots=True)
class Image:
    """Cluster metadata after some records. `is_snapshot`: the records are those of a snapshot."""

    is_snapshot: bool = False
    offset: int = -1
    """Of the record that is applied; of a snapshot, that of the last one that it covers."""
    topics: dict[UUID, str] = field(default_factory=dict)
    places: dict[tuple[UUID, int], Place] = field(default_factory=dict)
    settings: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    brokers: dict[int, md.RegisterBrokerRecord] = field(default_factory=dict)
    registers: bool = False
    """Whether a broker has registered, even if none is registered any more."""
    fenced: dict[int, bool] = field(default_factory=dict)
    fresh: set[int] = field(default_factory=set)
    """Brokers that have registered but were neither fenced nor unfenced since; they are leaders again later."""
    controllers: dict[int, md.RegisterControllerRecord] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    next_producer_id: int = 0
    credentials: set[tuple[str, int]] = field(default_factory=set)
    acls: dict[UUID, Any] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    quotas: dict[Any, float] = field(default_factory=dict)
    held: list[Any] | None = None
    """The records of an open metadata transaction (KIP-868)."""

    def add(self, record: Any) -> Iterator[str]:
        """Apply a record, and yield what is wrong with it."""
        kind = type(record).__name__
        if kind in {"BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"}:
            yield from self._transaction(kind)
        elif self.held is not None:
            self.held.append(record)
        elif (apply := _APPLY.get(kind)) is not None:
            yield from apply(self, record)

    def _transaction(self, kind: str) -> Iterator[str]:
        if kind == "BeginTransactionRecord":
            if self.held is not None:
                yield "a metadata transaction begins within another"
            self.held = []
            return
        if self.held is None:
            yield "a metadata transaction ends that did not begin"
        held, self.held = self.held or [], None
        for record in held if kind == "EndTransactionRecord" else ():
            yield from self.add(record)

    def compared(self) -> dict[tuple[Any, ...], Any]:
        """Return, by subject, the state that two images of the same records must share."""
        answer: dict[tuple[Any, ...], Any] = {("topic", name): topic_id for topic_id, name in self.topics.items()}
        for (topic_id, number), place in self.places.items():
            shown = (place.replicas, place.isr, place.leader, place.leader_epoch, place.partition_epoch)
            moving = (place.others["adding_replicas"], place.others["removing_replicas"])
            answer["partition", f"{self.topics.get(topic_id)}-{number}"] = (*shown, *moving, place.recovery)
        for (resource, name), values in self.settings.items():
            answer |= {("setting", resource, name, key): value for key, value in values.items()}
        version = self.features.get(_METADATA, 0)
        for broker_id, each in self.brokers.items():
            answer["broker", broker_id] = (each.broker_epoch, self.fenced.get(broker_id))
            places = sorted(map(str, each.log_dirs)) if version >= _WITH_DIRECTORIES else []
            answer["registration", broker_id] = _registration(each, each.rack, places)
        if version >= _WITH_CONTROLLERS:
            answer |= {("controller", number): _registration(each) for number, each in self.controllers.items()}
        answer |= {
            ("feature", name): level for name, level in self.features.items() if level and name != "kraft.version"
        }
        answer |= {("credential", *each): True for each in self.credentials}
        answer |= {("acl", str(each)): value for each, value in self.acls.items()}
        answer |= {("token", each): True for each in self.tokens}
        answer |= {("quota", str(each)): value for each, value in self.quotas.items()}
        return answer | {("producer ids",): self.next_producer_id}

    def moved_to(self, other: "Image") -> Iterator[tuple[str, str]]:
        """Yield partitions whose replicas are in other directories in another image, if both know all directories."""
        for key, place in self.places.items():
            own = place.others["directories"]
            others = other.places[key].others["directories"] if key in other.places else ()
            if len(own) == len(others) == len(place.replicas) and own != others:
                yield f"{self.topics.get(key[0])}-{key[1]}", f"{[*map(str, others)]}"

    def led_by_others(self) -> Iterator[str]:
        """Yield partitions whose leader is a fenced broker, or one that is not registered."""
        for (topic_id, number), place in self.places.items():
            if self.fenced.get(place.leader, False) and place.leader not in self.fresh:
                yield f"{self.topics.get(topic_id)}-{number} is led by the fenced broker {place.leader}"
            elif self.registers and place.leader not in {NO_LEADER, *self.brokers}:
                yield f"{self.topics.get(topic_id)}-{number} is led by broker {place.leader}, which is not registered"

    def without_partitions(self) -> Iterator[str]:
        """Yield topics without partitions, if brokers are registered; otherwise the log is incomplete."""
        if not self.brokers:
            return
        filled = {topic_id for topic_id, _ in self.places}
        yield from (
            f"topic {name} without partitions" for topic_id, name in self.topics.items() if topic_id not in filled
        )


def _topic(image: Image, record: md.TopicRecord) -> Iterator[str]:
    if record.topic_id.int == 0 or record.topic_id in image.topics:
        yield "a topic id that is zero or already in use"
    if record.name in image.topics.values() and image.topics.get(record.topic_id) != record.name:
        yield "a topic name that is already in use"
    if not _NAME.fullmatch(record.name) or record.name in {".", ".."}:
        yield "an invalid topic name"
    image.topics[record.topic_id] = record.name


def _remove_topic(image: Image, record: md.RemoveTopicRecord) -> Iterator[str]:
    name = image.topics.pop(record.topic_id, None)
    if name is None:
        yield "the removal of an unknown topic"
        return
    image.settings.pop((_TOPIC, name), None)
    for key in [each for each in image.places if each[0] == record.topic_id]:
        del image.places[key]


def _partition(image: Image, record: md.PartitionRecord) -> Iterator[str]:
    if record.topic_id not in image.topics:
        yield "a partition of an unknown topic"
    known = image.places.get((record.topic_id, record.partition_id))
    if known is not None and (
        image.is_snapshot or record.leader_epoch < known.leader_epoch or record.partition_epoch < known.partition_epoch
    ):
        yield "a partition that already exists"
    if record.leader_epoch < 0 or record.partition_epoch < 0 or record.partition_id < 0:
        yield "a negative epoch or number of a partition"
    others = {name: tuple(getattr(record, name) or ()) for name in _OTHERS}
    place = Place(
        tuple(record.replicas), tuple(record.isr), record.leader, record.leader_epoch, record.partition_epoch, others,
        record.leader_recovery_state,
    )  # fmt: skip
    if image.is_snapshot:
        place.former = frozenset(others["eligible_leader_replicas"])
    image.places[record.topic_id, record.partition_id] = place
    if not place.replicas:
        yield "a partition without replicas"
    if not image.is_snapshot and image.brokers and set(place.replicas) - set(image.brokers):
        yield "a replica of a broker that is not registered"
    yield from _judged(place, record.leader_recovery_state)


def _change(image: Image, record: md.PartitionChangeRecord) -> Iterator[str]:
    place = image.places.get((record.topic_id, record.partition_id))
    if place is None:
        yield "the change of an unknown partition"
        return
    place.former |= set(place.replicas)
    for name in ("replicas", "isr"):
        if getattr(record, name) is not None:
            setattr(place, name, tuple(getattr(record, name)))
    if record.leader != _UNCHANGED:
        place.leader, place.leader_epoch = record.leader, place.leader_epoch + 1
    place.partition_epoch += 1
    if record.leader_recovery_state >= 0:
        place.recovery = record.leader_recovery_state
    place.others |= {name: tuple(getattr(record, name)) for name in _OTHERS if getattr(record, name) is not None}
    yield from _judged(place, record.leader_recovery_state)


_OTHERS: Final = ("adding_replicas", "removing_replicas", "eligible_leader_replicas", "directories")


def _judged(place: Place, recovery: int) -> Iterator[str]:
    replicas, isr, others = set(place.replicas), set(place.isr), place.others
    if len(replicas) < len(place.replicas) or len(isr) < len(place.isr):
        yield "a replica twice"
    if isr - replicas:
        yield "an ISR that are no replicas"
    if place.leader != NO_LEADER and place.leader not in isr:
        yield "a leader that is not in the ISR"
    for name in ("adding_replicas", "removing_replicas"):
        if set(others.get(name, ())) - replicas:
            yield f"{name} that are no replicas"
    # PartitionChangeBuilder.maybePopulateTargetElr does not compare the list with the new replicas.
    if set(others.get("eligible_leader_replicas", ())) - replicas - place.former:
        yield "eligible_leader_replicas that never were replicas"
    if set(others.get("eligible_leader_replicas", ())) & isr:
        yield "a replica that is in the ISR and eligible beside it"
    if (directories := others.get("directories", ())) and len(directories) != len(place.replicas):
        yield "the number of directories differs from the number of replicas"
    if recovery not in {-1, 0, 1}:
        yield "an unknown leader recovery state"


def _setting(image: Image, record: md.ConfigRecord) -> Iterator[str]:
    values = image.settings.setdefault((record.resource_type, record.resource_name), {})
    if record.value is None:
        values.pop(record.name, None)
    else:
        if image.is_snapshot and record.name in values:
            yield "a setting twice"
        values[record.name] = record.value


def _register(image: Image, record: md.RegisterBrokerRecord) -> Iterator[str]:
    known = image.brokers.get(record.broker_id)
    if known is not None and (image.is_snapshot or record.broker_epoch < known.broker_epoch):
        yield "a registration that is older than the broker's last"
    if record.broker_epoch > image.offset:
        yield "a broker epoch that is beyond the offset of the registration"
    is_new = known is None or known.incarnation_id != record.incarnation_id
    # ClusterControlManager.registerBroker keeps the state only of the same incarnation.
    if is_new and record.in_controlled_shutdown and not image.is_snapshot:
        yield "a new registration of a broker that is shutting down"
    yield from _supporting(record)
    if any(each.int < _RESERVED for each in record.log_dirs):
        yield "a log directory with a reserved id"
    if known is not None and known.log_dirs and not record.log_dirs:
        yield "a registration without the log directories of before"
    others = {each for key, other in image.brokers.items() if key != record.broker_id for each in other.log_dirs}
    if len(set(record.log_dirs) - others) < len(record.log_dirs):
        yield "a log directory that is registered twice"
    image.registers = True
    image.brokers[record.broker_id] = record
    image.fenced[record.broker_id] = record.fenced
    image.fresh.add(record.broker_id)


def _registration(record: md.RegisterBrokerRecord | md.RegisterControllerRecord, *more: Any) -> tuple[Any, ...]:
    """Return what a broker or controller registers, in canonical order."""
    places = sorted((each.name, each.host, each.port, each.security_protocol) for each in record.end_points)
    ranges = sorted((each.name, each.min_supported_version, each.max_supported_version) for each in record.features)
    return str(record.incarnation_id), *more, places, ranges


def _supporting(record: md.RegisterBrokerRecord | md.RegisterControllerRecord) -> Iterator[str]:
    """Yield the faults in the endpoints and features of a registration."""
    names = [each.name for each in record.end_points]
    if not names or len(set(names)) < len(names):
        yield "a registration without an endpoint, or with a duplicate endpoint name"
    if any(not each.host or not each.port or each.security_protocol not in _PROTOCOLS for each in record.end_points):
        yield "an endpoint without a host or port, or of an unknown protocol"
    ranges = [(each.min_supported_version, each.max_supported_version) for each in record.features]
    if any(not 0 <= least <= most for least, most in ranges) or len({each.name for each in record.features}) < len(
        ranges
    ):
        yield "a feature that is registered twice, or with an invalid range"


def _register_controller(image: Image, record: md.RegisterControllerRecord) -> Iterator[str]:
    if image.is_snapshot and record.controller_id in image.controllers:
        yield "a controller that is already registered"
    image.controllers[record.controller_id] = record
    yield from _supporting(record)


def _registered(image: Image, broker_id: int, epoch: int) -> Iterator[str]:
    known = image.brokers.get(broker_id)
    if known is None or known.broker_epoch != epoch:
        yield "a change of a registration that does not exist"


def _unregister(image: Image, record: md.UnregisterBrokerRecord) -> Iterator[str]:
    yield from _registered(image, record.broker_id, record.broker_epoch)
    image.brokers.pop(record.broker_id, None)
    image.fenced.pop(record.broker_id, None)


def _registration_change(image: Image, record: md.BrokerRegistrationChangeRecord) -> Iterator[str]:
    yield from _registered(image, record.broker_id, record.broker_epoch)
    if record.fenced not in {-1, 0, 1} or record.in_controlled_shutdown not in {0, 1}:
        yield "a change of a registration to an invalid state"
    if record.log_dirs and (known := image.brokers.get(record.broker_id)) is not None:
        if set(record.log_dirs) - set(known.log_dirs):
            yield "log directories that the broker did not register"
        image.brokers[record.broker_id] = replace(known, log_dirs=record.log_dirs)
    if record.broker_id in image.brokers and record.fenced:
        image.fenced[record.broker_id] = record.fenced > 0
        image.fresh.discard(record.broker_id)


def _fence(image: Image, record: md.FenceBrokerRecord | md.UnfenceBrokerRecord) -> Iterator[str]:
    yield from _registered(image, record.id, record.epoch)
    if record.id in image.brokers:
        image.fenced[record.id] = isinstance(record, md.FenceBrokerRecord)
        image.fresh.discard(record.id)


def _feature(image: Image, record: md.FeatureLevelRecord) -> Iterator[str]:
    if record.feature_level < 0:
        yield "a negative level of a feature"
    before = image.features.get(record.name, 0)
    lost = range(record.feature_level + 1, before + 1)
    if lost and (record.name == _NEVER_BACK or (record.name == _METADATA and md.CHANGED_METADATA.intersection(lost))):
        yield f"a lower level of {record.name}, {record.feature_level}, than before"
    if not image.is_snapshot and record.feature_level > 0 and record.name != "kraft.version":
        for broker in image.brokers.values():
            ranges = {each.name: each for each in broker.features}
            own = ranges.get(record.name)
            if ranges and (
                own is None or not own.min_supported_version <= record.feature_level <= own.max_supported_version
            ):
                yield f"a level of a feature that broker {broker.broker_id} does not support"
    image.features[record.name] = record.feature_level


def _producer_ids(image: Image, record: md.ProducerIdsRecord) -> Iterator[str]:
    if 0 < record.next_producer_id <= image.next_producer_id:  # ProducerIdControlManager.replay fails
        yield "producer ids that were already allocated"
    if not image.is_snapshot and image.brokers and record.broker_id not in image.brokers:
        yield "producer ids for a broker that is not registered"
    image.next_producer_id = record.next_producer_id


def _credential(image: Image, record: security.UserScramCredentialRecord) -> Iterator[str]:
    size = _KEY_SIZES.get(record.mechanism)
    if size is None or record.iterations not in _ITERATIONS:
        yield "an unknown mechanism or invalid number of iterations"
    elif len(record.stored_key) != size or len(record.server_key) != size:
        yield "keys of another mechanism"
    image.credentials.add((record.name, record.mechanism))


def _remove_credential(image: Image, record: security.RemoveUserScramCredentialRecord) -> Iterator[str]:
    if (record.name, record.mechanism) not in image.credentials:
        yield "the removal of an unknown credential"
    image.credentials.discard((record.name, record.mechanism))


def _acl(image: Image, record: security.AccessControlEntryRecord) -> Iterator[str]:
    if record.id in image.acls:
        yield "the id of an existing ACL"
    if any(getattr(record, name) not in allowed for name, allowed in _ACL_RANGES.items()):
        yield "an ACL with an unknown resource type, pattern type, operation or permission"
    if not _PRINCIPAL.fullmatch(record.principal):
        yield "an ACL of a principal without a type"
    image.acls[record.id] = (record.resource_name, record.principal, record.operation, record.permission_type)


def _remove_acl(image: Image, record: security.RemoveAccessControlEntryRecord) -> Iterator[str]:
    if image.acls.pop(record.id, None) is None:
        yield "the removal of an unknown ACL"


def _token(image: Image, record: security.DelegationTokenRecord) -> Iterator[str]:
    if not record.issue_timestamp_ms <= record.expiration_timestamp_ms <= record.max_timestamp_ms:
        yield "a token that expires before it is issued, or after its maximum time"
    image.tokens.add(record.token_id)


def _remove_token(image: Image, record: security.RemoveDelegationTokenRecord) -> Iterator[str]:
    if record.token_id not in image.tokens:
        yield "the removal of an unknown token"
    image.tokens.discard(record.token_id)


def _quota(image: Image, record: security.ClientQuotaRecord) -> Iterator[str]:
    names = tuple(sorted((each.entity_type, each.entity_name or "") for each in record.entity))
    if not names or {kind for kind, _ in names} - _ENTITIES:
        yield "a quota of an invalid entity"
    if record.key not in (_ADDRESS_QUOTAS if "ip" in {kind for kind, _ in names} else _CLIENT_QUOTAS):
        yield f"a quota of an unknown kind, {record.key}"
    if record.remove:
        image.quotas.pop((names, record.key), None)
        return
    if not record.value > 0:
        yield "a quota that is not positive"
    image.quotas[names, record.key] = record.value


def _clear_elr(image: Image, record: md.ClearElrRecord) -> Iterator[str]:
    if record.topic_name and record.topic_name not in image.topics.values():
        yield "eligible replicas of an unknown topic"
    for (topic_id, _), place in image.places.items():
        if record.topic_name in {"", image.topics.get(topic_id)}:
            place.others["eligible_leader_replicas"] = ()


_APPLY: Final[dict[str, Any]] = {
    "TopicRecord": _topic, "RemoveTopicRecord": _remove_topic, "PartitionRecord": _partition,
    "PartitionChangeRecord": _change, "ConfigRecord": _setting, "RegisterBrokerRecord": _register,
    "RegisterControllerRecord": _register_controller,
    "UnregisterBrokerRecord": _unregister, "BrokerRegistrationChangeRecord": _registration_change,
    "FenceBrokerRecord": _fence, "UnfenceBrokerRecord": _fence, "FeatureLevelRecord": _feature,
    "ProducerIdsRecord": _producer_ids, "UserScramCredentialRecord": _credential,
    "RemoveUserScramCredentialRecord": _remove_credential, "AccessControlEntryRecord": _acl,
    "RemoveAccessControlEntryRecord": _remove_acl, "DelegationTokenRecord": _token,
    "RemoveDelegationTokenRecord": _remove_token, "ClientQuotaRecord": _quota, "ClearElrRecord": _clear_elr,
}  # fmt: skip
