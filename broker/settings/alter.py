"""AlterConfigs and IncrementalAlterConfigs: validate each resource and decide what to store (core C.4 A1 to A16).

Decisions depend only on the stored configs. The metadata machine stores them; log levels belong to the broker.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from broker.settings import client_metrics, groups, plugins, topics
from broker.settings.broker_settings import BrokerSettings
from broker.settings.definition_order import as_hashed
from broker.settings.dynamic import validate_broker
from broker.settings.loggers import Loggers
from broker.settings.model import ConfigResourceType, ConfigType, Operation, Row
from broker.settings.names import PLUGIN_SETTINGS, as_broker_id
from broker.settings.tables import BROKER, TOPIC
from broker.settings.values import shown
from control_api.plugins import ALTER_CONFIG_POLICY, is_reference
from protocol.deferred import dataclass
from protocol.errors import ErrorCode, KafkaError
from protocol.java import split, utf16_length

_LONGEST_VALUE = 32767
"""In UTF-16 units for the check, in bytes for the record; only APPEND gets beyond either (core C.3)."""
_ELR_SETTING = "min.insync.replicas"
_ALTERABLE = frozenset(
    {ConfigResourceType.TOPIC, ConfigResourceType.BROKER, ConfigResourceType.CLIENT_METRICS, ConfigResourceType.GROUP}
)
# Quirk: lists of client metrics do not support APPEND (core C.4 A11).
_SPLITTABLE: Mapping[int, Mapping[str, Row]] = {
    ConfigResourceType.TOPIC: TOPIC,
    ConfigResourceType.BROKER: BROKER,
}
"""Resource type -> its settings that support APPEND and SUBTRACT, if they are lists; a group's do not."""

