"""The options of `understudy serve`, parsed and checked: one frozen object, handed to the composition root.

`parse` takes the values of each option, those of lowest precedence first, and raises `OptionError`, whose message is
the one sentence that the user reads before exit code 2.
"""

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from broker.broker_ids import BrokerIdError, given_ids
from broker.network import endpoints
from broker.network.endpoints import Endpoint, EndpointError
from broker.network.tls import TlsError, context_of, mapping_of
from broker.releases import DEFAULT, NAMES
from broker.releases import release as release_named
from broker.sasl import mechanisms
from broker.settings import BrokerSettings
from broker.settings.names import is_setting, static_problem
from broker.settings.secrets import is_password, shown_value
from broker.settings.tables import TOPIC
from broker.settings.topics import validate
from protocol.errors import KafkaError
from understudy.control_api.spelling import hint

FEATURES = (
    "metadata.version",
    "kraft.version",
    "transaction.version",
    "group.version",
    "eligible.leader.replicas.version",
    "share.version",
    "streams.version",
)

LOG_LEVELS = ("debug", "info", "warning", "error", "critical")

# Of a server.properties: the identity and the paths of the real broker, which do not change how it answers.
PLACES = re.compile(
    r"process\.roles|broker\.id\..+|broker\.rack|controller\..*|log\.dirs?|metadata\.log\.dir|zookeeper\..*"
    r"|num\.(network|io|recovery|replica).*|socket\.(send|receive)\.buffer\.bytes|metric.*|.*\.metrics\..*|auto\.leader.*"
)


INTERNAL_TOPICS = {
    "__consumer_offsets": "offsets.topic.num.partitions",
    "__transaction_state": "transaction.state.log.num.partitions",
    "__share_group_state": "share.coordinator.state.topic.num.partitions",
}
"""Topics that no `--topic` may create: coordinators count on as many partitions as the setting has."""


