"""Targets of the benchmarks: each is its own server process on 127.0.0.1, started, observed and ended here.

A target is ready when it responds to ApiVersions, sent on a raw socket every millisecond, as in the row "start to first
answer". All have one broker, and settings as in tests.
"""

import contextlib
import os
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # not in its __all__
from confluent_kafka.cimpl import NewTopic

from benchmarks.librdkafka import QUIET
from tests.ports import free_ports

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "bench"
_COMPILED = ROOT / "build" / "compiled" / "environment" / "bin" / "understudy"
KAFKA_VERSION = "4.4.0"
START_TIMEOUT_S = 90.0
# Kafka's own names, also for Understudy. Without a rebalance delay, groups do not wait for more members.
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "auto.create.topics.enable": "false",
    "share.coordinator.state.topic.num.partitions": "4",
    "group.share.max.size": "1000",
}
# The options of kafka-server-start.sh.
_JVM = (
    *(
        "-Xmx1G",
        "-Xms1G",
        "-server",
        "-XX:+UseG1GC",
        "-XX:MaxGCPauseMillis=20",
        "-XX:InitiatingHeapOccupancyPercent=35",
    ),
    *("-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"),
)
_ASK_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)


@dataclass(frozen=True, slots=True)
class Kind:
    """Kind of target: its title in the table, and its command for a port and an empty folder."""

    name: str
    title: str
    command: Callable[[int, Path], list[str]]
    prepare: Callable[[], None] = lambda: None
    finds_port: bool = False  # it chooses its port, and writes it to the folder's file "port"
    client: Mapping[str, str] = field(default_factory=dict)  # librdkafka's settings to connect to it, if it is secured


def kafka_libs() -> Path:
    """Return the folder with Kafka's jars: KAFKA_LIBS, else that of `make interop`."""
    interop = Path(os.environ.get("INTEROP_CACHE", ROOT / ".cache" / "interop"))
    return Path(os.environ.get("KAFKA_LIBS", interop / "brokers" / KAFKA_VERSION))


def _fetch_kafka() -> None:
    # Brokers that tests fetch are without the tools, one of which is a row. Does nothing if all jars are there.
    if "KAFKA_LIBS" not in os.environ:
        fetch = ROOT / "tools" / "fetch_kafka.sh"
        subprocess.run([str(fetch), str(kafka_libs()), "kafka", KAFKA_VERSION], check=True)


def _build_kfake() -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    subprocess.run(["go", "build", "-o", str(CACHE / "kfake"), "."], check=True, cwd=ROOT / "benchmarks" / "kfake")


def _build_compiled() -> None:
    """Build the wheel with the compiler, unless COMPILED_CMD names a command of such a build."""
    if "COMPILED_CMD" not in os.environ:
        subprocess.run([sys.executable, "-m", "tools.compiled", "--no-tests"], check=True, cwd=ROOT)


def own_command(compiled: bool = False) -> list[str]:
    """Return the command `understudy` of this checkout, UNDERSTUDY_CMD or, compiled, COMPILED_CMD."""
    if compiled:
        return shlex.split(os.environ.get("COMPILED_CMD", shlex.quote(str(_COMPILED))))
    return shlex.split(os.environ.get("UNDERSTUDY_CMD", f"{shlex.quote(sys.executable)} -m understudy"))


def _understudy(port: int, _folder: Path, *, compiled: bool = False) -> list[str]:
    own = own_command(compiled)
    settings = [argument for name, value in SETTINGS.items() for argument in ("--set", f"{name}={value}")]
    return [*own, "serve", "--port", str(port), "--control-port", "off", "--log-level", "warning", *settings]


def _understudy_compiled(port: int, folder: Path) -> list[str]:
    return _understudy(port, folder, compiled=True)


def _understudy_disk(port: int, folder: Path) -> list[str]:
    return [*_understudy(port, folder), "--data-dir", str(folder / "data")]


def _mock(_port: int, folder: Path) -> list[str]:
    return [sys.executable, "-m", "benchmarks.mock", "--port-file", str(folder / "port")]


def kafka(
    port: int, folder: Path, *, create_topics: bool = False, protocol: str = "PLAINTEXT", more: Mapping[str, str] = {}
) -> list[str]:
    """Format a folder, and return the command of a broker; `create_topics`: automatic topic creation.

    `protocol` is that of its listener, `more` are additional settings.
    """
    controller = free_port()
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"{protocol}://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"{protocol}://127.0.0.1:{port}",
        "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,{protocol}:{protocol}",
        "inter.broker.listener.name": protocol,
        "log.dirs": str(folder / "data"),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        **SETTINGS,
        "auto.create.topics.enable": str(create_topics).lower(),
        **more,
    }
    file = folder / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    java = ["java", *_JVM, "-cp", f"{kafka_libs()}/*"]
    tool = [*java, "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", str(file)]
    subprocess.run(tool, check=True, capture_output=True)
    return [*java, "kafka.Kafka", str(file)]


