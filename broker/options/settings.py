"""Settings by Kafka's names, from `--set` and server.properties, and checks of their combinations."""

import re
from collections.abc import Collection, Iterable, Mapping

from broker.access.sasl import mechanisms
from broker.access.tls.context import TlsError, context_of, mapping_of
from broker.options.listener_rules import listener_problem
from broker.options.topics import TopicOption
from broker.options.values import OptionError, pair
from broker.settings import BrokerSettings
from broker.settings.at_start import start_problem
from broker.settings.endpoints import Endpoint
from broker.settings.names import is_setting, static_problem
from broker.settings.of_release import TODAY, Tables
from broker.settings.secrets import is_password, shown_value
from broker.settings.tables import BROKER
from broker.settings.topics import validate
from control_api.spelling import hint
from protocol.errors import KafkaError

# Identity and paths of the real broker in a server.properties: ignored, because they do not affect its responses.
PLACES = re.compile(
    r"process\.roles|broker\.id\..+|controller\..*|metadata\.log\.dir|zookeeper\..*"
    r"|num\.(network|io|recovery|replica).*|socket\.(send|receive)\.buffer\.bytes|metric.*|.*\.metrics\..*"
)

_REFUSAL = "a Kafka broker does not start with these settings"

_HEARTBEATS = {
    f"group.{kind}.{least}heartbeat.interval.ms": "500"
    for kind in ("consumer", "share", "streams")
    for least in ("min.", "")
}
FOR_TESTS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "understudy.auto.create.topics.at.once": "true",
    "understudy.first.fetch.max.wait.ms": "0",
    **_HEARTBEATS,
}
"""The settings of `--for-tests`. By default a new group waits 3 s for further members, a member of the consumer, share
or streams protocol gets its assignment after 5 s, a client retries for a topic that is being created, and its first
Fetch keeps the partitions waiting that are not in it.
"""


def for_tests(requested_settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of `--for-tests` without those given, and without intervals that contradict those given."""
    limits = {name.replace(".min.", "."): name for name in _HEARTBEATS if ".min." in name}
    decided = {setting for pair in limits.items() for setting in pair if not requested_settings.keys().isdisjoint(pair)}
    return {name: value for name, value in FOR_TESTS.items() if name not in requested_settings and name not in decided}


def from_sets(texts: Iterable[str], *, strict: bool, tables: Tables = TODAY) -> tuple[dict[str, str], list[str]]:
    """Validate and return the settings of `--set`, with the unknown names; ``strict`` makes unknown names errors."""
    rows = {**BROKER, **tables.removed}
    requested_settings = dict(pair(text, "--set", "KEY=VALUE") for text in texts)
    unknown = [] if strict else [name for name in requested_settings if not is_setting(name, rows)]
    accepted = {name: value for name, value in requested_settings.items() if name not in unknown}
    for name, value in accepted.items():
        problem = static_problem(name, value, rows)
        if problem is not None:
            raise OptionError(f"--set {name}={shown_value(name, value)}: {problem}")
    return accepted, unknown


def from_properties(
    lines: Iterable[str], *, strict: bool, tables: Tables = TODAY
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the settings of a server.properties, and those ignored here; ``strict`` makes unknown names errors.

    Values of ignored settings are checked too, because Kafka would not start with invalid ones.
    """
    rows = {**BROKER, **tables.removed}
    settings: dict[str, str] = {}
    ignored: dict[str, str] = {}
    for line in lines:
        name, value = pair(line, "server.properties", "KEY=VALUE")
        is_known, is_place = is_setting(name, rows), PLACES.fullmatch(name) is not None
        if (is_known and tables is TODAY) if is_place else (is_known or strict):
            problem = static_problem(name, value, rows)
            if problem is not None:
                raise OptionError(f"server.properties {name}={shown_value(name, value)}: {problem}")
        is_ignored = not is_known or (is_place and name != "controller.listener.names")
        (ignored if is_ignored else settings)[name] = value
    return settings, ignored


def check_secrets(typed: Iterable[str]) -> None:
    """Refuse passwords in settings on the command line, which every user of the machine can read (ps)."""
    for name in typed:
        if is_password(name):
            raise OptionError(
                f"--set {name}: a secret on the command line can be read by every user of this machine; give it in a "
                f"file (--config) or in the environment (UNDERSTUDY_SET_...)"
            )


def check_together(settings: Mapping[str, str], topics: Iterable[TopicOption], tables: Tables = TODAY) -> None:
    """Refuse settings with which a real broker does not start, and topic configs that it would refuse."""
    where = _REFUSAL
    try:
        broker_settings = BrokerSettings(1, settings)
        broker_settings.emulate(tables)
        problem = start_problem(broker_settings)
        if problem is not None:
            raise OptionError(f"{where}: {problem}")
        for topic in topics:
            where = f"--topic {topic.name}"
            for name in topic.configs:
                if broker_settings.topic_row(name) is None:
                    raise OptionError(f"{where}: Kafka has no topic setting {name}{hint(name, tables.topic)}")
            validate(topic.configs, broker_settings)
    except KafkaError as error:
        raise OptionError(f"{where}: {error.message}") from error


def check_listeners(settings: Mapping[str, str], opened: Collection[Endpoint], *, advertise: bool) -> None:
    """Refuse listeners with which a real broker does not start; ``advertise``: whether `--advertise` is given."""
    problem = listener_problem(settings, opened, advertise=advertise)
    if problem is not None:
        raise OptionError(f"{_REFUSAL}: {problem}")


def check_security(opened: Iterable[Endpoint], settings: Mapping[str, str]) -> None:
    """Refuse a SASL listener without mechanisms or with one that has no users; a TLS listener without certificate."""
    broker_settings = BrokerSettings(1, settings)
    for endpoint in opened:
        problem = mechanisms.problem(broker_settings, endpoint.name) if endpoint.has_sasl else None
        if problem is not None:
            raise OptionError(problem)
        try:
            if context_of(broker_settings, endpoint) is not None:
                mapping_of(broker_settings, endpoint.name)
        except TlsError as error:
            raise OptionError(str(error)) from error
