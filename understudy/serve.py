"""`understudy serve`: one table of options, gathered from the command line, the environment and a file.

Every option `--some-name` has the twin `UNDERSTUDY_SOME_NAME` in the environment and `some-name` in a TOML file. The
command line wins over the environment, the environment over the file; of options that may be repeated, the values of
all three are joined and the later one of the same name wins. What they mean is decided in `broker.options`.
"""

import importlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from understudy import rooms
from understudy.parser import Parser, refuse

PROGRAM = "understudy serve"


@dataclass(frozen=True, slots=True)
class Option:
    """One option of `understudy serve`: its name on the command line, how its value is called, and what it is for."""

    name: str
    metavar: str | None  # None: a flag
    help: str
    default: str | None = None
    repeatable: bool = False
    hidden: bool = False

    @property
    def variable(self) -> str:
        """The environment variable that says the same."""
        return "UNDERSTUDY_" + self.name.replace("-", "_").upper()


OPTIONS = (
    Option("host", "ADDRESS", "address to listen on", "127.0.0.1"),
    Option("port", "PORT", "first broker's port, the others follow; 0: free ports; 19092,19093,...: one each", "9092"),
    Option("brokers", "N", "how many brokers, ids 1..N, all in this process", "1"),
    Option("advertise", "HOST[:PORT]", "what Metadata tells clients; with several brokers PORT counts up"),
    Option(
        "listener",
        "NAME://HOST:PORT[,advertised=HOST:PORT][,protocol=P]",
        "a further listener, for instance one for the host and one for a container network",
        repeatable=True,
    ),
    Option("topic", "NAME[:PARTITIONS[:KEY=VALUE,...]]", "create this topic at start", repeatable=True),
    Option("set", "KEY=VALUE", "any Kafka broker setting by Kafka's own name", repeatable=True),
    Option("feature", "NAME=LEVEL", "finalized level of a feature, such as transaction.version=1", repeatable=True),
    Option("as-version", "X.Y", "behave like that Kafka release, such as 3.9"),
    Option("data-dir", "DIR", "keep everything there in Kafka's own file formats; without it: memory only"),
    Option("read-only", None, "serve the data directory without changing a byte of it"),
    Option("control-port", "PORT", "port of the HTTP control plane; 0: a free port; off: none", "9099"),
    Option("control-host", "ADDRESS", "address of the HTTP control plane", "127.0.0.1"),
    Option("control-token", "TOKEN", "bearer token that the control plane asks for; a must on other than loopback"),
    Option("ready-file", "FILE", "written, as JSON, once every listener accepts"),
    Option("config", "FILE", "*.toml: these options by these names; *.properties: a real broker's server.properties"),
    Option("journal", "DIR", "write the journal of all requests to rotating files there"),
    Option("seed", "N", "seed of all randomness (ids, leaders, jitter)"),
    Option("log-format", "console|json", "how the log is written to stderr", "console"),
    Option("log-level", "LEVEL", "debug, info, warning, error or critical", "info"),
    Option("lifeline", None, "stop when standard input closes (so that no server outlives its test run)", hidden=True),
)

# Settings one by one, named as in Kafka's own container image: UNDERSTUDY_SET_LOG_RETENTION_MS=1000.
SETTING_PREFIX = "UNDERSTUDY_SET_"


def parser() -> Parser:
    """The parser of the command line, from the table."""
    import argparse

    made = Parser(
        prog=PROGRAM,
        description="Serve a Kafka cluster of N brokers from this one process.",
        epilog="Each --some-name can be given as UNDERSTUDY_SOME_NAME too, repeated ones with one value a line.",
    )
    for option in OPTIONS:
        text = option.help if option.default is None else f"{option.help} (default {option.default})"
        shown = argparse.SUPPRESS if option.hidden else text.replace("%", "%%")
        dest = option.name
        if option.metavar is None:
            made.add_argument(f"--{option.name}", dest=dest, action="store_const", const="true", help=shown)
        elif option.repeatable:
            made.add_argument(f"--{option.name}", dest=dest, action="append", metavar=option.metavar, help=shown)
        else:
            made.add_argument(f"--{option.name}", dest=dest, metavar=option.metavar, help=shown)
    return made


def from_command_line(argv: Sequence[str]) -> dict[str, list[str]]:
    """Option name -> values as given; exits with 2 and one sentence on an option that does not exist."""
    found = vars(parser().parse_args(argv))
    return {name: value if isinstance(value, list) else [value] for name, value in found.items() if value is not None}


def from_environment(environ: Mapping[str, str]) -> dict[str, list[str]]:
    """Option name -> values of the UNDERSTUDY_* variables; an empty variable counts as not given."""
    given: dict[str, list[str]] = {}
    for option in OPTIONS:
        value = environ.get(option.variable, "").strip()
        if option.repeatable:
            lines = [line.strip() for line in value.splitlines()]
            given[option.name] = [line for line in lines if line]
        elif option.metavar is None:
            given[option.name] = ["true"] if value.lower() in {"1", "true", "yes", "on"} else []
        else:
            given[option.name] = [value] if value else []
    for variable in sorted(environ):
        if variable.startswith(SETTING_PREFIX):
            given["set"].append(f"{setting_name(variable[len(SETTING_PREFIX) :])}={environ[variable]}")
    return {name: values for name, values in given.items() if values}


def setting_name(rest: str) -> str:
    """LOG_RETENTION_MS -> log.retention.ms; as in Kafka's image, `__` stands for `_` and `___` for `-`."""
    word = rest.lower().replace("___", "-").replace("__", "\0")
    return word.replace("_", ".").replace("\0", "_")


def gather(argv: Sequence[str], environ: Mapping[str, str]) -> dict[str, list[str]]:
    """All that was said about the server, the strongest voice last; scalars hold one value, defaults included.

    The key `properties` holds the lines of a server.properties, which are believed with less rigour than `set`.
    """
    command_line, environment = from_command_line(argv), from_environment(environ)
    file: dict[str, list[str]] = {}
    for path in (command_line.get("config") or environment.get("config") or [])[-1:]:
        from understudy.config_file import ConfigFileError, read

        try:
            file = read(path, {option.name: option for option in OPTIONS})
        except ConfigFileError as error:
            refuse(PROGRAM, str(error))
    given = {option.name: [option.default] for option in OPTIONS if option.default is not None}
    repeatable = {option.name for option in OPTIONS if option.repeatable}
    for layer in (file, environment, command_line):
        for name, values in layer.items():
            given[name] = given.get(name, []) + values if name in repeatable else values
    given["given"] = sorted({*file, *environment, *command_line})
    return given


def main(argv: Sequence[str]) -> int:
    """Become the server: this process enters the rooms and stays until it is told to stop."""
    given = gather(argv, os.environ)
    if "lifeline" in given:
        from understudy import lifeline

        lifeline.hold()
    rooms.enter()
    code: int = importlib.import_module("broker.cli").main(given)
    return code