KINDS = {
    kind.name: kind
    for kind in (
        Kind("understudy", "Understudy", _understudy),
        Kind("understudy-compiled", "Understudy, compiled", _understudy_compiled, _build_compiled),
        Kind("understudy-disk", "Understudy, `--data-dir`", _understudy_disk),
        Kind("kafka", f"Kafka {KAFKA_VERSION}", kafka, _fetch_kafka),
        Kind("kfake", "kfake", lambda port, _: [str(CACHE / "kfake"), "-port", str(port)], _build_kfake),
        Kind("mock", "librdkafka's mock", _mock, finds_port=True),
        Kind("limit", "limit", lambda port, _: [sys.executable, "-m", "benchmarks.limit", "--port", str(port)]),
    )
}


def free_port() -> int:
    """Return a port that is free now, and that no other run of the benchmarks gets meanwhile."""
    return free_ports(1)[0]


def answers(port: int) -> bool:
    """Return whether a server on that port responds to ApiVersions."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as asking:
        asking.sendall(_ASK_VERSIONS)
        return len(asking.recv(8)) == 8
    return False


def accepts(port: int) -> bool:
    """Return whether a server listens on that port."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5):
        return True
    return False


class Server:
    """A running target."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.folder = Path(tempfile.mkdtemp(prefix=f"bench-{kind.name}-"))
        self.port = free_port()
        self.bootstrap = f"127.0.0.1:{self.port}"
        command = kind.command(self.port, self.folder)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("UNDERSTUDY_")}
        with (self.folder / "log").open("wb") as log:
            begun = time.perf_counter()
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT, env=environment)
        try:
            self._wait_until_ready()
        except BaseException:
            self.close()
            raise
        self.started_s = time.perf_counter() - begun

    @property
    def name(self) -> str:
        """Return the name of the kind."""
        return self.kind.name

    @property
    def stores(self) -> bool:
        """Return whether topics are created, and produced records can be read back from all of them.

        The limit keeps a few topics, librdkafka's mock the last megabytes; all topics exist there.
        """
        return self.name not in ("limit", "mock")

    def rss_bytes(self) -> int:
        """Return the current resident memory of the process."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError(f"{self.name} has ended")

    def cpu_s(self) -> float:
        """Return the processor time of the process so far, in user and system mode."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def create_topic(self, name: str, partitions: int = 1, replicas: int = 1) -> None:
        """Create a topic; returns when it can be written to. In the limit every topic exists."""
        if not self.stores:
            return
        admin = self._admin()
        admin.create_topics([NewTopic(name, partitions, replicas)], operation_timeout=10)[name].result(20)

    def records(self, topic: str, partitions: int = 1) -> int:
        """Return how many records a topic has, by the ends of its partitions."""
        latest = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(partitions)}  # type: ignore[no-untyped-call]
        admin = self._admin()  # kept alive: its requests end with it
        return sum(each.result(20).offset for each in admin.list_offsets(latest).values())

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, **QUIET, **self.kind.client})

    def delete_topic(self, name: str) -> None:
        """Delete a topic, so that its records do not affect later rows."""
        if not self.stores:
            return
        admin = self._admin()
        with contextlib.suppress(KafkaException):
            admin.delete_topics([name], operation_timeout=10)[name].result(20)

    def log(self) -> str:
        """Return the end of the server's output."""
        return (self.folder / "log").read_text(errors="replace")[-1500:]

    def close(self) -> None:
        """Stop the process and remove its folder."""
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _ready(self) -> bool:
        if self.kind.finds_port:
            file = self.folder / "port"
            if not file.exists():
                return False
            self.port = int(file.read_text())
            self.bootstrap = f"127.0.0.1:{self.port}"
        return accepts(self.port) if self.kind.client else answers(self.port)

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} did not start (exit code {self.process.poll()}):\n{self.log()}")
            time.sleep(0.001)


@contextlib.contextmanager
def running(kind: Kind) -> Iterator[Server]:
    """Run a server during the block."""
    server = Server(kind)
    try:
        yield server
    finally:
        server.close()
