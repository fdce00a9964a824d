"""`understudy serve`: one table of options, read from the command line, the environment and a file.

Every option `--some-name` is also `UNDERSTUDY_SOME_NAME` in the environment and `some-name` in a TOML file. The command
line overrides the environment, and the environment the file; values of repeatable options are joined, and a later one
replaces an earlier one of the same name. `broker.options` parses the values.
"""

import gc
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from understudy import server_path
from understudy.argparser import Parser, refuse

PROGRAM = "understudy serve"


@dataclass(frozen=True, slots=True)
class Option:
    """One option of `understudy serve`: its name on the command line, the placeholder of its value, and its help."""

    name: str
    metavar: str | None  # None: a flag
    help: str
    default: str | None = None
    repeatable: bool = False

    @property
    def variable(self) -> str:
        """Return the equivalent environment variable."""
        return "UNDERSTUDY_" + self.name.replace("-", "_").upper()


OPTIONS = (
    Option("host", "ADDRESS", "address to listen on", "127.0.0.1"),
    Option(
        "port",
        "PORT",
        "port of the first broker, the others follow; 0: free ports; 19092,19093,...: one per broker",
        "9092",
    ),
    Option("brokers", "N|ID,ID,...", "number of brokers, all in this process, or their ids, such as 0,1,2", "1"),
    Option(
        "broker-id", "ID", "id of the first broker, the others follow; by default 1, or the id in the data directory"
    ),
    Option("rack", "RACK,...", "racks, such as a,b,c, which are assigned to the brokers in turn"),
    Option("advertise", "HOST[:PORT]", "address that Metadata gives clients; each further broker gets the next port"),
    Option(
        "listener",
        "NAME://HOST:PORT[,advertised=HOST:PORT][,protocol=P]",
        "additional listener, for example one for the host and one for a container network",
        repeatable=True,
    ),
    Option(
        "controller-port",
        "PORT",
        "port of the controller, for clients with bootstrap.controllers; 0: a free port; by default it has no listener",
    ),
    Option(
        "controllers",
        "N|ID,ID,...",
        "number of controllers, or their ids; from 2 on they are nodes of their own, with ids from 3000; with 1 the "
        "first broker is the controller",
        "1",
    ),
    Option("topic", "NAME[:PARTITIONS[:KEY=VALUE,...]]", "topic to create at startup", repeatable=True),
    Option(
        "add-scram",
        "MECHANISM=[name=USER,password=PASSWORD]",
        "initial SCRAM user, as kafka-storage format --add-scram; other users of the machine can read it here",
        repeatable=True,
    ),
    Option("set", "KEY=VALUE", "Kafka broker setting, by its Kafka name", repeatable=True),
    Option("feature", "NAME=LEVEL", "finalized feature level, such as transaction.version=1", repeatable=True),
    Option("as-version", "X.Y", "behave like this Kafka release, such as 3.9"),
    Option(
        "for-tests",
        None,
        "use shorter defaults than Kafka's for settings that make clients pause; the start lists them",
    ),
    Option(
        "data-dir",
        "DIR[,DIR...]",
        "directory for all data, in Kafka's own file formats, or several, as in log.dirs; by default data is in memory",
    ),
    Option("read-only", None, "serve the data directory without modifying it"),
    Option("allow-reset", None, "allow a reset to delete a data directory that Understudy did not create"),
    Option(
        "lazy-coordinators",
        None,
        "answer the first FindCoordinator with COORDINATOR_NOT_AVAILABLE, like Kafka, and again after a reset",
    ),
    Option(
        "strict-settings",
        None,
        "reject unknown settings of a server.properties too; by default they are listed in the log",
    ),
    Option("no-strict-settings", None, "ignore unknown settings of --set, as Kafka does, and list them in the log"),
    Option("control-port", "PORT", "port of the HTTP control plane; 0: a free port; off: no control plane", "9099"),
    Option("control-host", "ADDRESS", "address of the HTTP control plane", "127.0.0.1"),
    Option(
        "control-token",
        "TOKEN",
        "bearer token that the control plane requires; mandatory unless it listens on loopback",
    ),
    Option(
        "schema-registry",
        "[HOST:]PORT",
        "port of a schema registry with the REST API of Confluent's; 0: a free port; by default there is none",
    ),
    Option(
        "schema-registry-url",
        "URL",
        "schema registry whose schemas decode messages in the console and `records read --decode` (default: ours)",
    ),
    Option(
        "key-schema",
        "[TOPIC=]FILE",
        "schema, *.avsc, *.proto[#package.Message] or *.json, that decodes keys there",
        repeatable=True,
    ),
    Option("value-schema", "[TOPIC=]FILE", "the same for values", repeatable=True),
    Option("ready-file", "FILE", "JSON file that is written once all listeners accept connections"),
    Option("config", "FILE", "*.toml: these options, by name; *.properties: the server.properties of a Kafka broker"),
    Option("journal", "DIR", "directory for the journal of all requests, in rotating files"),
    Option(
        "otlp-endpoint",
        "URL",
        "OpenTelemetry collector that gets a span of each request, such as http://127.0.0.1:4318; by default none",
    ),
    Option("scenario", "FILE", "scenario to run at the start: a file that `ctl scenario record` has written"),
    Option("seed", "N", "seed of all random choices (ids, leaders, jitter)"),
    Option("log-format", "console|json", "format of the log on stderr", "console"),
    Option("log-level", "LEVEL", "log level: debug, info, warning, error or critical", "info"),
    Option("lifeline", None, "stop when standard input closes, so that the server never outlives its parent"),
)

