"""What `understudy serve` was told, parsed and checked: one frozen object, handed to the composition root.

`parse` takes the words as the door gathered them (option name -> values, weakest voice first) and raises `OptionError`,
whose message is the one sentence that the user reads before exit code 2.
"""

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from broker import endpoints
from broker.endpoints import Endpoint, EndpointError
from broker.releases import NAMES, NEWEST
from broker.releases import release as release_named
from broker.sasl import mechanisms
from broker.settings import BrokerSettings
from broker.settings.names import is_setting, static_problem
from broker.settings.topics import validate
from broker.tls import TlsError, context_of
from protocol.errors import KafkaError

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

# Of a server.properties: what says where and who the real broker is, and nothing about how it answers.
PLACES = re.compile(
    r"process\.roles|node\.id|broker\.id.*|broker\.rack|controller\..*|log\.dirs?|metadata\.log\.dir|zookeeper\..*"
    r"|num\.(network|io|recovery|replica).*|socket\.(send|receive)\.buffer\.bytes|metric.*|.*\.metrics\..*|auto\.leader.*"
)


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

    brokers: int = 1
    # Per broker (index 0 is id 1) its listeners, the first of them the one that bootstrap.servers names.
    listeners: tuple[tuple[Endpoint, ...], ...] = ((Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092),),)
    topics: tuple[TopicOption, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    features: Mapping[str, int] = field(default_factory=dict)
    as_version: str | None = None
    data_dir: Path | None = None
    read_only: bool = False
    control_host: str = "127.0.0.1"
    control_port: int | None = 9099  # None: no control plane; 0: a free port
    control_token: str | None = None
    ready_file: Path | None = None
    journal_dir: Path | None = None
    seed: int | None = None
    log_format: str = "console"
    log_level: str = "info"
    lifeline: bool = False
    notes: tuple[str, ...] = ()  # said once in the log: what was understood but has no use here

    def option_of_port(self, port: int) -> str:
        """The option that asked for this port, for the sentence that says that the port is taken."""
        if port == self.control_port:
            return "--control-port"
        if any(own[0].port == port for own in self.listeners):
            return "--set listeners" if "listeners" in self.settings else "--port"
        return "--listener"


Given = Mapping[str, Sequence[str]]


def parse(given: Given) -> ServeOptions:
    """The options from the words; raises OptionError with the first thing that is wrong."""
    found, ignored = from_properties(given.get("properties", ()))
    settings = {**found, **from_sets(given.get("set", ()))}
    topics = {topic.name: topic for topic in map(topic_option, given.get("topic", ()))}
    check_together(settings, topics.values())
    try:
        opened = listeners(given, settings)
    except EndpointError as error:
        raise OptionError(str(error)) from error
    check_security(opened[0], settings)
    control_host, control_port, control_token = control(given)
    data_dir = path(given, "data-dir")
    if "read-only" in given and data_dir is None:
        raise OptionError("--read-only needs --data-dir DIR")
    seed = last(given, "seed")
    as_version = release(last(given, "as-version"))
    return ServeOptions(
        brokers=len(opened),
        listeners=opened,
        topics=tuple(topics.values()),
        settings=settings,
        features=features_of(as_version, given.get("feature", ())),
        as_version=as_version,
        data_dir=data_dir,
        read_only="read-only" in given,
        control_host=control_host,
        control_port=control_port,
        control_token=control_token,
        ready_file=path(given, "ready-file"),
        journal_dir=path(given, "journal"),
        seed=None if seed is None else integer(seed, "--seed", -(2**63), 2**64 - 1),
        log_format=one_of(last(given, "log-format") or "console", "--log-format", ("console", "json")),
        log_level=one_of(last(given, "log-level") or "info", "--log-level", LOG_LEVELS),
        lifeline="lifeline" in given,
        notes=(f"of server.properties, these have no meaning here: {', '.join(ignored)}",) if ignored else (),
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


def nearest(word: str, names: Iterable[str]) -> str:
    """The words "(did you mean X?)" with a blank before them, or nothing."""
    import difflib  # noqa: PLC0415 - only a mistake pays for it

    found = difflib.get_close_matches(word, list(names), n=1, cutoff=0.6)
    return f" (did you mean {found[0]}?)" if found else ""


def one_of(value: str, option: str, choices: Sequence[str]) -> str:
    """One of a few words."""
    if value.lower() not in choices:
        raise OptionError(f"{option} is one of {', '.join(choices)}, not {value!r}{nearest(value, choices)}")
    return value.lower()


def topic_option(text: str) -> TopicOption:
    """Parse `NAME[:PARTITIONS[:KEY=VALUE,...]]`; a value may hold commas (cleanup.policy=compact,delete)."""
    name, _, rest = text.partition(":")
    # Topic.java: 1 to 249 of these characters, and neither "." nor "..".
    if not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name) or name in {".", ".."}:
        raise OptionError(f"--topic {text!r} does not start with a topic's name")
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
        raise OptionError(f"--feature {name} does not exist{nearest(name, FEATURES)}")
    return name, integer(level, f"--feature {name}", 0, 32767)


def features_of(as_version: str | None, words: Iterable[str]) -> dict[str, int]:
    """The levels of `--feature`, as far as the release has them."""
    levels = dict(map(feature, words))
    if as_version not in (None, NEWEST):
        supported = release_named(as_version).supported
        for name, level in levels.items():
            low, high = supported.get(name, (0, 0))
            if name not in supported or not low <= level <= high:
                has = f"has it at {low} to {high}" if name in supported else "has no such feature"
                raise OptionError(f"--feature {name}={level} does not go with --as-version {as_version}, which {has}")
    return levels


def release(text: str | None) -> str | None:
    """A Kafka release as major.minor; a patch number is accepted and makes no difference."""
    if text is None:
        return None
    short = ".".join(text.split(".")[:2])
    if short not in NAMES:
        raise OptionError(f"--as-version {text} is not one of {', '.join(NAMES)}")
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
    """Whether nobody but this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listeners(given: Given, settings: Mapping[str, str]) -> tuple[tuple[Endpoint, ...], ...]:
    """Each broker's listeners, from `listeners` of the settings or else `--host` and `--port`, plus `--listener`s."""
    count = last(given, "brokers")
    brokers = integer(count or "1", "--brokers", 1, 1000)
    said = [endpoints.port_number(part.strip(), "--port") for part in (last(given, "port") or "9092").split(",")]
    if len(said) > 1 and len(said) != brokers:
        if "brokers" in given.get("given", ()):
            raise OptionError(f"--port names {len(said)} ports for --brokers {brokers}")
        brokers = len(said)
    protocols = endpoints.protocol_map(settings.get("listener.security.protocol.map", ""))
    own = endpoints.from_settings(settings, protocols)
    if not own:
        host = last(given, "host") or "127.0.0.1"
        protocol = endpoints.protocol_of("PLAINTEXT", protocols)
        own = (Endpoint("PLAINTEXT", protocol, host, said[0]),)
    advertise = last(given, "advertise")
    told = (None, None) if advertise is None else endpoints.address(advertise, "--advertise", port_needed=False)
    first = [main_endpoint(own[0], said, index, told) for index in range(brokers)]
    further = (*own[1:], *(endpoints.listener(text, protocols) for text in given.get("listener", ())))
    return endpoints.per_broker(first, further)


def main_endpoint(main: Endpoint, said: Sequence[int], index: int, told: tuple[str | None, int | None]) -> Endpoint:
    """Broker `index`'s first listener: its port from the list of `--port` where that lists this listener's port."""
    listed = len(said) > 1 and main.port == said[0]
    port = said[index] if listed else main.of_broker(index).port
    host = told[0] if told[0] is not None else main.advertised_host
    advertised = told[1] if told[0] is not None else main.advertised_port
    if advertised is not None:
        advertised += index
    return Endpoint(main.name, main.protocol, main.host, port, host, advertised)


def from_sets(words: Iterable[str]) -> dict[str, str]:
    """The settings of `--set`: each is one of Kafka's (or `understudy.*`) with a value that Kafka accepts."""
    found = dict(pair(text, "--set", "KEY=VALUE") for text in words)
    for name, value in found.items():
        problem = static_problem(name, value)
        if problem is not None:
            raise OptionError(f"--set {name}={value}: {problem}")
    return found


def check_together(settings: Mapping[str, str], topics: Iterable[TopicOption]) -> None:
    """Settings that exclude each other are refused as a real broker refuses to start, topics' configs likewise."""
    where = "the settings do not fit"
    try:
        made = BrokerSettings(1, settings)
        for topic in topics:
            where = f"--topic {topic.name}"
            validate(topic.configs, made)
    except KafkaError as error:
        raise OptionError(f"{where}: {error.message}") from error


def check_security(opened: Iterable[Endpoint], settings: Mapping[str, str]) -> None:
    """A listener is refused whose SASL mechanisms are not there, or know nobody, or that has no certificate for TLS."""
    made = BrokerSettings(1, settings)
    for endpoint in opened:
        found = mechanisms.problem(made, endpoint.name) if endpoint.has_sasl else None
        if found is not None:
            raise OptionError(found)
        try:
            context_of(made, endpoint)
        except TlsError as error:
            raise OptionError(str(error)) from error


def from_properties(lines: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """The settings of a server.properties, and the names of those that have no meaning here."""
    found: dict[str, str] = {}
    ignored: list[str] = []
    for line in lines:
        name, value = pair(line, "server.properties", "KEY=VALUE")
        if name == "controller.listener.names":
            found[name] = value
        elif PLACES.fullmatch(name) or not is_setting(name):
            ignored.append(name)
        else:
            problem = static_problem(name, value)
            if problem is not None:
                raise OptionError(f"server.properties {name}={value}: {problem}")
            found[name] = value
    return found, ignored
