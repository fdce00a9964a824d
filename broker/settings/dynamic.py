"""Validation of a broker's dynamic configs (core C.4 A8; DynamicBrokerConfig.validate).

All errors are INVALID_REQUEST, even those of invalid values: a quirk of Kafka's.
"""

from collections.abc import Iterable, Mapping

from broker.settings.broker_settings import BrokerSettings
from broker.settings.checks import duplicates_problem
from broker.settings.crosschecks import Values, broker_problem, log_default
from broker.settings.definition_order import as_defined, as_hashed
from broker.settings.model import Row, UpdateMode, Value
from broker.settings.names import base_name
from broker.settings.topics import local_retention_problem
from broker.settings.values import invalid, parse
from control_api.plugins import PRINCIPAL_BUILDER, is_reference
from protocol.errors import ErrorCode, KafkaError
from protocol.java import string_hash
from protocol.scala import mutable_order

# Thread pools that may at most double or halve in one change. The cleaner has its own error message.
THREAD_POOLS = frozenset(
    {
        "background.threads",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
        "remote.log.manager.copier.thread.pool.size",
        "remote.log.manager.expiration.thread.pool.size",
        "remote.log.manager.follower.thread.pool.size",
        "remote.log.reader.threads",
    }
)
_CLEANER = "log.cleaner.threads"
# Settings with which open listeners were opened.
_OF_OPEN_LISTENERS = ("listeners", "listener.security.protocol.map")
# Limits that may be 0 in a file, but that a running listener refuses as 0.
_OF_CONNECTIONS = ("max.connections", "max.connection.creation.rate")
_AS_TOTAL_RETENTION = -2
# The one metrics reporter that needs no class to be loaded.
_REPORTER = "org.apache.kafka.common.metrics.JmxReporter"


_NO_CONTROLLER = (
    "requirement failed: controller.listener.names must contain at least one value appearing in the 'listeners' "
    "configuration when running the KRaft controller role"
)


def validate_broker(texts: Mapping[str, str], settings: BrokerSettings, *, per_broker: bool) -> None:
    """Validate all configs that would be stored for BROKER "<id>" (per_broker) or BROKER "".

    Raises:
        KafkaError: INVALID_REQUEST with Kafka's reason.
    """
    # Quirk: config.providers is removed before all checks, so only the other layer's are checked (core C.4.8).
    texts = {name: text for name, text in texts.items() if not name.startswith("config.providers")}
    rows = {name: settings.broker_row(name) for name in texts}
    defined = {name: row for name, row in rows.items() if row is not None}
    # The order of DynamicBrokerConfig.validateConfigs: fixed names, names that need a listener's prefix, values, and
    # only then whether a name may be a default of the cluster. A setting that fails two has the error of the first.
    _refuse_names("Cannot update these configs dynamically", (n for n, row in defined.items() if _is_fixed(n, row)))
    _refuse_names(
        "These security configs can be dynamically updated only per-listener using the listener prefix",
        (name for name in texts if _is_secret_of_a_listener(name)),
    )
    distinct = settings.refuses_duplicates
    problems = {name: problem for name, row in defined.items() if (problem := _problem(row, texts[name], distinct))}
    for name in as_defined("broker", problems) if problems else ():
        raise _refused(problems[name])
    if not per_broker:
        _refuse_names(
            "Cannot update these configs at default cluster level, broker id must be specified",
            (name for name, row in defined.items() if row.mode is UpdateMode.PER_BROKER),
        )
    problem = settings.problem_of_providers(settings.cluster_wide if per_broker else settings.own)
    if problem is not None:
        raise _refused(problem)
    before = settings.preview(settings.cluster_wide, settings.own)
    after = settings.preview(settings.cluster_wide, texts) if per_broker else settings.preview(texts, settings.own)
    problem = broker_problem(after)
    if problem is not None and problem != broker_problem(before):
        raise _refused(problem)
    if "listeners" in texts and not _has_controller(after):
        raise _refused(_NO_CONTROLLER)
    changed = _changed(settings, texts, per_broker=per_broker)
    for problem in (
        *_connection_problems(before, after),
        *_reporter_problems(before, after, changed),
        *_reconfiguration_problems(before, after),
    ):
        # A quirk of Kafka's: the exception's text is in the place of the value.
        exception = f"org.apache.kafka.common.config.ConfigException: {problem}"
        raise _refused(f"Invalid value {exception} for configuration Invalid dynamic configuration")


def _has_controller(values: Values) -> bool:
    """Whether a controller listener is among the listeners; the broker is a controller too (process.roles)."""
    names, listeners = values["controller.listener.names"], values["listeners"]
    controllers = names if isinstance(names, tuple) and names else ("CONTROLLER",)
    listed = listeners if isinstance(listeners, tuple) else ()
    return any(listener.strip().upper().startswith(f"{name.upper()}://") for listener in listed for name in controllers)