_NOT_IN_CONFIG_DEF = frozenset(
    {
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
)
"""Broker settings that Kafka defines apart from the others (``QuotaConfig``), and does not find for APPEND."""
_WITHOUT_DEFAULT = frozenset({"controller.listener.names", "process.roles"})
"""Broker lists whose default is ConfigDef.NO_DEFAULT_VALUE, which Kafka fails to read as a list."""


class Change(NamedTuple):
    """A change of one key. AlterConfigs only sets."""

    name: str
    value: str | None
    operation: int = Operation.SET


class Alteration(NamedTuple):
    """One resource of a request."""

    type: int
    name: str
    changes: Sequence[Change]


class Decision(NamedTuple):
    """The result for one resource. `configs` is the whole new mapping to store; None: nothing is stored."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    configs: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class World:
    """The state on which decisions depend."""

    settings: BrokerSettings  # of the broker that received the request
    stored: Callable[[int, str], Mapping[str, str]]  # by resource type and name; empty if nothing is stored
    topic_exists: Callable[[str], bool]
    check_topic_name: Callable[[str], None]  # raises KafkaError INVALID_TOPIC_EXCEPTION
    may_alter: Callable[[int, str], bool] = field(default=lambda _type, _name: True)
    broker_exists: Callable[[int], bool] = field(default=lambda _id: True)
    at_controller: bool = False  # whether the controller itself received the request
    authorizes_first: bool = True  # whether authorization is checked before validation of broker configs (4.4)
    eligible_leader_replicas: bool = True  # whether its level is 1: min.insync.replicas is cluster-wide (KIP-966)


def decide(
    alterations: Sequence[Alteration], world: World, *, incremental: bool, validate_only: bool = False
) -> list[Decision]:
    """Decide on each resource, in order; an invalid one does not affect the others.

    Except for an unknown operation, and for a value that no record can hold: Kafka's controller fails on them
    (ConfigurationControlManager, ApiMessageAndVersion), and with it every resource that was forwarded to it (core C.3,
    core C.4). That it resigns then is not copied.
    """
    times = Counter((one.type, one.name) for one in alterations)
    at_broker = [_decide_at_broker(one, world, incremental, times[one.type, one.name] > 1) for one in alterations]
    forwarded = [one for one, decision in zip(alterations, at_broker, strict=True) if decision is None]
    failed = [decision or Decision(ErrorCode.UNKNOWN_SERVER_ERROR) for decision in at_broker]
    if incremental and any(_fails_controller(one, world) for one in forwarded):
        return failed
    decided = [
        decision or _decide_at_controller(one, world, incremental)
        for one, decision in zip(alterations, at_broker, strict=True)
    ]
    return failed if not validate_only and any(_is_unwritable(each.configs) for each in decided) else decided


def _decide_at_broker(one: Alteration, world: World, incremental: bool, repeated: bool) -> Decision | None:
    """Make the decisions of the broker that received the request (ConfigAdminManager.preprocess); None: forwarded."""
    try:
        if repeated:
            raise _request("Each resource must appear at most once.")
        _check_keys(one)
        if one.type == ConfigResourceType.BROKER_LOGGER and incremental:
            return _decide_loggers(one, world)
        if one.type == ConfigResourceType.BROKER:
            if world.at_controller:
                _check_broker_name(one, world)
            elif world.authorizes_first and not world.may_alter(one.type, one.name):
                raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            _check_broker(one, world, incremental)
        elif one.type not in _ALTERABLE:
            raise _unknown_type(one, world)
    except KafkaError as error:
        return Decision(error.code, error.message)
    return None


def _fails_controller(one: Alteration, world: World) -> bool:
    """Whether the controller reaches an unknown operation, on which it fails."""
    if not world.may_alter(one.type, one.name):
        return False
    try:
        _applied(one, world.stored(one.type, one.name))
    except KafkaError:
        return False
    except ValueError:
        return True
    return False


def _decide_at_controller(one: Alteration, world: World, incremental: bool) -> Decision:
    try:
        # core C.4 A10 to A15; whether a topic exists comes within `_validate`, after its values (core C.4 A14).
        _authorize(one, world)
        stored = world.stored(one.type, one.name)
        new = _applied(one, stored) if incremental else _replaced(one)
        _check_elr(one, world, stored, new, incremental)
        _check_sizes(new)
        _validate(one, world, stored, new)
        _check_policy(one, world, new, incremental)
    except KafkaError as error:
        return Decision(error.code, error.message)
    return Decision(configs=new)


def _check_policy(one: Alteration, world: World, new: Mapping[str, str], incremental: bool) -> None:
    """Ask ``alter.config.policy.class.name`` about the keys of the request, after all other checks."""
    reference = world.settings.optional_string(ALTER_CONFIG_POLICY)
    if is_reference(reference):
        altered = {change.name: new.get(change.name) for change in one.changes} if incremental else new
        request = plugins.AlteredConfigsRequest(ConfigResourceType(one.type).name, one.name, altered)
        plugins.enforce(reference, request)


def _request(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _config(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, message)


def _check_keys(one: Alteration) -> None:
    """Refuse duplicate keys and null values (core C.4 A2, A3)."""
    if len({change.name for change in one.changes}) < len(one.changes):
        raise _request("Error due to duplicate config keys")
    nulls = [c.name for c in one.changes if c.value is None and c.operation != Operation.DELETE]
    if nulls:
        raise _request(f"Null value not supported for : {', '.join(nulls)}")


def _unknown_type(one: Alteration, world: World) -> KafkaError:
    """Return the broker's or the controller's error for a resource type (ControllerApis.authorizeAlterResource)."""
    if not world.at_controller:
        return _request(f"Unknown resource type {one.type}")
    if one.type == ConfigResourceType.BROKER_LOGGER:
        return _request("Unexpected resource type BROKER_LOGGER.")
    return KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unknown resource type {one.type}.")


def _check_broker_name(one: Alteration, world: World) -> None:
    """Refuse an invalid broker id as the controller does (ControllerConfigurationValidator, QuorumController)."""
    if not one.name:
        return
    node_id = as_broker_id(one.name)
    if node_id is None:
        raise _request("Unable to parse broker name as a base 10 number.")
    if node_id < 0:
        raise _request("Invalid negative broker ID.")
    if not world.broker_exists(node_id):
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {node_id} found.")


def _own_id(one: Alteration, world: World, otherwise: str) -> None:
    """Refuse a resource name that is not this broker's id (core C.4 A5, C.5)."""
    node_id = as_broker_id(one.name)
    if node_id is None:
        raise _request(f"Node id must be an integer, but it is: {one.name}")
    if node_id != world.settings.node_id and not (world.at_controller and one.type == ConfigResourceType.BROKER):
        raise _request(f"{otherwise} {world.settings.node_id}, but received {one.name}")


def _check_broker(one: Alteration, world: World, incremental: bool) -> None:
    """Perform the broker's own checks, before the controller's authorization (core C.4 A5 to A8)."""
    if one.name:
        _own_id(one, world, "Unexpected broker id, expected")
    new = _replaced(one)
    if incremental:
        _check_operations(one.changes)
        for change in one.changes:
            if change.operation in {Operation.APPEND, Operation.SUBTRACT}:
                row = world.settings.tables.broker.get(change.name)
                if row is None or change.name in _NOT_IN_CONFIG_DEF | PLUGIN_SETTINGS:
                    raise _config(f"Unknown config name: {change.name}")
                if row.type is not ConfigType.LIST:
                    operation = Operation(change.operation).name.lower()
                    raise _config(f"Config value {operation} is not allowed for config key: {change.name}")
                if change.name in _WITHOUT_DEFAULT and not world.stored(one.type, one.name).get(change.name):
                    raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        # Quirk: for this check, a new element that is given twice is appended twice.
        new = _applied(one, world.stored(one.type, one.name), distinct=not world.settings.refuses_duplicates)
    validate_broker(new, world.settings, per_broker=bool(one.name))


def _check_operations(changes: Iterable[Change]) -> None:
    """Refuse unknown operations on a broker; :func:`_fails_controller` is for other resources (core C.4 A6)."""
    for change in changes:
        if change.operation not in set(Operation):
            raise _request(f"Unknown operations type {change.operation}")


def _authorize(one: Alteration, world: World) -> None:
    """Check the authorization to alter resources of that type (core C.4 A10)."""
    if world.may_alter(one.type, one.name):
        return
    if one.type == ConfigResourceType.TOPIC:
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
    if one.type == ConfigResourceType.GROUP:
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED, "Group authorization failed.")
    raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")


