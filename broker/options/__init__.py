"""Parses and validates the options of `understudy serve` into one frozen object.

`parse` takes the values of each option, lowest precedence first, and raises `OptionError`, whose message is the one
sentence that the user reads before exit code 2.
"""

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from broker.coordination.metadata.features import METADATA_VERSION, SCRAM_LEVEL
from broker.options import broker_ids, copies
from broker.options.broker_ids import BrokerIdError, ids_of_options
from broker.options.config_providers import resolved
from broker.options.listeners import count_of, listeners
from broker.options.released import setting_tables
from broker.options.settings import (
    check_listeners,
    check_secrets,
    check_security,
    check_together,
    for_tests,
    from_properties,
    from_sets,
)
from broker.options.topics import TopicOption, topic_option
from broker.options.users import scram_user
from broker.options.values import Arguments, OptionError, integer, last, one_of, pair, path
from broker.settings import endpoints
from broker.settings.endpoints import Endpoint, EndpointError
from broker.settings.names import is_setting
from broker.settings.of_release import TODAY, Tables
from broker.settings.releases import DEFAULT, NAMES
from broker.settings.releases import release as release_named
from control_api.spelling import hint
from protocol.deferred import dataclass
from protocol.log_records.metadata_security import UserScramCredentialRecord

__all__ = [
    "LOG_LEVELS",
    "Arguments",
    "OptionError",
    "ServeOptions",
    "TopicOption",
    "check_secrets",
    "check_security",
    "control",
    "from_sets",
    "integer",
    "last",
    "one_of",
    "parse",
    "path",
    "topic_option",
]

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


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """All options of `understudy serve`. `settings` holds only those that were given, by Kafka's names."""

    broker_ids: tuple[int, ...] = (1,)
    ids_given: bool = False  # if false, the ids in an existing data directory take precedence
    racks: tuple[str, ...] = ()  # assigned to the brokers in turn, in the order of their ids
    # For each broker, in the order of the ids, its listeners; the first one is in bootstrap.servers.
    listeners: tuple[tuple[Endpoint, ...], ...] = ((Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092),),)
    controller_ids: tuple[int, ...] = ()  # controllers that are nodes of their own; none: the first broker is one
    # The listeners for clients with `bootstrap.controllers`: of each controller in `controller_ids`, else of the first
    # broker's, which may have none.
    controllers: tuple[Endpoint, ...] = ()
    topics: tuple[TopicOption, ...] = ()
    users: tuple[UserScramCredentialRecord, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    for_tests: bool = False
    features: Mapping[str, int] = field(default_factory=dict)
    as_version: str | None = None
    data_dirs: tuple[Path, ...] = ()  # the log directories of each broker; none: in memory
    # Of `read_only`: node id -> its log directories, as they lie below `data_dirs`; empty: nothing is there.
    copied_dirs: Mapping[int, tuple[Path, ...]] = field(default_factory=dict)
    read_only: bool = False
    allow_reset: bool = False  # a reset may remove a data directory that Understudy did not create
    lazy_coordinators: bool = False
    control_host: str = "127.0.0.1"
    control_port: int | None = 9099  # ours, beside Kafka's 9092; None: no control plane; 0: a free port
    control_token: str | None = None
    ready_file: Path | None = None
    journal_dir: Path | None = None
    otlp_endpoint: str | None = None  # the OpenTelemetry collector that gets a span of each request
    scenario: Path | None = None  # its steps are run at the start
    seed: int | None = None
    log_format: str = "console"
    log_level: str = "info"
    lifeline: bool = False
    notes: tuple[str, ...] = ()  # logged once: settings that are accepted but have no effect here

    @property
    def brokers(self) -> int:
        """The number of brokers at the start."""
        return len(self.broker_ids)

    @property
    def has_several_nodes(self) -> bool:
        """Whether each node has a folder of its own in a data directory."""
        return len(self.broker_ids) > 1 or bool(self.controller_ids)

    def option_of_port(self, port: int) -> str:
        """Return the option that gave this port, for the message that the port is taken."""
        if port == self.control_port:
            return "--control-port"
        if any(endpoint.port == port for endpoint in self.controllers):
            return "--set listeners" if "listeners" in self.settings else "--controller-port"
        if any(endpoints[0].port == port for endpoints in self.listeners):
            return "--set listeners" if "listeners" in self.settings else "--port"
        return "--listener"

    def option_of_host(self, host: str) -> str:
        """Return the option that gave this address, for the message that this machine does not have it."""
        if any(endpoints[0].host == host for endpoints in self.listeners):
            return "--set listeners" if "listeners" in self.settings else "--host"
        return "--control-host" if host == self.control_host else "--listener"


def parse(arguments: Arguments) -> ServeOptions:
    """Parse and validate the options; raises OptionError for the first problem."""
    as_version = release(last(arguments, "as-version"))
    tables = setting_tables(as_version or DEFAULT)
    settings, ignored, notes = settings_of(arguments, tables)
    data_dirs = data_dirs_of(last(arguments, "data-dir"))
    for name in ("read-only", "allow-reset"):
        if name in arguments and not data_dirs:
            raise OptionError(f"--{name} needs --data-dir DIR")
    copied_dirs = copies.log_directories(data_dirs) if "read-only" in arguments else {}
    try:
        ids, ids_given = ids_of(arguments, settings, copied_dirs)
    except BrokerIdError as error:
        raise OptionError(str(error)) from error
    settings = {name: value for name, value in settings.items() if name not in {"node.id", "broker.id"}}
    topics = {topic.name: topic for topic in map(topic_option, arguments.get("topic", ()))}
    check_together({**ignored, **settings}, topics.values(), tables)
    try:
        opened = listeners(arguments, settings, len(ids))
        controller_ids = broker_ids.controller_ids(last(arguments, "controllers") or "1", ids)
        port = last(arguments, "controller-port") or ("0" if controller_ids else None)
        controllers = endpoints.controllers(settings, port, opened, max(len(controller_ids), 1))
    except (EndpointError, BrokerIdError) as error:
        raise OptionError(str(error)) from error
    check_listeners(settings, opened[0], advertise="advertise" in arguments)
    check_security((*opened[0], *controllers[:1]), settings)
    control_host, control_port, control_token = control(arguments)
    seed = last(arguments, "seed")
    features = features_of(as_version, arguments.get("feature", ()))
    return ServeOptions(
        broker_ids=ids,
        ids_given=ids_given,
        racks=racks_of(last(arguments, "rack"), len(ids)),
        listeners=opened,
        controller_ids=controller_ids,
        controllers=controllers,
        topics=tuple(topics.values()),
        users=users_of(arguments, features, as_version),
        settings=settings,
        for_tests="for-tests" in arguments,
        features=features,
        as_version=as_version,
        data_dirs=data_dirs,
        copied_dirs=copied_dirs,
        read_only="read-only" in arguments,
        allow_reset="allow-reset" in arguments,
        lazy_coordinators="lazy-coordinators" in arguments,
        control_host=control_host,
        control_port=control_port,
        control_token=control_token,
        ready_file=path(arguments, "ready-file"),
        journal_dir=path(arguments, "journal"),
        otlp_endpoint=last(arguments, "otlp-endpoint"),
        scenario=path(arguments, "scenario"),
        seed=None if seed is None else integer(seed, "--seed", -(2**63), 2**64 - 1),  # 64 bits, signed or not
        log_format=one_of(last(arguments, "log-format") or "console", "--log-format", ("console", "json")),
        log_level=one_of(last(arguments, "log-level") or "info", "--log-level", LOG_LEVELS),
        lifeline="lifeline" in arguments,
        notes=notes,
    )


def ids_of(
    arguments: Arguments, settings: Mapping[str, str], copied_dirs: Mapping[int, Sequence[Path]]
) -> tuple[tuple[int, ...], bool]:
    """Return the brokers' ids, and whether a data directory cannot change them; of copies, those that they name.

    Raises:
        BrokerIdError: as `ids_of_options`.
    """
    count = count_of(arguments)
    ids, are_given = ids_of_options(count, last(arguments, "broker-id"), settings)
    if are_given or not copied_dirs:
        return ids, are_given
    controllers = broker_ids.controller_ids(last(arguments, "controllers") or "1", ())
    present = tuple(each for each in copies.broker_ids(copied_dirs) if each not in controllers)
    is_counted = "brokers" in arguments.get("given", ()) or "," in (last(arguments, "port") or "")
    return (ids, False) if is_counted and len(ids) != len(present) else (present, True)


def settings_of(arguments: Arguments, tables: Tables) -> tuple[dict[str, str], dict[str, str], tuple[str, ...]]:
    """Return the settings of `--config`, `--set` and `--for-tests`, those ignored but checked, and notes on both."""
    if {"strict-settings", "no-strict-settings"} <= arguments.keys():
        raise OptionError("--strict-settings and --no-strict-settings cannot be combined")
    check_secrets(arguments.get("typed", ()))
    lines, typed = resolved(arguments.get("properties", ()), arguments.get("set", ()))
    from_file, ignored = from_properties(lines, strict="strict-settings" in arguments, tables=tables)
    sets, unknown = from_sets(typed, strict="no-strict-settings" not in arguments, tables=tables)
    settings = {**from_file, **sets}
    settings.update(for_tests(settings) if "for-tests" in arguments else {})
    notes = [f"settings of server.properties that are ignored: {', '.join(ignored)}"] if ignored else []
    notes += [f"unknown settings of --set that are ignored: {', '.join(unknown)}"] if unknown else []
    checked = {name: value for name, value in ignored.items() if tables is TODAY and is_setting(name)}
    return settings, checked, tuple(notes)


def feature(text: str) -> tuple[str, int]:
    """Parse `NAME=LEVEL`."""
    name, level = pair(text, "--feature", "NAME=LEVEL")
    if name not in FEATURES:
        raise OptionError(f"--feature {name} does not exist{hint(name, FEATURES)}")
    # A level is an INT16 in the protocol.
    return name, integer(level, f"--feature {name}", 0, 32767)


def features_of(as_version: str | None, texts: Iterable[str]) -> dict[str, int]:
    """Return the levels of `--feature`; the emulated release must support each of them."""
    levels = dict(map(feature, texts))
    supported = release_named(as_version or DEFAULT).supported
    for name, level in levels.items():
        low, high = supported.get(name, (0, 0))
        if name in supported and low <= level <= high:
            continue
        if as_version in (None, DEFAULT):
            raise OptionError(f"--feature {name}={level} is not a level of Kafka {DEFAULT}, which has {low} to {high}")
        has = f"has it at {low} to {high}" if name in supported else "has no such feature"
        raise OptionError(f"--feature {name}={level} is not possible with --as-version {as_version}, which {has}")
    return levels


def racks_of(text: str | None, brokers: int) -> tuple[str, ...]:
    """Parse the racks of `--rack`, which are assigned to the brokers in turn."""
    racks = () if text is None else tuple(part.strip() for part in text.split(","))
    if not all(racks):
        raise OptionError(f"--rack needs the names of racks, such as a,b,c, not {text!r}")
    if len(racks) > brokers:
        raise OptionError(f"--rack names {len(racks)} racks for --brokers {brokers}")
    return racks


def data_dirs_of(text: str | None) -> tuple[Path, ...]:
    """Parse the directories of `--data-dir`, separated by commas as in Kafka's log.dirs.

    A directory whose name has a comma is served if it exists.
    """
    paths = [] if text is None else [text] if Path(text).is_dir() else [part.strip() for part in text.split(",")]
    if not all(paths):
        raise OptionError(f"--data-dir needs a directory, or several such as /disk1,/disk2, not {text!r}")
    if len({Path(each).absolute() for each in paths}) < len(paths):
        raise OptionError(f"--data-dir names a directory twice: {text}")
    return tuple(map(Path, paths))


def users_of(
    arguments: Arguments, features: Mapping[str, int], as_version: str | None
) -> tuple[UserScramCredentialRecord, ...]:
    """Return the SCRAM users of `--add-scram`; of two credentials for one user and mechanism the last is used."""
    users = {(user.name, user.mechanism): user for user in map(scram_user, arguments.get("add-scram", ()))}
    levels = {**release_named(as_version or DEFAULT).levels, **features}
    level = levels.get(METADATA_VERSION, SCRAM_LEVEL)
    if users and level < SCRAM_LEVEL:
        raise OptionError(f"--add-scram needs metadata.version {SCRAM_LEVEL} or later, and it is {level}")
    return tuple(users.values())


def release(text: str | None) -> str | None:
    """Parse a Kafka release as major.minor; a patch number is accepted and ignored."""
    if text is None:
        return None
    short = ".".join(text.split(".")[:2])
    if short not in NAMES:
        releases = f"{NAMES[0]} to {NAMES[-1]}"
        raise OptionError(f"--as-version {text} cannot be emulated: there are {releases}{hint(short, NAMES)}")
    return short


def control(arguments: Arguments) -> tuple[str, int | None, str | None]:
    """Return host, port (None: off) and token of the control plane; a host other than loopback requires a token."""
    host, token = last(arguments, "control-host") or "127.0.0.1", last(arguments, "control-token")
    text = last(arguments, "control-port") or "9099"
    if text == "off":
        return host, None, token
    port = integer(text, "--control-port", 0, 65535)
    if token and not (token.isascii() and token.isprintable()):
        raise OptionError("--control-token has a character that no client can send; use letters and digits")
    if not is_loopback(host) and not token:
        raise OptionError(f"--control-host {host} can be reached from other machines and needs --control-token TOKEN")
    return host, port, token


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