def _refused(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _refuse_names(complaint: str, names: Iterable[str]) -> None:
    refused = list(names)
    if refused:
        raise _refused(f"{complaint}: [{', '.join(as_hashed(refused))}]")


def _problem(row: Row, text: str, distinct: bool) -> str | None:
    """Return the problem of a value, with the setting's name without a listener prefix."""
    if distinct and (problem := duplicates_problem(row, text)):
        return problem
    try:
        value = parse(row, text)
    except KafkaError as error:
        return error.message or ""
    if row.name == PRINCIPAL_BUILDER and is_reference(str(value)):  # only a server's own options name code
        return invalid(row.name, text, f"Class {text} could not be found.")
    return None


def _is_fixed(name: str, row: Row) -> bool:
    """Whether a setting is known and read-only; any setting with a listener prefix is allowed."""
    return row.mode is UpdateMode.READ_ONLY and row.name == name


def _is_secret_of_a_listener(name: str) -> bool:
    """Whether a key or trust store setting has no listener prefix (DynamicBrokerConfig.DYNAMIC_SECURITY_CONFIGS)."""
    return name == "ssl.key.password" or name.startswith(("ssl.keystore.", "ssl.truststore."))


def _reconfiguration_problems(before: Values, after: Values) -> Iterable[str]:
    """Yield the errors of the broker's components that would have to be reconfigured."""
    for name, value in after.items():
        if value != before.get(name):
            yield from _thread_problems(name, before.get(name, before.get(base_name(name))), value)
    if any(before[name] != after[name] for name in _OF_OPEN_LISTENERS):
        first = str(before["listeners"][0]).partition(":")[0] if isinstance(before["listeners"], tuple) else ""
        yield (
            f"Configs cannot be updated dynamically for existing listener ListenerName({first}), restart broker or "
            "create a new listener for update"
        )
    yield from _local_retention_problems(before, after)
    yield from _copy_lag_problems(before, after)


def _connection_problems(before: Values, after: Values) -> Iterable[str]:
    """Yield invalid limits of listeners; the controller's has those without a prefix (ListenerConnectionQuota)."""
    listed = before["listeners"] if isinstance(before["listeners"], tuple) else ()
    for prefix in (*(f"listener.name.{listener.partition(':')[0].lower()}." for listener in listed), ""):
        old, new = (
            {name: values.get(prefix + name, values[name]) for name in _OF_CONNECTIONS} for values in (before, after)
        )
        if old != new:
            yield from (f"Invalid {name} {limit}" for name, limit in new.items() if limit == 0)


def _changed(settings: BrokerSettings, texts: Mapping[str, str], *, per_broker: bool) -> list[str]:
    """Return the settings whose text would change, in the order of Scala's map (``updatedConfigs``)."""
    lower, upper = (settings.cluster_wide, texts) if per_broker else (texts, settings.own)
    now = {**settings.static, **settings.cluster_wide, **settings.own}
    new = {**settings.static, **lower, **upper}
    return mutable_order((name for name, text in new.items() if text != now.get(name)), string_hash)


def _reporter_problems(before: Values, after: Values, changed: Iterable[str]) -> Iterable[str]:
    """Yield the error for reporter classes that do not exist; Kafka checks them first, and lists all changes."""
    reporters = after["metric.reporters"]
    if reporters != before["metric.reporters"] and isinstance(reporters, tuple) and set(reporters) - {_REPORTER}:
        update = f"Validation of dynamic config update of Set({', '.join(changed)})"
        yield f"{update} failed with class class kafka.server.DynamicMetricsReporters"


def _thread_problems(name: str, old: Value, new: Value) -> Iterable[str]:
    base = base_name(name)
    if not isinstance(old, int) or not isinstance(new, int) or (base not in THREAD_POOLS and base != _CLEANER):
        return
    if old // 2 <= new <= old * 2:
        return
    if base == _CLEANER:
        if new < old:
            yield f"Log cleaner threads cannot be reduced to less than half the current value {old}"
        else:
            yield f"Log cleaner threads cannot be increased to more than double the current value {old}"
        return
    rule = "be at least half" if new < old else "not be greater than double"
    yield f"Dynamic thread count update validation failed for {base}={new}, value should {rule} the current value {old}"


def _local_retention_problems(before: Values, after: Values) -> Iterable[str]:
    """Yield violations of the tiered-storage rule, which applies to broker defaults even without tiered storage."""
    for unit in ("ms", "bytes"):
        name, limit = f"log.local.retention.{unit}", f"log.retention.{unit}"
        if before[name] != after[name] or before[limit] != after[limit]:
            yield from local_retention_problems(after, unit)


def local_retention_problems(values: Values, unit: str) -> Iterable[str]:
    """Yield the problem of the brokers' local retention beyond total retention, in ms or bytes."""
    name, limit = f"log.local.retention.{unit}", f"log.retention.{unit}"
    local, total = values[name], log_default(values, f"retention.{unit}")
    complaint = local_retention_problem(name, local, limit, max(total, -1)) if isinstance(local, int) else None
    if complaint is not None:
        yield complaint


def _copy_lag_problems(before: Values, after: Values) -> Iterable[str]:
    """Yield copy lags that exceed local retention: segments must be copied before they are deleted locally."""
    for unit in ("ms", "bytes"):
        name, kept, limit = f"log.remote.copy.lag.{unit}", f"log.local.retention.{unit}", f"retention.{unit}"
        lag, local, total = after[name], after[kept], log_default(after, limit)
        unchanged = before[name] == lag and before[kept] == local and log_default(before, limit) == total
        effective = total if local == _AS_TOTAL_RETENTION else local
        if isinstance(lag, int) and isinstance(effective, int) and lag > effective >= 0 and not unchanged:
            yield invalid(name, str(lag), f"Value must not exceed {kept} (effective value: {effective})")