def _decide_loggers(one: Alteration, world: World) -> Decision:
    """Check authorization first, without a message; one invalid key refuses the whole resource (core C.5)."""
    if not world.may_alter(one.type, one.name):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    _own_id(one, world, "Unexpected node id. Expected")
    for change in one.changes:
        Loggers.check(
            change.name, change.operation, change.value, names_unknown=world.settings.names_unknown_operations
        )
    return Decision()


def _replaced(one: Alteration) -> dict[str, str]:
    """Return the keys of an AlterConfigs request, which replace all stored ones."""
    return {change.name: change.value for change in one.changes if change.value is not None}


def _applied(one: Alteration, stored: Mapping[str, str], *, distinct: bool = True) -> dict[str, str]:
    """Return the stored keys with IncrementalAlterConfigs' changes, applied in HashMap order (core C.4 A11).

    ``distinct`` elements are appended once each.

    Raises:
        KafkaError: for the first change that cannot be applied.
        ValueError: the first such change has an unknown operation.
    """
    new, changes = dict(stored), {change.name: change for change in one.changes}
    for name in as_hashed(changes):
        _, value, code = changes[name]
        operation = Operation(code)
        if operation == Operation.DELETE:
            new.pop(name, None)
        elif operation == Operation.SET:
            new[name] = value or ""
        else:
            row = _SPLITTABLE.get(one.type, {}).get(name)
            if row is None or row.type is not ConfigType.LIST:
                raise _config(f"Can't {operation.name} to key {name} because its type is not LIST.")
            # Quirk: APPEND to an unset key starts from the table's default, not the broker's value (core C.4.2).
            start = stored.get(name, shown(row.default) or "")
            new[name] = _edited(start, value or "", subtract=operation == Operation.SUBTRACT, distinct=distinct)
    return new


def _edited(text: str, elements: str, *, subtract: bool, distinct: bool) -> str:
    """Remove elements from a list's text, or append them; it is split at commas only, so blanks belong to elements."""
    parts = [part for part in text.split(",") if part]
    requested = split(elements, ",")
    if not subtract:
        present = set(parts)
        return ",".join(
            [
                *parts,
                *(
                    element
                    for element in (dict.fromkeys(requested) if distinct else requested)
                    if element not in present
                ),
            ]
        )
    unwanted, kept = Counter(requested), []
    for part in parts:  # each given element removes its first remaining occurrence
        if unwanted[part]:
            unwanted[part] -= 1
        else:
            kept.append(part)
    return ",".join(kept)


def _check_elr(
    one: Alteration, world: World, stored: Mapping[str, str], new: Mapping[str, str], incremental: bool
) -> None:
    """Refuse, with ELR, min.insync.replicas of one broker, and its removal for all (core C.3)."""
    if one.type != ConfigResourceType.BROKER or not world.eligible_leader_replicas:
        return
    touched = [change for change in one.changes if change.name == _ELR_SETTING]
    if one.name:
        if touched:
            raise _config(f"Broker-level {_ELR_SETTING} cannot be altered while ELR is enabled.")
    elif _ELR_SETTING not in new and (touched if incremental else _ELR_SETTING in stored):
        raise _config(f"Cluster-level {_ELR_SETTING} cannot be removed while ELR is enabled.")


def _check_sizes(new: Mapping[str, str]) -> None:
    # Quirk: the message has bytes, but String.length is compared (core C.3).
    if any(utf16_length(text) > _LONGEST_VALUE for text in new.values()):
        raise _config(
            f"The configuration value cannot be added because it exceeds the maximum value size of {_LONGEST_VALUE} "
            "bytes."
        )


def _is_unwritable(new: Mapping[str, str] | None) -> bool:
    """Whether a value passes that check, but is too long for the string of a metadata record."""
    return new is not None and any(len(text.encode()) > _LONGEST_VALUE for text in new.values())


def _validate(one: Alteration, world: World, stored: Mapping[str, str], new: Mapping[str, str]) -> None:
    """Validate the resource's name, its new configs, and that the topic exists (core C.4 A12 to A14)."""
    if one.type == ConfigResourceType.TOPIC:
        if not one.name:
            raise _request("Default topic resources are not allowed.")
        world.check_topic_name(one.name)
        topics.validate(new, world.settings, stored)
        if not world.topic_exists(one.name):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{one.name}' does not exist.")
    elif one.type == ConfigResourceType.GROUP:
        if not one.name:
            raise _request("Default group resources are not allowed.")
        groups.validate(new, world.settings)
    elif one.type == ConfigResourceType.CLIENT_METRICS:
        if not one.name:
            raise _request("Subscription name can't be empty")
        client_metrics.validate(new)
