"""Configs of one group: effective values and validation (groups 0.7)."""

from collections.abc import Iterable, Mapping

from broker.settings.broker_settings import BrokerSettings
from broker.settings.definition_order import as_defined
from broker.settings.model import Value
from broker.settings.tables import GROUP
from broker.settings.values import elements_of, parse
from protocol.errors import ErrorCode, KafkaError
from protocol.java import string_hash, table_order

# Group config -> the broker settings that bound it, in Kafka's order of checks.
_TAGS = "streams.rack.aware.assignment.tags"
_BOUNDS: dict[str, tuple[str | None, str | None]] = {}
for _kind in ("consumer", "share", "streams"):
    _names = ["heartbeat.interval.ms", "session.timeout.ms"]
    if _kind == "share":
        _names += ["record.lock.duration.ms", "delivery.count.limit", "partition.max.record.locks"]
    for _name in _names:
        _BOUNDS[f"{_kind}.{_name}"] = (f"group.{_kind}.min.{_name}", f"group.{_kind}.max.{_name}")
    if _kind == "streams":
        _BOUNDS["streams.num.standby.replicas"] = (None, "group.streams.max.standby.replicas")
    _name = "assignment.interval.ms"
    _BOUNDS[f"{_kind}.{_name}"] = (f"group.{_kind}.min.{_name}", f"group.{_kind}.max.{_name}")
_BOUNDS["streams.task.offset.interval.ms"] = ("group.streams.min.task.offset.interval.ms", None)
_BOUNDS["streams.num.warmup.replicas"] = (None, "group.streams.max.warmup.replicas")


def effective(
    stored: Mapping[str, str], settings: BrokerSettings, names: Iterable[str] = tuple(GROUP)
) -> dict[str, Value]:
    """Return the values of group configs as the coordinator uses them: limited to the broker's current bounds."""
    values = stated(stored, settings, names)
    for name, value in values.items():
        if name in stored and name in _BOUNDS and isinstance(value, int):
            least, most = _BOUNDS[name]
            lowered = value if most is None else min(value, settings.int(most))
            values[name] = lowered if least is None else max(lowered, settings.int(least))
    return values


def stated(
    stored: Mapping[str, str], settings: BrokerSettings, names: Iterable[str] = tuple(GROUP)
) -> dict[str, Value]:
    """Return the values of group configs as DescribeConfigs reports them: the group's own, else the broker's."""
    values: dict[str, Value] = {}
    for row in map(GROUP.__getitem__, names):
        text = stored.get(row.name)
        if text is None:
            values[row.name] = settings.value(row.synonyms[0].name) if row.synonyms else row.default
            continue
        values[row.name] = parse(row, text)
    return values


def validate(proposed: Mapping[str, str], settings: BrokerSettings) -> None:
    """Validate all configs of a group together (GroupConfig.validate).

    Raises:
        KafkaError: INVALID_CONFIG with Kafka's message.
    """
    # In 4.3 the group's inherited values are in the same HashMap, which therefore has twice the capacity.
    capacity = 16 if settings.bounds_as_ranges else 32
    for name in table_order(list(proposed), string_hash, capacity):
        if name not in settings.tables.group:
            raise _refused(f"Unknown group config name: {name}")
    _check_tags(proposed.get(_TAGS))
    values = {name: parse(GROUP[name], proposed[name]) for name in as_defined("group", proposed)}
    for name, (least, most) in _BOUNDS.items():
        value = values.get(name)
        if not isinstance(value, int):
            continue
        if problem := _out_of_bounds(name, value, least, most, settings):
            raise _refused(problem)
    # The assignor, the sessions, the queue: the order of GroupConfig.validateValues (4.4).
    _check_assignor(values.get("streams.assignor.name"), settings)
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        session_ms = values.get(session, settings.int(f"group.{session}"))
        heartbeat_ms = values.get(heartbeat, settings.int(f"group.{heartbeat}"))
        assert isinstance(session_ms, int)  # an INT without null
        assert isinstance(heartbeat_ms, int)  # an INT without null
        if session_ms <= heartbeat_ms:
            raise _refused(f"{session} must be greater than {heartbeat}")
    topic = values.get("errors.deadletterqueue.topic.name")
    if isinstance(topic, str) and topic.startswith("__"):
        raise _refused("errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'")


def _out_of_bounds(name: str, value: int, least: str | None, most: str | None, settings: BrokerSettings) -> str | None:
    """Return the problem; since 4.4 the message has the values of the bounds instead of their names."""
    low, high = (None if bound is None else settings.int(bound) for bound in (least, most))
    too_small, too_large = low is not None and value < low, high is not None and value > high
    if not (too_small or too_large):
        return None
    if settings.bounds_as_ranges and low is not None and high is not None:
        return f"{name} must be in the range {low} to {high} inclusive."
    if too_small:
        return f"{name} must be greater than or equal to {low if settings.bounds_as_ranges else least}"
    return f"{name} must be less than or equal to {high if settings.bounds_as_ranges else most}"


def _check_assignor(assignor: Value, settings: BrokerSettings) -> None:
    """Raise INVALID_CONFIG if the broker does not have the assignor."""
    assignors = settings.list("group.streams.assignors")
    if assignor is not None and assignor not in assignors:
        raise _refused(
            f"streams.assignor.name '{assignor}' is not a registered task assignor. "
            f"Registered assignors are: [{', '.join(assignors)}]."
        )


def _check_tags(text: str | None) -> None:
    """Refuse invalid tags, which Kafka checks before any value is parsed."""
    tags = elements_of(text or "")
    if len(set(tags)) < len(tags):
        raise _refused(f"{_TAGS} must not contain duplicate tag keys.")


def _refused(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, message)
