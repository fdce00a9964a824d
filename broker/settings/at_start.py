"""Rules between the settings with which a broker starts (KafkaConfig.validateValues, groups 0.7, core C.3).

They include those that apply to alterations too (`crosschecks`). Rules about listeners are in `broker.options`, which
knows the listeners that the command line opens.
"""

import re
from collections.abc import Iterator, Mapping

from broker.settings import plugins
from broker.settings.broker_settings import BrokerSettings
from broker.settings.crosschecks import Values, is_integer, number_of, pairs, problem_beside_listeners
from broker.settings.dynamic import local_retention_problems
from broker.settings.names import SYNONYMS_OF_A_BROKER
from broker.settings.values import elements_of, java_class, shown
from control_api.plugins import CONSUMER_ASSIGNORS, is_reference, references

_ASSIGNORS = {
    "group.consumer.assignors": ("uniform", "range"),
    "group.share.assignors": ("simple",),
    "group.streams.assignors": ("sticky",),
}
_TAGS = "group.streams.rack.aware.assignment.tags"
_CODECS = ("offsets.topic.compression.codec", "share.coordinator.state.topic.compression.codec")
_PROTOCOLS = "group.coordinator.rebalance.protocols"
_OVERRIDES = "max.connections.per.ip.overrides"
_HOST = re.compile(r"[0-9a-zA-Z\-%._:]*")
_NAME = re.compile(r"[a-z]+(?:\.[a-z]+)+")


def start_problem(settings: BrokerSettings) -> str | None:
    """Return the first rule that a broker's static settings violate, in one sentence with their values, or None."""
    values = settings.preview({}, {})
    problem = next(_own_problems(values, settings), None) or problem_beside_listeners(values)
    return (
        None if problem is None else with_values(problem.removeprefix("requirement failed: "), values, settings.static)
    )


def with_values(problem: str, values: Values, static: Mapping[str, str]) -> str:
    """Append the values of the settings that a problem names, unless it shows them."""
    parts = []
    for name in dict.fromkeys(_NAME.findall(problem)):
        source = next(
            (synonym for synonym in SYNONYMS_OF_A_BROKER.get(name, (name,)) if values.get(synonym) is not None), None
        )
        if source is None or f"{name}=" in problem or f"configuration {name}" in problem:
            continue
        origin = "" if source in static else " by default"
        parts.append(f"{source} is {shown(values[source]) or 'empty'}{origin}")
    return f"{problem.rstrip('.')}; {', '.join(parts)}" if parts else problem


def _own_problems(values: Values, settings: BrokerSettings) -> Iterator[str]:
    """Yield violations of rules that alterations do not check, or that need another message than Kafka's."""
    for name in _CODECS:
        if not 0 <= number_of(values, name) <= 4:  # CompressionType.forId: none to zstd
            yield f"{name}={values[name]} must be the id of a codec, 0 to 4"
    threads = number_of(values, "log.cleaner.threads")
    if threads == 0:
        yield f"log.cleaner.threads={threads} must be at least 1"
    protocols = values[_PROTOCOLS]
    if isinstance(protocols, tuple) and "classic" not in protocols:
        yield f"{_PROTOCOLS} must contain classic"
    yield from _address_problems(str(values[_OVERRIDES] or ""))
    yield from _cordoned_problems(values)
    yield from _idle_problems(values)
    yield from _assignor_problems(values)
    yield from _plugin_problems(values)
    tags = elements_of(settings.static.get(_TAGS, ""))
    if len(set(tags)) < len(tags):
        yield f"{_TAGS} must not contain duplicate tag keys"
    yield from _topic_problems(values, settings)


def _address_problems(overrides: str) -> Iterator[str]:
    for part in pairs(overrides):
        host, colon, limit = part.rpartition(":")
        if not colon or not is_integer(limit.strip()):
            yield f"{_OVERRIDES}={overrides} needs HOST:NUMBER, not {part!r}"
        elif _HOST.fullmatch(host.strip()) is None:
            yield f"{_OVERRIDES}={overrides} contains the invalid address {host.strip()!r}"


def _cordoned_problems(values: Values) -> Iterator[str]:
    cordoned = values["cordoned.log.dirs"]
    if isinstance(cordoned, tuple) and "*" in cordoned and len(cordoned) > 1:
        yield "When cordoned.log.dirs is set to *, it must not contain other values"


def _idle_problems(values: Values) -> Iterator[str]:
    idle_ms, delay_ms = (
        number_of(values, name) for name in ("connections.max.idle.ms", "connection.failed.authentication.delay.ms")
    )
    if 0 <= idle_ms <= delay_ms:
        yield (
            "connection.failed.authentication.delay.ms should always be less than connections.max.idle.ms to prevent "
            "failed authentication responses from timing out"
        )


def _assignor_problems(values: Values) -> Iterator[str]:
    """Yield assignors that are neither Kafka's nor can be the name of a class."""
    for name, builtin in _ASSIGNORS.items():
        listed = values[name]
        for assignor in listed if isinstance(listed, tuple) else ():
            if assignor not in builtin and not java_class(assignor) and not _is_python(name, assignor):
                reason = f"it is neither {' nor '.join(builtin)} nor a class"
                yield f"Invalid value {assignor} for configuration {name}: {reason}"
    share = values["group.share.assignors"]
    if isinstance(share, tuple) and len(share) > 1:
        yield "group.share.assignors must contain exactly one assignor"


def _is_python(name: str, assignor: str) -> bool:
    return name == CONSUMER_ASSIGNORS and is_reference(assignor)


def _plugin_problems(values: Values) -> Iterator[str]:
    """Yield references to Python callables that cannot be loaded."""
    for name, reference in references(values):
        try:
            plugins.load(reference)
        except plugins.PluginError as error:
            yield f"{name}={error}"


def _topic_problems(values: Values, settings: BrokerSettings) -> Iterator[str]:
    """Yield problems of the values that topics inherit (LogConfig.validateBrokerLogConfigValues)."""
    for row in settings.tables.topic.values():
        value = settings.topic_defaults[row.name]
        source = next((synonym.name for synonym in row.synonyms if values[synonym.name] is not None), None)
        if row.check is not None and source is not None and (problem := row.check(source, value)) is not None:
            yield problem
    least, most = "log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"
    if number_of(values, least) > number_of(values, most):
        yield f"{least} must be less than or equal to {most}"
    if values["remote.log.storage.system.enable"]:
        for unit in ("ms", "bytes"):
            yield from local_retention_problems(values, unit)