class OptionError(Exception):
    """An option that makes no sense; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class TopicOption:
    """A topic to create at start; `partitions` None means `num.partitions`."""

    name: str
    partitions: int | None = None
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """All of `understudy serve`. Settings are as given, by Kafka's names; what was not given is not in them."""

    broker_ids: tuple[int, ...] = (1,)
    ids_given: bool = False  # otherwise a data directory that has other ids decides
    # Per broker, in the order of the ids, its listeners, the first of them the one that bootstrap.servers names.
    listeners: tuple[tuple[Endpoint, ...], ...] = ((Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092),),)
    controller: Endpoint | None = None  # the listener for clients with `bootstrap.controllers`; None: there is none
    topics: tuple[TopicOption, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    features: Mapping[str, int] = field(default_factory=dict)
    as_version: str | None = None
    data_dir: Path | None = None
    read_only: bool = False
    allow_reset: bool = False  # a reset may remove what Understudy did not make
    lazy_coordinators: bool = False
    control_host: str = "127.0.0.1"
    control_port: int | None = 9099  # None: no control plane; 0: a free port
    control_token: str | None = None
    ready_file: Path | None = None
    journal_dir: Path | None = None
    seed: int | None = None
    log_format: str = "console"
    log_level: str = "info"
    lifeline: bool = False
    notes: tuple[str, ...] = ()  # logged once: what was understood but has no use here

    @property
    def brokers(self) -> int:
        """The number of brokers at the start."""
        return len(self.broker_ids)

    def option_of_port(self, port: int) -> str:
        """The option that asked for this port, for the message that the port is taken."""
        if port == self.control_port:
            return "--control-port"
        if self.controller is not None and self.controller.port == port:
            return "--set listeners" if "listeners" in self.settings else "--controller-port"
        if any(own[0].port == port for own in self.listeners):
            return "--set listeners" if "listeners" in self.settings else "--port"
        return "--listener"

    def option_of_host(self, host: str) -> str:
        """The option that asked for this address, for the message that it is not this machine's."""
        if any(own[0].host == host for own in self.listeners):
            return "--set listeners" if "listeners" in self.settings else "--host"
        return "--control-host" if host == self.control_host else "--listener"


Given = Mapping[str, Sequence[str]]


def parse(given: Given) -> ServeOptions:
    """Parse the options; raises OptionError with the first thing that is wrong."""
    if {"strict-settings", "no-strict-settings"} <= given.keys():
        raise OptionError("--strict-settings and --no-strict-settings exclude each other")
    found, ignored = from_properties(given.get("properties", ()), strict="strict-settings" in given)
    check_secrets(given.get("typed", ()))
    sets, unknown = from_sets(given.get("set", ()), strict="no-strict-settings" not in given)
    settings = {**found, **sets}
    try:
        ids, ids_given = given_ids(count_of(given), last(given, "broker-id"), settings)
    except BrokerIdError as error:
        raise OptionError(str(error)) from error
    settings = {name: value for name, value in settings.items() if name not in {"node.id", "broker.id"}}
    topics = {topic.name: topic for topic in map(topic_option, given.get("topic", ()))}
    check_together(settings, topics.values())
    try:
        opened = listeners(given, settings, len(ids))
        controller = endpoints.controller(settings, last(given, "controller-port"), opened)
    except EndpointError as error:
        raise OptionError(str(error)) from error
    check_security((*opened[0], *(() if controller is None else (controller,))), settings)
    control_host, control_port, control_token = control(given)
    data_dir = path(given, "data-dir")
    if "read-only" in given and data_dir is None:
        raise OptionError("--read-only needs --data-dir DIR")
    if "allow-reset" in given and data_dir is None:
        raise OptionError("--allow-reset needs --data-dir DIR")
    seed = last(given, "seed")
    as_version = release(last(given, "as-version"))
    return ServeOptions(
        broker_ids=ids,
        ids_given=ids_given,
        listeners=opened,
        controller=controller,
        topics=tuple(topics.values()),
        settings=settings,
        features=features_of(as_version, given.get("feature", ())),
        as_version=as_version,
        data_dir=data_dir,
        read_only="read-only" in given,
        allow_reset="allow-reset" in given,
        lazy_coordinators="lazy-coordinators" in given,
        control_host=control_host,
        control_port=control_port,
        control_token=control_token,
        ready_file=path(given, "ready-file"),
        journal_dir=path(given, "journal"),
        seed=None if seed is None else integer(seed, "--seed", -(2**63), 2**64 - 1),
        log_format=one_of(last(given, "log-format") or "console", "--log-format", ("console", "json")),
        log_level=one_of(last(given, "log-level") or "info", "--log-level", LOG_LEVELS),
        lifeline="lifeline" in given,
        notes=(
            *([f"of server.properties, these have no meaning here: {', '.join(ignored)}"] if ignored else ()),
            *([f"of --set, these are unknown and ignored: {', '.join(unknown)}"] if unknown else ()),
        ),
    )


def last(given: Given, name: str) -> str | None:
    """The strongest voice's value of an option that takes one."""
    values = given.get(name)
    return values[-1] if values else None


def path(given: Given, name: str) -> Path | None:
    """An option that names a file or a folder."""
    value = last(given, name)
    return None if value is None else Path(value)


def pair(text: str, option: str, shape: str) -> tuple[str, str]:
    """KEY=VALUE as its two halves, the value kept as it is."""
    key, mark, value = text.partition("=")
    if not mark or not key.strip():
        raise OptionError(f"{option} needs {shape}, not {text!r}")
    return key.strip(), value


def integer(text: str, option: str, least: int, most: int) -> int:
    """A whole number within bounds."""
    try:
        value = int(text)
    except ValueError:
        raise OptionError(f"{option} needs a whole number, not {text!r}") from None
    if not least <= value <= most:
        raise OptionError(f"{option} needs a number from {least} to {most}, not {value}")
    return value


def one_of(value: str, option: str, choices: Sequence[str]) -> str:
    """Parse a choice, in either case of letters."""
    if value.lower() not in choices:
        raise OptionError(f"{option} is one of {', '.join(choices)}, not {value!r}{hint(value, choices)}")
    return value.lower()


def topic_option(text: str) -> TopicOption:
    """Parse `NAME[:PARTITIONS[:KEY=VALUE,...]]`; a value may hold commas (cleanup.policy=compact,delete)."""
    name, _, rest = text.partition(":")
    # Topic.java: 1 to 249 of these characters, and neither "." nor "..".
    if not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name) or name in {".", ".."}:
        raise OptionError(f"--topic {text!r} does not start with a topic's name")
    if name in INTERNAL_TOPICS:
        raise OptionError(
            f"--topic {name} is an internal topic, which the broker creates when it is needed; "
            f"--set {INTERNAL_TOPICS[name]}=N sets its number of partitions"
        )
    count, _, tail = rest.partition(":")
    configs: dict[str, str] = {}
    key = ""
    for part in tail.split(",") if tail else ():
        if "=" in part:
            key, value = pair(part, f"--topic {name}", "KEY=VALUE after the partitions")
            configs[key] = value
        elif key:
            configs[key] += f",{part}"
        else:
            raise OptionError(f"--topic {name} needs KEY=VALUE after the partitions, not {part!r}")
    return TopicOption(name, integer(count, f"--topic {name}", 1, 100_000) if count else None, configs)


