"""Starts a server in its own process, waits until it is ready, and stops it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from control_api.plugins import references
from understudy.errors import StartError
from understudy.serve import variable_of

START_PATIENCE_S = 120.0
"""Time limit for the start of a server, which takes half a second: a busy machine is waited for."""
STOP_PATIENCE_S = 5.0  # arbitrary: a stop takes tenths of a second
TOKEN = "--control-token"  # noqa: S105 - the option's name


@dataclass(frozen=True, slots=True)
class Ready:
    """Contents of the ready file: addresses, cluster id and process id of the server."""

    bootstrap_servers: tuple[str, ...]
    control_url: str | None
    cluster_id: str
    pid: int
    brokers: tuple[Mapping[str, Any], ...] = ()
    schema_registry_url: str | None = None


def load() -> str:
    """Return how busy the machine is, for an error about a process that is late: `, at load average 31 on 2 cores`."""
    if not hasattr(os, "getloadavg"):
        return ""
    return f", at load average {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores"


def command_line(
    *,
    topics: Iterable[str] | Mapping[str, int] = (),
    settings: Mapping[str, object] | None = None,
    features: Mapping[str, int] | None = None,
    listeners: Iterable[str] = (),
    add_scram: Iterable[str] = (),
    key_schema: Iterable[str] | os.PathLike[str] = (),
    value_schema: Iterable[str] | os.PathLike[str] = (),
    **others: object,
) -> list[str]:
    """Convert keyword arguments to options of `understudy serve`: brokers=3 is --brokers 3, None is left out."""
    topics = (topics,) if isinstance(topics, str) else topics
    repeated: list[Iterable[object]] = [
        (each,) if isinstance(each, (str, os.PathLike)) else each
        for each in (listeners, add_scram, key_schema, value_schema)
    ]
    arguments: list[str] = []
    for name, value in others.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            arguments.append(option)
        elif value is not None and value is not False:
            several = isinstance(value, Iterable) and not isinstance(value, (str, bytes))
            arguments += valued(option, listed(name, cast("Iterable[object]", value)) if several else str(value))
    seeds = [f"{name}:{count}" for name, count in topics.items()] if isinstance(topics, Mapping) else topics
    for topic in seeds:
        arguments += valued("--topic", topic)
    for name, setting in (settings or {}).items():
        arguments += ["--set", f"{name}={setting_text(setting)}"]
    for name, level in (features or {}).items():
        arguments += ["--feature", f"{name}={level}"]
    options = ("--listener", "--add-scram", "--key-schema", "--value-schema")
    for option, values in zip(options, repeated, strict=True):
        for item in values:
            arguments += valued(option, str(item))
    return arguments


def setting_text(value: object) -> str:
    """Return the value of a Kafka setting as text: true and false as in Java."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def valued(option: str, value: str) -> list[str]:
    """Return an option and its value, joined, because a value that begins with a dash would be parsed as an option."""
    return [f"{option}={value}"] if value.startswith("-") else [option, value]


def listed(name: str, values: Iterable[object]) -> str:
    """Join the values of an option; a single broker id keeps a comma, since a plain number is a count."""
    text = ",".join(map(str, values))
    return f"{text}," if name in {"brokers", "controllers"} and "," not in text else text


def environment() -> dict[str, str]:
    """Return this process's environment without UNDERSTUDY_*, so that a test's cluster is the same on every machine."""
    return {name: value for name, value in os.environ.items() if not name.startswith("UNDERSTUDY_")}