# Settings one by one, named as in Kafka's own container image: UNDERSTUDY_SET_LOG_RETENTION_MS=1000.
SETTING_PREFIX = "UNDERSTUDY_SET_"


_FILES = frozenset({"config", "data-dir", "journal", "key-schema", "ready-file", "scenario", "value-schema"})

_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
"""Values for the variable of a flag, in any case."""

_WITH_SCHEMAS = frozenset({"schema-registry", "schema-registry-url", "key-schema", "value-schema"})
"""Options that another package than the broker handles."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command that serves: its name, its one-line description, its options."""

    program: str
    description: str
    options: tuple[Option, ...]


SERVE = Command(PROGRAM, "Serve a Kafka cluster of N brokers from this one process.", OPTIONS)


def parser(command: Command = SERVE) -> Parser:
    """Return the parser of the command line, built from the table."""
    parser = Parser(
        prog=command.program,
        description=command.description,
        epilog="Each --some-name can also be set as UNDERSTUDY_SOME_NAME; repeatable ones take one value per line.",
    )
    for option in command.options:
        text = option.help if option.default is None else f"{option.help} (default {option.default})"
        shown = text.replace("%", "%%")
        dest = option.name
        if option.metavar is None:
            parser.add_argument(f"--{option.name}", dest=dest, action="store_const", const="true", help=shown)
        elif option.repeatable:
            parser.add_argument(f"--{option.name}", dest=dest, action="append", metavar=option.metavar, help=shown)
        else:
            parser.add_argument(f"--{option.name}", dest=dest, metavar=option.metavar, help=shown)
    return parser


def from_command_line(argv: Sequence[str], command: Command = SERVE) -> dict[str, list[str]]:
    """Return option name -> values as given; exits with 2 and one sentence on an unknown option."""
    options = vars(parser(command).parse_args(argv))
    return {name: value if isinstance(value, list) else [value] for name, value in options.items() if value is not None}


