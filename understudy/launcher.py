"""Starts a server in a process of its own, waits until it is ready, and stops it."""

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
from typing import Any

from understudy.errors import StartError

START_PATIENCE_S = 30.0
STOP_PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class Ready:
    """The ready file: where the server listens and who it is."""

    bootstrap_servers: tuple[str, ...]
    control_url: str | None
    cluster_id: str
    pid: int
    brokers: tuple[Mapping[str, Any], ...] = ()


def words(
    *,
    topics: Iterable[str] | Mapping[str, int] = (),
    settings: Mapping[str, object] | None = None,
    features: Mapping[str, int] | None = None,
    listeners: Iterable[str] = (),
    **others: object,
) -> list[str]:
    """Keyword arguments as the command line of `understudy serve`: brokers=3 is --brokers 3, None is left out."""
    topics, listeners = ((each,) if isinstance(each, str) else each for each in (topics, listeners))
    said: list[str] = []
    for name, value in others.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            said.append(option)
        elif value is not None and value is not False:
            said += [option, ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)]
    seeds = [f"{name}:{count}" for name, count in topics.items()] if isinstance(topics, Mapping) else topics
    for topic in seeds:
        said += ["--topic", topic]
    for name, setting in (settings or {}).items():
        said += ["--set", f"{name}={str(setting).lower() if isinstance(setting, bool) else setting}"]
    for name, level in (features or {}).items():
        said += ["--feature", f"{name}={level}"]
    for listener in listeners:
        said += ["--listener", listener]
    return said


def environment() -> dict[str, str]:
    """This process's environment without UNDERSTUDY_*: a test's cluster is what the test says, on every machine."""
    return {name: value for name, value in os.environ.items() if not name.startswith("UNDERSTUDY_")}


class ServerProcess:
    """A running `understudy serve`. It ends with this process, whatever happens: its standard input closes then."""

    def __init__(self, options: Sequence[str]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="understudy-"))
        self.log_file = self.folder / "log"
        ready_file = self.folder / "ready.json"
        command = [sys.executable, "-P", str(Path(__file__).with_name("__main__.py")), "serve", "--lifeline"]
        command += [*options, "--ready-file", str(ready_file)]
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=log, env=environment()
            )
        try:
            self.ready = self.wait_until_ready(ready_file)
        except BaseException:
            self.stop()
            raise

    def wait_until_ready(self, file: Path) -> Ready:
        """The contents of the ready file; raises StartError if the process ends first or takes too long."""
        deadline = time.monotonic() + START_PATIENCE_S
        while not file.exists():
            if self.process.poll() is not None:
                raise StartError(f"the server ended with code {self.process.returncode}: {self.log()}")
            if time.monotonic() > deadline:
                raise StartError(f"the server was not ready after {START_PATIENCE_S:.0f} s: {self.log()}")
            time.sleep(0.003)
        said = json.loads(file.read_bytes())
        known = {name: said[name] for name in ("control_url", "cluster_id", "pid")}
        return Ready(tuple(said["bootstrap_servers"]), **known, brokers=tuple(said.get("brokers", ())))

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self.process.poll() is None

    def log(self, lines: int = 30) -> str:
        """The last lines that the server logged."""
        try:
            text = self.log_file.read_text(errors="replace")
        except FileNotFoundError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def stop(self) -> None:
        """End the process in good order, else by force, and remove its temporary folder. Twice is harmless."""
        if self.alive:
            self.process.terminate()
            try:
                self.process.wait(STOP_PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()  # the lifeline last: it is a SIGTERM too, and the second one exits at once
        shutil.rmtree(self.folder, ignore_errors=True)
