"""The clients of the matrix: what each is called, and how its process is built and started.

Those in Python play `script.py` with their drivers of the exam. The others are asked in one way: a line of
"BOOTSTRAP NAME", answered by lines of "STEP RESULT" and at last "end".
"""

import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Final

from tests.clients import drivers
from tests.clients.clients import python_driver
from tests.clients.compatibility import script
from tests.clients.drivers import HERE, command
from tests.clients.script import Clients
from tests.clients.targets import CACHE, JVM, KAFKA_VERSION, ROOT, kafka_libs
from understudy.exam.driver import Driver

JAVA_VERSIONS = ("0.11.0.3", "1.1.1", "2.4.1", "2.8.2", "3.9.1", "4.3.1", "4.4.0")
JAVA = tuple(f"kafka-clients {version}" for version in JAVA_VERSIONS)
PYTHON = ("kafka-python", "aiokafka")
LIBRARIES_IN_PYTHON: Final[Mapping[str, tuple[str, str | None]]] = {
    "librdkafka 2.3": ("confluent", "confluent-2.3"),
    "librdkafka": ("confluent", None),
    "kafka-python": ("kafkapython", None),
    "aiokafka": ("aio", None),
}
"""Those with a driver in Python -> its module, and its environment."""
OLD_LIBRDKAFKA = "librdkafka 1.9"
KAFKAJS = "KafkaJS"
PINNED: Final[Mapping[str, Sequence[str]]] = {
    "Sarama as 0.11": ("sarama", "0.11.0.0"),
    "Sarama as 1.0": ("sarama", "1.0.0"),
    "Sarama as 2.4": ("sarama", "2.4.0"),
    "Sarama": ("sarama",),
    "Sarama as 4.3": ("sarama", "4.3.0"),
    "franz-go as 0.11": ("franz-go", "v0.11.0"),
    "franz-go as 1.0": ("franz-go", "v1.0"),
    "franz-go as 2.4": ("franz-go", "v2.4"),
    "franz-go": ("franz-go",),
}
"""Clients in Go that are configured for a broker of one release -> the arguments of their driver."""
STREAMS: Final[Mapping[str, tuple[str, str]]] = {
    "2.5.1 exactly_once": ("2.5.1", "exactly_once"),
    "2.6.3 exactly_once": ("2.6.3", "exactly_once"),
    "2.6.3 exactly_once_beta": ("2.6.3", "exactly_once_beta"),
    f"{KAFKA_VERSION} exactly_once_v2": (KAFKA_VERSION, "exactly_once_v2"),
}
"""Kafka Streams -> its version and its processing.guarantee."""

KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "java": JAVA,
    "librdkafka": (OLD_LIBRDKAFKA, "librdkafka 2.3", "librdkafka"),
    "go": tuple(PINNED),
    "scripts": (*PYTHON, KAFKAJS),
    "streams": tuple(f"Streams {each}" for each in STREAMS),
}
CLIENTS = tuple(client for kind in KINDS.values() for client in kind)
IN_CI = tuple(client for kind, clients in KINDS.items() if kind != "streams" for client in clients)
"""Kafka Streams takes its time, and plays at night."""


@cache
def java_classes() -> Path:
    """The one source of the Java clients, compiled against the oldest; the folder with its classes."""
    command([HERE / "setup.sh", "java", "old_java"])
    return _compiled("Compatibility", CACHE / "java" / f"clients-{JAVA_VERSIONS[0]}")


@cache
def streams_classes() -> Path:
    """The one source of Kafka Streams, likewise."""
    command([HERE / "setup.sh", "old_streams", "kafka"])
    return _compiled("Counting", _streams_jars("2.5.1"))


def _compiled(name: str, jars: Path) -> Path:
    return drivers.java_classes(
        CACHE / "build" / "java" / name, jars, [HERE / "java" / "compatibility" / f"{name}.java"]
    )


def _streams_jars(version: str) -> Path:
    return kafka_libs() if version == KAFKA_VERSION else CACHE / "java" / f"streams-{version}"


@cache
def go_binary() -> Path:
    """Build the driver of Sarama and franz-go; the first argument chooses one."""
    command([HERE / "setup.sh", "go"])
    return _built(HERE / "go", "compatibility")


@cache
def librdkafka_binary() -> Path:
    """librdkafka 1.9; its binding for Go is a module of its own, and asks for a C compiler."""
    command([HERE / "setup.sh", "go"])
    return _built(HERE / "go" / "librdkafka", ".", CGO_ENABLED="1")


def _built(module: Path, package: str, **environment: str) -> Path:
    binary = CACHE / "build" / "go" / ("compatibility" if package != "." else module.name)
    build = [str(CACHE / "go" / "go"), "build", "-o", str(binary), f"./{package}"]
    command(build, module, GOTOOLCHAIN="auto", **environment)
    return binary


def command_of(client: str) -> Sequence[str]:
    """The command that runs a client; what it needs is fetched and built first."""
    if client in PINNED:
        return [str(go_binary()), *PINNED[client]]
    if client == OLD_LIBRDKAFKA:
        return [str(librdkafka_binary())]
    if client == KAFKAJS:
        command([HERE / "setup.sh", "js"])
        modules = f"NODE_PATH={CACHE / 'js' / 'node_modules'}"
        return ["env", modules, "KAFKAJS_NO_PARTITIONER_WARNING=1", "node", str(HERE / "js" / "compatibility.js")]
    java = ["java", *JVM[:4], "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp"]
    kind, _, which = client.partition(" ")
    if kind == "Streams":
        version, guarantee = STREAMS[which]
        return [*java, f"{streams_classes()}:{_streams_jars(version)}/*", "compatibility.Counting", guarantee]
    return [*java, f"{java_classes()}:{CACHE / 'java' / f'clients-{which}'}/*", "compatibility.Compatibility"]


class Player:
    """A client's process, asked again and again."""

    def __init__(self, client: str) -> None:
        self.client = client
        self.driver: Driver | None = None
        if client in LIBRARIES_IN_PYTHON:
            command([HERE / "setup.sh", "python"])
            module, environment = LIBRARIES_IN_PYTHON[client]
            self.driver = Driver(python_driver(module, environment)(), patience=3)
            self.driver.hello()
            return
        with (CACHE / "compatibility.log").open("a") as log:
            self.process = Popen(command_of(client), stdin=PIPE, stdout=PIPE, stderr=log, text=True, cwd=ROOT)

    def play(self, bootstrap: str, name: str = "", codec: str = "") -> str:
        """What became of the steps, on a topic of that name or of its own: all well, or each with its error.

        With a codec, which librdkafka's alone take, records are produced with it, and nothing else is played.
        """
        name = name or f"{self.client.replace(' ', '-')}-{time.time_ns()}"
        if self.driver is not None:
            return ", ".join(script.play(Clients(self.driver, bootstrap), name, codec)) or GOOD
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(bootstrap, name, codec, file=self.process.stdin, flush=True)
        results = []
        while (line := self.process.stdout.readline()) != "end\n":
            if not line:
                raise RuntimeError(f"{self.client} ended by itself; see {CACHE / 'compatibility.log'}")
            results.append(line.strip())
        failed = [result for result in results if not result.endswith(" ok")]
        return ", ".join(failed) or GOOD

    def close(self) -> None:
        """End it."""
        if self.driver is not None:
            self.driver.__exit__(None, None, None)
        else:
            self.process.kill()
            self.process.communicate()


GOOD = "all ok"
"""What `play` gives where every step went well."""
