"""Real Kafka brokers of releases 0.11 to 4.3, one at a time: what the table of releases was recorded from.

`python tools/old_kafka.py 2.8 PORT` starts one and leaves it running until Ctrl-C. Jars are fetched by Maven, once,
into .cache/interop/brokers (or $INTEROP_CACHE/brokers). Releases before 3.3 run with ZooKeeper; it is 3.5.9 where the
release's own does not start on a JDK of today, and 0.11 gets the part of Java that it misses.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CACHE = Path(os.environ.get("INTEROP_CACHE", ROOT / ".cache" / "interop")) / "brokers"
VERSIONS = {
    "0.11": "0.11.0.3", "1.0": "1.0.2", "1.1": "1.1.1",
    "2.0": "2.0.1", "2.1": "2.1.1", "2.2": "2.2.2", "2.3": "2.3.1", "2.4": "2.4.1",
    "2.5": "2.5.1", "2.6": "2.6.3", "2.7": "2.7.2", "2.8": "2.8.2",
    "3.0": "3.0.2", "3.1": "3.1.2", "3.2": "3.2.3", "3.3": "3.3.2", "3.4": "3.4.1",
    "3.5": "3.5.2", "3.6": "3.6.2", "3.7": "3.7.2", "3.8": "3.8.1", "3.9": "3.9.1",
    "4.0": "4.0.1", "4.1": "4.1.1", "4.2": "4.2.0", "4.3": "4.3.1",
}  # fmt: skip
"""Release -> the patch release that stands for it."""
_NAMES = list(VERSIONS)
JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
}
"""As the tests set them for Understudy: little to create, nothing to wait for."""


def has_zookeeper(release: str) -> bool:
    """Whether the broker runs with ZooKeeper here: KRaft is for production since 3.3."""
    return _NAMES.index(release) < _NAMES.index("3.3")


def fetch(release: str) -> Path:
    """The folder with the broker's jars."""
    folder = CACHE / VERSIONS[release]
    done = folder / ".complete"
    if not done.exists():
        old = _NAMES.index(release) < _NAMES.index("2.4")
        wanted = [("org.apache.kafka", "kafka_2.12" if old else "kafka_2.13", VERSIONS[release])]
        if old:
            wanted.append(("org.apache.zookeeper", "zookeeper", "3.5.9"))
        if release == _NAMES[0]:
            wanted.append(("javax.xml.bind", "jaxb-api", "2.3.1"))  # a part of Java until Java 11
        dependencies = "".join(
            f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version></dependency>"
            for group, name, version in wanted
        )
        with tempfile.TemporaryDirectory() as project:
            pom = Path(project) / "pom.xml"
            pom.write_text(
                "<project><modelVersion>4.0.0</modelVersion><groupId>understudy</groupId><artifactId>old</artifactId>"
                f"<version>1</version><dependencies>{dependencies}</dependencies></project>"
            )
            goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
            subprocess.run(["mvn", "--batch-mode", "--quiet", "--file", str(pom), *goal], check=True)
        done.touch()
    return folder


@contextlib.contextmanager
def running(release: str, port: int = 0, settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """A broker of that release; the address that it listens on.

    Raises:
        RuntimeError: it did not come up; with the tail of its log.
    """
    jars, folder = fetch(release), Path(tempfile.mkdtemp(prefix=f"kafka-{release}-"))
    mine, other = free_port(port), free_port()
    processes: list[subprocess.Popen[bytes]] = []
    try:
        if has_zookeeper(release):
            (folder / "zoo.cfg").write_text(
                f"dataDir={folder}/zookeeper\nclientPort={other}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n"
            )
            main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
            processes.append(_java(jars, folder, main, str(folder / "zoo.cfg")))
            own = {"broker.id": "1", "zookeeper.connect": f"127.0.0.1:{other}"}
            own["listeners"] = f"PLAINTEXT://127.0.0.1:{mine}"
        else:
            own = _kraft(mine, other)
        properties = folder / "server.properties"
        every = {**own, "log.dirs": f"{folder}/data", **SETTINGS, **(settings or {})}
        properties.write_text("".join(f"{key}={value}\n" for key, value in every.items()))
        if not has_zookeeper(release):
            words = ("format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", str(properties))
            _java(jars, folder, "kafka.tools.StorageTool", *words).wait()
        processes.append(_java(jars, folder, "kafka.Kafka", str(properties)))
        _await(mine, processes[-1], folder / "log")
        yield f"127.0.0.1:{mine}"
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _kraft(port: int, controller: int) -> dict[str, str]:
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    }


def _java(jars: Path, folder: Path, main: str, *words: str) -> subprocess.Popen[bytes]:
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(["java", *JVM, "-cp", f"{jars}/*", main, *words], stdout=log, stderr=log, cwd=folder)


def free_port(wanted: int = 0) -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", wanted))
        return int(made.getsockname()[1])


def _await(port: int, process: subprocess.Popen[bytes], log: Path, patience_s: float = 90) -> None:
    deadline, pause = time.monotonic() + patience_s, threading.Event()
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{process.args!s:.80} did not come up:\n{log.read_text(errors='replace')[-1500:]}")
        pause.wait(0.1)


if __name__ == "__main__":
    with running(sys.argv[1], int(sys.argv[2])) as address:
        sys.stdout.write(f"Kafka {VERSIONS[sys.argv[1]]} on {address}\n")
        sys.stdout.flush()
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()
