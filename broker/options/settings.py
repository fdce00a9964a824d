"""`--set` and server.properties: settings by Kafka's names, and what they must be together."""

import re
from collections.abc import Iterable, Mapping

from broker.network.endpoints import Endpoint
from broker.network.tls import TlsError, context_of, mapping_of
from broker.options.topics import TopicOption
from broker.options.values import OptionError, pair
from broker.sasl import mechanisms
from broker.settings import BrokerSettings
from broker.settings.crosschecks import connection_problems
from broker.settings.names import is_setting, static_problem
from broker.settings.of_release import TODAY, Tables
from broker.settings.secrets import is_password, shown_value
from broker.settings.tables import BROKER
from broker.settings.topics import validate
from protocol.errors import KafkaError
from understudy.control_api.spelling import hint

# Of a server.properties: the identity and the paths of the real broker, which do not change how it answers.
PLACES = re.compile(
    r"process\.roles|broker\.id\..+|controller\..*|log\.dirs?|metadata\.log\.dir|zookeeper\..*"
    r"|num\.(network|io|recovery|replica).*|socket\.(send|receive)\.buffer\.bytes|metric.*|.*\.metrics\..*|auto\.leader.*"
)

_HEARTBEATS = {
    f"group.{kind}.{least}heartbeat.interval.ms": "500"
    for kind in ("consumer", "share", "streams")
    for least in ("min.", "")
}
FOR_TESTS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "understudy.auto.create.topics.at.once": "true",
    **_HEARTBEATS,
}
"""The settings of `--for-tests`. By default, a new group waits 3 s for further members, a member of the newer protocols
hears of its assignment after 5 s, and a client asks again for a topic that is being created."""


def for_tests(given: Mapping[str, str]) -> dict[str, str]:
    """The settings of `--for-tests`, but for those that were given, and for intervals that do not fit to those."""
    limits = {name.replace(".min.", "."): name for name in _HEARTBEATS if ".min." in name}
    decided = {each for pair in limits.items() for each in pair if not given.keys().isdisjoint(pair)}
    return {name: value for name, value in FOR_TESTS.items() if name not in given and name not in decided}


def from_sets(given: Iterable[str], *, strict: bool, tables: Tables = TODAY) -> tuple[dict[str, str], list[str]]:
    """The settings of `--set`, with values that Kafka accepts; and unknown names, unless they are errors."""
    rows = {**BROKER, **tables.removed}
    found = dict(pair(text, "--set", "KEY=VALUE") for text in given)
    unknown = [] if strict else [name for name in found if not is_setting(name, rows)]
    known = {name: value for name, value in found.items() if name not in unknown}
    for name, value in known.items():
        problem = static_problem(name, value, rows)
        if problem is not None:
            raise OptionError(f"--set {name}={shown_value(name, value)}: {problem}")
    return known, unknown


def from_properties(lines: Iterable[str], *, strict: bool, tables: Tables = TODAY) -> tuple[dict[str, str], list[str]]:
    """The settings of a server.properties, and those without a meaning here; ``strict`` makes unknown ones errors."""
    rows = {**BROKER, **tables.removed}
    found: dict[str, str] = {}
    ignored: list[str] = []
    for line in lines:
        name, value = pair(line, "server.properties", "KEY=VALUE")
        if name == "controller.listener.names":
            found[name] = value
        elif PLACES.fullmatch(name) or not (strict or is_setting(name, rows)):
            ignored.append(name)
        else:
            problem = static_problem(name, value, rows)
            if problem is not None:
                raise OptionError(f"server.properties {name}={shown_value(name, value)}: {problem}")
            found[name] = value
    return found, ignored


def check_secrets(typed: Iterable[str]) -> None:
    """Refuse secrets among the settings of the command line, which every user of the machine can read (ps)."""
    for name in typed:
        if is_password(name):
            raise OptionError(
                f"--set {name}: a secret on the command line can be read by every user of this machine; give it in a "
                f"file (--config) or in the environment (UNDERSTUDY_SET_...)"
            )


def check_together(settings: Mapping[str, str], topics: Iterable[TopicOption], tables: Tables = TODAY) -> None:
    """Settings that exclude each other are refused as a real broker refuses to start, topics' configs likewise."""
    where = "the settings do not fit"
    try:
        made = BrokerSettings(1, settings)
        made.emulate(tables)
        for problem in connection_problems(made.preview({}, {})):
            raise OptionError(f"{where}: {problem}")
        for topic in topics:
            where = f"--topic {topic.name}"
            for name in topic.configs:
                if made.topic_row(name) is None:
                    raise OptionError(f"{where}: Kafka has no topic setting {name}{hint(name, tables.topic)}")
            validate(topic.configs, made)
    except KafkaError as error:
        raise OptionError(f"{where}: {error.message}") from error


def check_security(opened: Iterable[Endpoint], settings: Mapping[str, str]) -> None:
    """Refuse a listener whose SASL mechanisms are missing or have no users, or that has no certificate for TLS."""
    made = BrokerSettings(1, settings)
    for endpoint in opened:
        found = mechanisms.problem(made, endpoint.name) if endpoint.has_sasl else None
        if found is not None:
            raise OptionError(found)
        try:
            if context_of(made, endpoint) is not None:
                mapping_of(made, endpoint.name)
        except TlsError as error:
            raise OptionError(str(error)) from error
