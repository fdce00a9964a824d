"""Settings of one group: what it effectively has, and which it may be given (groups 0.7)."""

from collections.abc import Mapping

from broker.settings.layers import BrokerSettings
from broker.settings.model import Value
from broker.settings.tables import GROUP
from broker.settings.values import parse
from protocol.errors import ErrorCode, KafkaError

# Group setting -> the broker settings that bound it, in the order in which Kafka looks at them.
_BOUNDS: dict[str, tuple[str | None, str]] = {}
for _kind in ("consumer", "share", "streams"):
    _names = ["heartbeat.interval.ms", "session.timeout.ms"]
    if _kind == "share":
        _names += ["record.lock.duration.ms", "delivery.count.limit", "partition.max.record.locks"]
    if _kind == "streams":
        _BOUNDS["streams.num.standby.replicas"] = (None, "group.streams.max.standby.replicas")
    for _name in [*_names, "assignment.interval.ms"]:
        _BOUNDS[f"{_kind}.{_name}"] = (f"group.{_kind}.min.{_name}", f"group.{_kind}.max.{_name}")


def effective(stored: Mapping[str, str], settings: BrokerSettings) -> dict[str, Value]:
    """Every group setting's value as the coordinator uses it: held within the broker's bounds of today."""
    values = stated(stored, settings)
    for name, (least, most) in _BOUNDS.items():
        value = values[name]
        if name in stored and isinstance(value, int):
            value = min(value, settings.int(most))
            values[name] = value if least is None else max(value, settings.int(least))
    return values


def stated(stored: Mapping[str, str], settings: BrokerSettings) -> dict[str, Value]:
    """Every group setting's value as it is described: the group's own, else the broker's."""
    values: dict[str, Value] = {}
    for row in GROUP.values():
        text = stored.get(row.name)
        if text is None:
            values[row.name] = settings.value(row.synonyms[0].name) if row.synonyms else row.default
            continue
        values[row.name] = parse(row, text)
    return values


def validate(proposed: Mapping[str, str], settings: BrokerSettings) -> None:
    """Check all of a group's own settings together (GroupConfig.validate).

    Raises:
        KafkaError: INVALID_CONFIG with Kafka's message.
    """
    for name in proposed:
        if name not in GROUP:
            raise _refused(f"Unknown group config name: {name}")
    given = {name: parse(GROUP[name], text) for name, text in proposed.items()}
    for name, (least, most) in _BOUNDS.items():
        value = given.get(name)
        if not isinstance(value, int):
            continue
        if least is not None and value < settings.int(least):
            raise _refused(f"{name} must be greater than or equal to {least}")
        if value > settings.int(most):
            raise _refused(f"{name} must be less than or equal to {most}")
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        session_ms = given.get(session, settings.int(f"group.{session}"))
        heartbeat_ms = given.get(heartbeat, settings.int(f"group.{heartbeat}"))
        assert isinstance(session_ms, int)  # an INT without null
        assert isinstance(heartbeat_ms, int)  # an INT without null
        if session_ms <= heartbeat_ms:
            raise _refused(f"{session} must be greater than {heartbeat}")


def _refused(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, message)
