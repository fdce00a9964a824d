"""The libraries that sit the exam, and how the driver of each is built.

Run as a program, it builds one and prints its command:

    understudy exam -- $(python -m tests.exam.libraries franz-go)
"""

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.clients.clients import go_binary, java_driver, javascript, rust_binary
from tests.clients.drivers import HERE as CLIENTS
from tests.clients.drivers import command
from tests.clients.targets import CACHE

HERE = Path(__file__).resolve().parent
BUILT = CACHE / "build" / "exam"


@dataclass(frozen=True)
class Library:
    """One library: the tools that its driver takes, and what builds it and returns the command that starts it."""

    name: str
    tools: tuple[str, ...]
    build: Callable[[], Sequence[str]]

    def missing(self) -> list[str]:
        """The tools that are missing on this machine."""
        return [tool for tool in self.tools if shutil.which(tool) is None]


def _python(module: str) -> Callable[[], Sequence[str]]:
    return lambda: [sys.executable, "-m", f"tests.exam.drivers.{module}"]


def _java(version: str) -> Callable[[], Sequence[str]]:
    return lambda: java_driver(version)


def _go(folder: str, **environment: str) -> Callable[[], Sequence[str]]:
    return lambda: go_binary(f"exam/{folder}", **environment)


def _rust() -> Sequence[str]:
    command([CLIENTS / "setup.sh", "rust"])
    return rust_binary("exam")


def _krafka() -> Sequence[str]:
    return rust_binary("krafka-exam", "krafka")


def _javascript(script: str) -> Callable[[], Sequence[str]]:
    return lambda: javascript(f"exam/{script}")


LIBRARIES = {
    each.name: each
    for each in (
        Library("java-4.4.0", ("javac", "mvn"), _java("4.4.0")),
        Library("java-2.8.2", ("javac", "mvn"), _java("2.8.2")),
        Library("librdkafka", (), _python("confluent")),
        Library("kafka-python", (), _python("kafkapython")),
        Library("aiokafka", (), _python("aio")),
        Library("franz-go", ("go",), _go("franz")),
        Library("sarama", ("go",), _go("sarama")),
        Library("kafka-go", ("go",), _go("kafkago")),
        # A module of its own, since it brings librdkafka, which takes a C compiler and a large download.
        Library("confluent-kafka-go", ("go", "g++"), _go("confluent", CGO_ENABLED="1")),
        Library("rust-rdkafka", ("cargo", "g++", "make"), _rust),
        Library("krafka", ("cargo", "g++"), _krafka),  # needs Rust 1.95
        Library("kafkajs", ("node", "npm"), _javascript("kafkajs.js")),
        Library("platformatic", ("node", "npm"), _javascript("platformatic.js")),
        Library("confluent-kafka-javascript", ("node", "npm", "g++", "make"), _javascript("confluent.js")),
    )
}


def main() -> None:
    """Build a driver and print its command."""
    names = sys.argv[1:]
    if len(names) != 1 or names[0] not in LIBRARIES:
        sys.exit(f"usage: python -m tests.exam.libraries NAME, where NAME is one of {', '.join(LIBRARIES)}")
    library = LIBRARIES[names[0]]
    if absent := library.missing():
        sys.exit(f"{library.name} needs {', '.join(absent)}: tests/clients/setup.sh toolchains")
    try:
        print(*library.build())  # noqa: T201 - for a shell
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