def off_the_command_line(options: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Move `--set`, `--add-scram` and the token to the environment: every user of a machine can read command lines."""
    left: list[str] = []
    environ = environment()
    users: list[str] = []
    rest = iter(options)
    for option in rest:
        if option == "--add-scram":
            users.append(next(rest, ""))
            environ["UNDERSTUDY_ADD_SCRAM"] = "\n".join(users)
            continue
        if option.partition("=")[0] == TOKEN:
            token = option.partition("=")[2] or next(rest, "")
            if token == token.strip():
                environ["UNDERSTUDY_CONTROL_TOKEN"] = token
            else:  # surrounding blanks of a variable are not part of its value
                left.append(f"{TOKEN}={token}")
            continue
        value = next(rest, None) if option == "--set" else None
        name, equals, text = (value or "").partition("=")
        variable = variable_of(name) if equals and text else None
        if references({name: text}):  # a module beside the tests, or of the project, is found as here
            environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        if variable is not None:
            environ[variable] = text
        else:
            left += [option] if value is None else [option, value]
    return left, environ


def command() -> list[str]:
    """Return the command `understudy` of this installation: a fresh interpreter, or the self-contained binary."""
    if getattr(sys, "frozen", False):
        return [sys.executable]
    return [sys.executable, "-P", str(Path(__file__).with_name("__main__.py"))]


def without_token(options: Sequence[str]) -> list[str]:
    """Return the options of a command line without `--control-token`, for display."""
    tokens = {at + more for at, option in enumerate(options) if option == TOKEN for more in (0, 1)}
    return [option for at, option in enumerate(options) if at not in tokens and not option.startswith(f"{TOKEN}=")]


class ServerProcess:
    """A running `understudy serve`.

    It ends with this process, even on SIGKILL, because its standard input closes then.
    """

    def __init__(self, options: Sequence[str], command_name: str = "serve") -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="understudy-"))
        self.log_file = self.folder / "log"
        ready_file = self.folder / "ready.json"
        left, environ = off_the_command_line(options)
        self.is_stopped = False
        self.options = without_token(left)
        """As given, without settings, users and the token, which may be secret."""
        try:
            with self.log_file.open("wb") as log:
                arguments = [command_name, "--lifeline", *left, "--ready-file", str(ready_file)]
                self.process = self.launched(arguments, environ, log)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        try:
            self.ready = self.wait_until_ready(ready_file)
        except BaseException:
            self.stop()
            raise

    @staticmethod
    def launched(arguments: Sequence[str], environ: Mapping[str, str], log: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start `understudy` with these arguments in a new process with a fresh interpreter."""
        return subprocess.Popen(
            [*command(), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=log,
            env=environ,
            process_group=0,  # Ctrl-C in a shell or notebook is meant for the program there, not for the server
        )

    def wait_until_ready(self, file: Path) -> Ready:
        """Return the contents of the ready file; raise StartError if the process ends first or takes too long."""
        deadline = time.monotonic() + START_PATIENCE_S
        while not file.exists():
            if self.process.poll() is not None:
                raise StartError(f"the server ended with code {self.process.returncode}: {self.log()}")
            if time.monotonic() > deadline:
                raise StartError(f"the server was not ready after {START_PATIENCE_S:.0f} s{load()}: {self.log()}")
            time.sleep(0.003)  # short beside a start, some 0.3 s
        contents = json.loads(file.read_bytes())
        known = {name: contents[name] for name in ("control_url", "cluster_id", "pid")}
        brokers, registry = tuple(contents.get("brokers", ())), contents.get("schema_registry_url")
        return Ready(tuple(contents["bootstrap_servers"]), **known, brokers=brokers, schema_registry_url=registry)

    @property
    def alive(self) -> bool:
        """Return whether the process is still running."""
        return self.process.poll() is None

    def ending(self, patience_s: float = 0.0) -> str:
        """Return how the process ended, such as `the server (process 7) was killed by signal 9`.

        Empty if it runs still after this time, or was stopped by `stop`.
        """
        if self.is_stopped:
            return ""
        try:
            code = self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            return ""
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        return f"the server (process {self.ready.pid}) {how}"

    def log(self, lines: int = 30) -> str:
        """Return the last lines of the server's log, by default a screen."""
        try:
            text = self.log_file.read_text(errors="replace")
        except FileNotFoundError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def stop(self) -> None:
        """Terminate the process, kill it after a timeout, and remove its temporary folder. May be called twice."""
        self.is_stopped = self.is_stopped or self.alive
        if self.alive:
            self.process.terminate()
            try:
                self.process.wait(STOP_PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()  # the lifeline last: it causes a SIGTERM too, and a second one exits immediately
        shutil.rmtree(self.folder, ignore_errors=True)