def feature(text: str) -> tuple[str, int]:
    """Parse `NAME=LEVEL`."""
    name, level = pair(text, "--feature", "NAME=LEVEL")
    if name not in FEATURES:
        raise OptionError(f"--feature {name} does not exist{hint(name, FEATURES)}")
    return name, integer(level, f"--feature {name}", 0, 32767)


def features_of(as_version: str | None, given: Iterable[str]) -> dict[str, int]:
    """The levels of `--feature`, each one that the emulated release supports."""
    levels = dict(map(feature, given))
    supported = release_named(as_version or DEFAULT).supported
    for name, level in levels.items():
        low, high = supported.get(name, (0, 0))
        if name in supported and low <= level <= high:
            continue
        if as_version in (None, DEFAULT):
            raise OptionError(f"--feature {name}={level} is no level of Kafka {DEFAULT}, which has {low} to {high}")
        has = f"has it at {low} to {high}" if name in supported else "has no such feature"
        raise OptionError(f"--feature {name}={level} does not go with --as-version {as_version}, which {has}")
    return levels


def release(text: str | None) -> str | None:
    """A Kafka release as major.minor; a patch number is accepted and makes no difference."""
    if text is None:
        return None
    short = ".".join(text.split(".")[:2])
    if short not in NAMES:
        known = f"{NAMES[0]} to {NAMES[-1]}"
        raise OptionError(f"--as-version {text} cannot be emulated: there are {known}{hint(short, NAMES)}")
    return short


def control(given: Given) -> tuple[str, int | None, str | None]:
    """Host, port (None: off) and token of the control plane; on other than loopback a token is a must."""
    host, token = last(given, "control-host") or "127.0.0.1", last(given, "control-token")
    text = last(given, "control-port") or "9099"
    if text == "off":
        return host, None, token
    port = integer(text, "--control-port", 0, 65535)
    if not is_loopback(host) and not token:
        raise OptionError(f"--control-host {host} can be reached from other machines and needs --control-token TOKEN")
    return host, port, token


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def count_of(given: Given) -> str:
    """The value of `--brokers`; where only `--port` lists several ports, as many."""
    ports = (last(given, "port") or "").count(",") + 1
    return str(ports) if ports > 1 and "brokers" not in given.get("given", ()) else last(given, "brokers") or "1"


