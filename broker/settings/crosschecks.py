"""Rules between broker settings (KafkaConfig.validateValues, groups 0.7).

They apply to the settings that would result from a dynamic change, and to those of the start (`at_start`).
"""

import re
from collections.abc import Callable, Iterator, Mapping

from broker.settings.model import Value
from broker.settings.tables import TOPIC
from protocol.java import parse_integer, split

Values = Mapping[str, Value]

_ENDPOINT = r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)"
_BOUNDED_INTERVALS = ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")
_BOUNDED_LIMITS = ("delivery.count.limit", "record.lock.duration.ms", "partition.max.record.locks")


def broker_problem(values: Values) -> str | None:
    """Return Kafka's message for the first rule that a broker's settings violate, or None."""
    return next((problem for rule in _RULES for problem in rule(values)), None)


def problem_beside_listeners(values: Values) -> str | None:
    """Return Kafka's message for the first rule that a broker's settings violate, those of listeners aside, or None."""
    return next((problem for rule in _RULES if rule is not _listeners for problem in rule(values)), None)


def number_of(values: Values, name: str) -> int:
    """Return a number that is not null."""
    value = values[name]
    assert isinstance(value, int)  # only called for numbers that are not null
    return value


def log_default(values: Values, topic_setting: str) -> int:
    """Return the value that topics inherit, in the topic's unit: the first of its broker settings that is set."""
    defaults = (
        value * synonym.factor
        for synonym in TOPIC[topic_setting].synonyms
        if isinstance(value := values[synonym.name], int)
    )
    return next(defaults)


def _log_times(values: Values) -> Iterator[str]:
    if log_default(values, "segment.ms") < 1:
        yield "requirement failed: log.roll.ms must be greater than or equal to 1"
    if log_default(values, "segment.jitter.ms") < 0:
        yield "requirement failed: log.roll.jitter.ms must be greater than or equal to 0"
    if log_default(values, "retention.ms") == 0:
        yield "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1"


def _cleaner(values: Values) -> Iterator[str]:
    threads = number_of(values, "log.cleaner.threads")
    if threads == 0:
        yield "/ by zero"  # the message of Kafka's ArithmeticException
    elif number_of(values, "log.cleaner.dedupe.buffer.size") // threads <= 1024 * 1024:
        yield "requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."


def _replica_waits(values: Values) -> Iterator[str]:
    wait_ms = number_of(values, "replica.fetch.wait.max.ms")
    if wait_ms > number_of(values, "replica.socket.timeout.ms"):
        yield (
            "requirement failed: replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to "
            "prevent unnecessary socket timeouts"
        )
    if wait_ms > number_of(values, "replica.lag.time.max.ms"):
        yield (
            "requirement failed: replica.fetch.wait.max.ms should always be less than or equal to "
            "replica.lag.time.max.ms to prevent frequent changes in ISR"
        )


def _codecs(values: Values) -> Iterator[str]:
    for name in ("offsets.topic.compression.codec", "share.coordinator.state.topic.compression.codec"):
        if not 0 <= number_of(values, name) <= 4:  # CompressionType.forId: none to zstd
            yield f"Unknown compression type id: {values[name]}"


def _requests(values: Values) -> Iterator[str]:
    queued = number_of(values, "queued.max.request.bytes")
    if 0 < queued < number_of(values, "socket.request.max.bytes"):
        yield "requirement failed: queued.max.request.bytes must be larger or equal to socket.request.max.bytes"


def _connections(values: Values) -> Iterator[str]:
    """Yield the problems of the limits of connections per address."""
    name = "max.connections.per.ip.overrides"
    overrides = str(values[name] or "")
    for part in pairs(overrides):
        _, colon, limit = part.rpartition(":")
        if not colon:
            yield _no_colon(name, part)
        elif not is_integer(limit.strip()):
            yield f'For input string: "{limit.strip()}"'
    if values["max.connections.per.ip"] == 0 and not overrides:
        yield (
            "requirement failed: max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides "
            "property is set."
        )


def is_integer(text: str) -> bool:
    """Whether Java's Integer.parseInt reads the text."""
    try:
        parse_integer(text)
    except ValueError:
        return False
    return True


def _identity(values: Values) -> Iterator[str]:
    if values["broker.id"] not in {-1, values["node.id"]}:
        yield "You must set `node.id` to the same value as `broker.id`."


def _cordoned(values: Values) -> Iterator[str]:
    cordoned, dirs = values["cordoned.log.dirs"], values["log.dirs"] or values["log.dir"]
    assert isinstance(cordoned, tuple)  # a LIST without null
    assert isinstance(dirs, tuple)  # log.dir is never null
    missing = [entry for entry in cordoned if entry not in dirs]
    if missing and cordoned != ("*",):
        yield (
            "requirement failed: All entries in cordoned.log.dirs must be present in log.dirs or log.dir. "
            f"Missing entries : {', '.join(missing)}"
        )


