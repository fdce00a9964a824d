"""Topic configs: effective values and validation (core C.3, C.6)."""

from collections.abc import Mapping

from broker.settings.broker_settings import BrokerSettings
from broker.settings.definition_order import as_defined, as_hashed
from broker.settings.model import MAX_LONG, Value
from broker.settings.tables import TOPIC
from broker.settings.values import invalid, parse
from protocol.errors import ErrorCode, KafkaError

_SCHEMA_DEFAULTS: dict[str, Value] = {row.name: row.default for row in TOPIC.values()}

_DIFFERENCE = "message.timestamp.difference.max.ms"
_BOUNDS_OF_TIMES = ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms")
_DISABLED = (
    "It is invalid to disable remote storage without deleting remote data. "
    "If you want to keep the remote data and turn to read only, "
    "please set `remote.storage.enable=true,remote.log.copy.disable=true`. "
    "If you want to disable remote storage and delete all remote data, "
    "please set `remote.storage.enable=false,remote.log.delete.on.disable=true`."
)


def effective(overrides: Mapping[str, str], settings: BrokerSettings) -> dict[str, Value]:
    """Return every topic config's value: the topic's own, else the broker's, else the default.

    Keys are Kafka's topic names; LIST values are tuples, `internal.segment.bytes` is None unless set. A stored text
    that no longer parses counts as not set. Up to 3.9 one config bounds timestamps in both directions, unless those of
    KIP-937 are set (LogConfig.messageTimestampBeforeMaxMs).
    """
    values = stated(overrides, settings)
    if _DIFFERENCE in settings.tables.topic:
        for name in _BOUNDS_OF_TIMES:
            if values[name] == MAX_LONG:
                values[name] = values[_DIFFERENCE]
    return values


def stated(overrides: Mapping[str, str], settings: BrokerSettings) -> dict[str, Value]:
    """Return every topic config's value as DescribeConfigs reports it, each by itself."""
    values = dict(settings.topic_defaults)
    for name, text in overrides.items():
        row = settings.topic_row(name)
        if row is not None:
            try:
                values[name] = parse(row, text)
            except KafkaError:
                continue
    return values


def validate(
    proposed: Mapping[str, str | None], settings: BrokerSettings, existing: Mapping[str, str] | None = None
) -> None:
    """Validate all configs of a topic together, for CreateTopics and for changes (LogConfig.validate).

    Raises:
        KafkaError: INVALID_CONFIG with Kafka's message.
    """
    nulls = [name for name, text in proposed.items() if text is None]
    if nulls:
        raise _refused(f"Null value not supported for topic configs: {','.join(nulls)}")
    rows = {}
    for name in as_hashed(proposed):
        row = settings.topic_row(name)
        if row is None:
            raise _refused(f"Unknown topic config name: {name}")
        rows[name] = row
    ordered = as_defined("topic", proposed) if len(proposed) > 1 else proposed
    overrides = {name: parse(rows[name], text) for name in ordered if (text := proposed[name]) is not None}
    tiered = settings.boolean("remote.log.storage.system.enable")
    # Quirk: the broker's own defaults are validated too only if it has tiered storage.
    values = {**(settings.topic_defaults if tiered else _SCHEMA_DEFAULTS), **overrides}
    least, most = _number(values, "min.compaction.lag.ms"), _number(values, "max.compaction.lag.ms")
    if least > most:
        raise _refused(
            f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
        )
    _check_remote(values, tiered=tiered, was_remote=(existing or {}).get("remote.storage.enable", "") == "true")


def _refused(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, message)


def _number(values: Mapping[str, Value], name: str) -> int:
    value = values[name]
    assert isinstance(value, int)  # only called for numbers that are not null
    return value


def _check_remote(values: Mapping[str, Value], *, tiered: bool, was_remote: bool) -> None:
    """Check the rules of tiered storage, if the topic enables it (core C.3, LogConfig.validateTopicLogConfigValues)."""
    if not values["remote.storage.enable"]:
        if was_remote and tiered and not values["remote.log.delete.on.disable"]:
            raise _refused(_DISABLED)
        return
    if not tiered:
        raise _refused(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
    policy = values["cleanup.policy"]
    if isinstance(policy, tuple) and "compact" in policy:
        raise _refused(
            "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy being an empty list."
        )
    for unit in ("ms", "bytes"):
        name, limit = f"local.retention.{unit}", f"retention.{unit}"
        local, total = _number(values, name), _number(values, limit)
        complaint = local_retention_problem(name, local, limit, total)
        if complaint is not None:
            raise _refused(complaint)
        if values["remote.log.copy.disable"] and local not in {-2, total}:
            raise _refused(
                f"When `remote.log.copy.disable` is set to true, the `{name}` and `{limit}` must be set to the "
                "identical value because there will be no more logs copied to the remote storage."
            )


def local_retention_problem(name: str, local: int, limit: str, total: int) -> str | None:
    """Return the problem with local retention beyond total retention; -1 is unlimited."""
    if total == -1:
        return None
    if local == -1:
        return invalid(name, str(local), f"Value must not be -1 as {limit} value is set as {total}.")
    if local > total:
        return invalid(name, str(local), f"Value must not be more than {limit} property value: {total}")
    return None