def listeners(given: Given, settings: Mapping[str, str], brokers: int) -> tuple[tuple[Endpoint, ...], ...]:
    """Each broker's listeners, from `listeners` of the settings or else `--host` and `--port`, plus `--listener`s."""
    ports = [endpoints.port_number(part.strip(), "--port") for part in (last(given, "port") or "9092").split(",")]
    if len(ports) > 1 and len(ports) != brokers:
        raise OptionError(f"--port names {len(ports)} ports for --brokers {brokers}")
    protocols = endpoints.protocol_map(settings.get("listener.security.protocol.map", ""))
    own = endpoints.from_settings(settings, protocols)
    if not own:
        host = last(given, "host") or "127.0.0.1"
        protocol = endpoints.protocol_of("PLAINTEXT", protocols)
        own = (Endpoint("PLAINTEXT", protocol, host, ports[0]),)
    advertise = last(given, "advertise")
    advertised = (None, None) if advertise is None else endpoints.address(advertise, "--advertise", port_needed=False)
    first = [main_endpoint(own[0], ports, index, advertised) for index in range(brokers)]
    further = (*own[1:], *(endpoints.listener(text, protocols) for text in given.get("listener", ())))
    return endpoints.per_broker(first, further)


def main_endpoint(
    main: Endpoint, ports: Sequence[int], index: int, advertised: tuple[str | None, int | None]
) -> Endpoint:
    """Broker `index`'s first listener: its port from the list of `--port` where that lists this listener's port."""
    listed = len(ports) > 1 and main.port == ports[0]
    port = ports[index] if listed else main.of_broker(index).port
    host = main.advertised_host if advertised[0] is None else advertised[0]
    port_for_clients = main.advertised_port if advertised[0] is None else advertised[1]
    if port_for_clients is not None:
        port_for_clients += index
    return Endpoint(main.name, main.protocol, main.host, port, host, port_for_clients)


def from_sets(given: Iterable[str], *, strict: bool) -> tuple[dict[str, str], list[str]]:
    """The settings of `--set`, with values that Kafka accepts; and unknown names, unless they are errors."""
    found = dict(pair(text, "--set", "KEY=VALUE") for text in given)
    unknown = [] if strict else [name for name in found if not is_setting(name)]
    known = {name: value for name, value in found.items() if name not in unknown}
    for name, value in known.items():
        problem = static_problem(name, value)
        if problem is not None:
            raise OptionError(f"--set {name}={shown_value(name, value)}: {problem}")
    return known, unknown


def check_secrets(typed: Iterable[str]) -> None:
    """Refuse secrets among the settings of the command line, which every user of the machine can read (ps)."""
    for name in typed:
        if is_password(name):
            raise OptionError(
                f"--set {name}: a secret on the command line can be read by every user of this machine; give it in a "
                f"file (--config) or in the environment (UNDERSTUDY_SET_...)"
            )


def check_together(settings: Mapping[str, str], topics: Iterable[TopicOption]) -> None:
    """Settings that exclude each other are refused as a real broker refuses to start, topics' configs likewise."""
    where = "the settings do not fit"
    try:
        made = BrokerSettings(1, settings)
        for topic in topics:
            where = f"--topic {topic.name}"
            for name in topic.configs:
                if made.topic_row(name) is None:
                    raise OptionError(f"{where}: Kafka has no topic setting {name}{hint(name, TOPIC)}")
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


def from_properties(lines: Iterable[str], *, strict: bool) -> tuple[dict[str, str], list[str]]:
    """The settings of a server.properties, and those without a meaning here; ``strict`` makes unknown ones errors."""
    found: dict[str, str] = {}
    ignored: list[str] = []
    for line in lines:
        name, value = pair(line, "server.properties", "KEY=VALUE")
        if name == "controller.listener.names":
            found[name] = value
        elif PLACES.fullmatch(name) or not (strict or is_setting(name)):
            ignored.append(name)
        else:
            problem = static_problem(name, value)
            if problem is not None:
                raise OptionError(f"server.properties {name}={shown_value(name, value)}: {problem}")
            found[name] = value
    return found, ignored