def _protocol_map(values: Values) -> list[str]:
    return pairs(str(values["listener.security.protocol.map"]))


def pairs(text: str) -> list[str]:
    """Split a text at commas, as Kafka splits a map, dropping empty parts at the end (Csv.parseCsvMap)."""
    return split(",".join(part.strip() for part in text.split(",")), ",") if text.strip() else []


def _protocols(values: Values) -> Iterator[str]:
    name = "listener.security.protocol.map"
    parts = _protocol_map(values)
    yield from (_no_colon(name, part) for part in parts if ":" not in part)
    entries = (part.rpartition(":") for part in parts)
    for protocol in {listener.strip(): protocol.strip() for listener, _, protocol in entries}.values():
        if protocol.upper() not in {"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}:
            yield f"Invalid security protocol `{protocol}` defined in {name}"


def _no_colon(name: str, part: str) -> str:
    # The message of Java's StringIndexOutOfBoundsException for a string without a colon.
    return f"Error parsing configuration property '{name}': begin 0, end -1, length {len(part)}"


def _listeners(values: Values) -> Iterator[str]:
    listeners = values["listeners"]
    assert isinstance(listeners, tuple)  # a LIST without null
    head = f"Error creating broker listeners from '[{', '.join(listeners)}]'"
    protocols = {part.partition(":")[0].strip().upper() for part in _protocol_map(values)}
    names, ports = [], []
    for text in listeners:
        match = re.fullmatch(_ENDPOINT, text)
        if match is None:
            yield f"{head}: Unable to parse {text} to a broker endpoint"
            return
        names.append(match[1].upper())
        ports.append(match[3])
    for name in names:
        if name not in protocols and name != "CONTROLLER":
            yield f"{head}: No security protocol defined for listener {name}"
    if len(set(names)) < len(names):
        yield f"{head}: Each listener must have a different name, listeners: [{', '.join(listeners)}]"
    fixed = [port for port in ports if port != "0"]
    if len(set(fixed)) < len(fixed):
        yield f"{head}: Each listener must have a different port, listeners: [{', '.join(listeners)}]"


def _group_protocols(values: Values) -> Iterator[str]:
    protocols = values["group.coordinator.rebalance.protocols"]
    if isinstance(protocols, tuple) and "classic" not in protocols:
        yield "Disabling the 'classic' protocol is not supported."


def _group_intervals(values: Values) -> Iterator[str]:
    for kind in ("consumer", "share", "streams"):
        for name in _BOUNDED_INTERVALS:
            value, least, most = f"group.{kind}.{name}", f"group.{kind}.min.{name}", f"group.{kind}.max.{name}"
            if number_of(values, most) < number_of(values, least):
                yield f"{most} must be greater than or equal to {least}"
            if number_of(values, value) < number_of(values, least):
                yield f"{value} must be greater than or equal to {least}"
            if number_of(values, value) > number_of(values, most):
                yield f"{value} must be less than or equal to {most}"
        heartbeat, session = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
        if number_of(values, heartbeat) >= number_of(values, session):
            yield f"{heartbeat} must be less than {session}"


def _group_limits(values: Values) -> Iterator[str]:
    standby, most_standby = "group.streams.num.standby.replicas", "group.streams.max.standby.replicas"
    if number_of(values, standby) > number_of(values, most_standby):
        yield f"{standby} must be less than or equal to {most_standby}"
    interval, least_interval = "group.streams.task.offset.interval.ms", "group.streams.min.task.offset.interval.ms"
    if number_of(values, interval) < number_of(values, least_interval):
        yield f"{interval} must be greater than or equal to {least_interval}"
    warmup, most_warmup = "group.streams.num.warmup.replicas", "group.streams.max.warmup.replicas"
    if number_of(values, warmup) > number_of(values, most_warmup):
        yield f"{warmup} must be less than or equal to {most_warmup}"
    for name in _BOUNDED_LIMITS:
        value, least, most = f"group.share.{name}", f"group.share.min.{name}", f"group.share.max.{name}"
        if number_of(values, value) < number_of(values, least):
            yield f"{value} must be greater than or equal to {least}"
        if number_of(values, value) > number_of(values, most):
            yield f"{most} must be greater than or equal to {value}"
    if number_of(values, "group.share.max.share.sessions") < number_of(values, "group.share.max.size"):
        yield "group.share.max.share.sessions must be greater than or equal to group.share.max.size"


_RULES: tuple[Callable[[Values], Iterator[str]], ...] = (
    _identity,
    # Groups and endpoints are read when a KafkaConfig is made, the others are validated after that.
    _group_protocols,
    _group_intervals,
    _group_limits,
    _protocols,
    _listeners,
    _log_times,
    _cleaner,
    _replica_waits,
    _codecs,
    _requests,
    _cordoned,
    _connections,
)
