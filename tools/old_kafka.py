"""Starts real Kafka brokers of releases 0.11 to 4.4, one at a time, from which the table of releases is recorded.

`python tools/old_kafka.py 2.8 PORT` starts one and keeps it running until Ctrl-C. Maven fetches the jars, once, into
.cache/interop/brokers (or $INTEROP_CACHE/brokers). Releases before 3.3 run with ZooKeeper, of version 3.5.9 if the
release's own does not start on a current JDK; 0.11 also gets a removed part of Java.
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
    "4.0": "4.0.1", "4.1": "4.1.1", "4.2": "4.2.0", "4.3": "4.3.1", "4.4": "4.4.0",
}  # fmt: skip
"""Release -> the patch release to run."""
_NAMES = list(VERSIONS)
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
}
"""The same as in Understudy's tests: few partitions to create, no delays."""


def has_zookeeper(release: str) -> bool:
    """Return whether the broker runs with ZooKeeper here: KRaft is production-ready since 3.3."""
    return _NAMES.index(release) < _NAMES.index("3.3")


def fetch(release: str) -> Path:
    """Return the folder with the broker's jars, fetching them first if need be."""
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
def running(
    release: str, port: int = 0, settings: Mapping[str, str] | None = None, cluster_id: str = CLUSTER_ID
) -> Iterator[str]:
    """Run a broker of that release; yield its address. `cluster_id` counts since 3.3.

    Raises:
        RuntimeError: it did not start; with the tail of its log.
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
            arguments = ("format", "-t", cluster_id, "-c", str(properties))
            _java(jars, folder, "kafka.tools.StorageTool", *arguments).wait()
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


def _java(jars: Path, folder: Path, main: str, *arguments: str) -> subprocess.Popen[bytes]:
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            ["java", *JVM, "-cp", f"{jars}/*", main, *arguments], stdout=log, stderr=log, cwd=folder
        )


def free_port(wanted: int = 0) -> int:
    """Return a port that is free now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of the previous broker may linger
        probe.bind(("127.0.0.1", wanted))
        return int(probe.getsockname()[1])


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