def from_environment(environ: Mapping[str, str], command: Command = SERVE) -> dict[str, list[str]]:
    """Return option name -> values of the UNDERSTUDY_* variables; an empty variable counts as not given.

    Exits with 2 and one sentence on a flag that is neither true nor false: --read-only must not be left out silently.
    """
    options: dict[str, list[str]] = {}
    for option in command.options:
        value = environ.get(option.variable, "").strip()
        if option.repeatable:
            lines = [line.strip() for line in value.splitlines()]
            options[option.name] = [line for line in lines if line]
        elif option.metavar is None:
            if value and value.lower() not in {*_YES, *_NO}:
                refuse(command.program, f"{option.variable} is true or false, not {value!r}")
            options[option.name] = [str(value.lower() in _YES).lower()] if value else []
        else:
            options[option.name] = [value] if value else []
    for variable in sorted(environ):
        if variable.startswith(SETTING_PREFIX):
            options.setdefault("set", []).append(f"{setting_name(variable[len(SETTING_PREFIX) :])}={environ[variable]}")
    return {name: values for name, values in options.items() if values}


def setting_name(rest: str) -> str:
    """Convert LOG_RETENTION_MS to log.retention.ms; as in Kafka's image, `__` means `_` and `___` means `-`."""
    name = rest.lower().replace("___", "-").replace("__", "\0")
    return name.replace("_", ".").replace("\0", "_")


def variable_of(setting: str) -> str | None:
    """Return the environment variable of a setting, the inverse of :func:`setting_name`; None if there is none."""
    rest = setting.replace("_", "__").replace("-", "___").replace(".", "_").upper()
    return SETTING_PREFIX + rest if setting_name(rest) == setting else None


def gather(argv: Sequence[str], environ: Mapping[str, str], command: Command = SERVE) -> dict[str, list[str]]:
    """Merge defaults, file, environment and command line, in rising precedence; scalars have one value.

    The key `properties` has the lines of a server.properties, which are checked less strictly than `set`; `typed` has
    the names of the settings on the command line itself.
    """
    command_line, environment = from_command_line(argv, command), from_environment(environ, command)
    file: dict[str, list[str]] = {}
    for path in (command_line.get("config") or environment.get("config") or [])[-1:]:
        from understudy.config_file import ConfigFileError, read

        try:
            file = read(path, {option.name: option for option in command.options})
        except ConfigFileError as error:
            refuse(command.program, str(error))
    options = {option.name: [option.default] for option in command.options if option.default is not None}
    repeatable = {option.name for option in command.options if option.repeatable}
    for layer in (file, environment, command_line):
        for name, values in layer.items():
            options[name] = options.get(name, []) + values if name in repeatable else values
    off = {
        option.name for option in command.options if option.metavar is None and options.get(option.name) == ["false"]
    }
    options = {name: values for name, values in options.items() if name not in off}
    _check_texts(options, command.program)
    options["given"] = sorted({*file, *environment, *command_line} - off)
    options["typed"] = [each.partition("=")[0] for each in command_line.get("set", ())]
    return options


def _check_texts(options: Mapping[str, Sequence[str]], program: str) -> None:
    """Reject values that are not text: a zero byte, or bytes that are not UTF-8, which only file names may contain."""
    for name, values in options.items():
        for value in values:
            if "\0" in value or (name not in _FILES and any("\ud800" <= each <= "\udfff" for each in value)):
                option = "config" if name == "properties" else name  # the lines of a server.properties
                refuse(program, f"--{option} has a value that is not UTF-8 text")


def main(argv: Sequence[str]) -> int:
    """Run the server in this process until it receives a signal to stop."""
    options = gather(argv, os.environ)
    return run(options, "registry.cli" if _WITH_SCHEMAS.intersection(options) else "broker.start.cli")


def run(options: Mapping[str, Sequence[str]], module: str) -> int:
    """Run the server of the module whose `main` takes these options."""
    if "lifeline" in options:
        from understudy import lifeline

        lifeline.hold()
    server_path.enter()
    # structlog imports rich where it is installed, which slows the start down.
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
    gc.disable()  # nothing that an import makes is garbage
    try:
        server = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in server_path.SERVER_PACKAGES:
            raise
        refuse(
            PROGRAM,
            "this build has no schema registry and cannot decode messages; the wheel, installed in a Python, has both",
        )
    gc.freeze()
    gc.enable()
    code: int = server.main(options)
    return code
