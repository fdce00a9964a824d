"""Runs a standalone Spark cluster on this machine: a master and workers, each in its own process.

    python tools/spark_cluster.py --workers 2

prints `spark://...` for `--master` and runs until it is interrupted. Tests use `standalone()`.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from understudy.java import find_java

PATIENCE_S = 300
_MASTER, _WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"


@dataclass(frozen=True, slots=True)
class Standalone:
    """A cluster that runs: its address, its workers, and the folder of each (`worker-N`) with its executors' logs."""

    master: str
    workers: list[subprocess.Popen[bytes]]
    folder: Path

    def kill(self, number: int) -> None:
        """Kill a worker, and its executors, which would notice only later."""
        worker = self.workers[number]
        listed = ["ps", "-o", "pid=", "--ppid", str(worker.pid)]
        executors = subprocess.run(listed, capture_output=True, text=True, check=False).stdout.split()
        for pid in (worker.pid, *map(int, executors)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextmanager
def standalone(folder: Path, *, workers: int = 2, cores: int = 1, memory: str = "1g") -> Iterator[Standalone]:
    """Run a cluster. Logs and scratch files go below `folder`."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        port = _free_port()
        master = f"spark://127.0.0.1:{port}"
        arguments = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
        processes.append(_start(folder, "master", _MASTER, *arguments))
        _await(folder / "master.log", "I have been elected leader", processes[0])
        for number in range(workers):
            arguments = ["--host", "127.0.0.1", "--cores", str(cores), "--memory", memory, "--webui-port", "0"]
            scratch = folder / f"worker-{number}"
            process = _start(folder, f"worker-{number}", _WORKER, *arguments, "--work-dir", str(scratch), master)
            processes.append(process)
            _await(folder / f"worker-{number}.log", "Successfully registered with master", process)
        yield Standalone(master, processes[1:], folder)
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()


def _start(folder: Path, name: str, main_class: str, *arguments: str) -> subprocess.Popen[bytes]:
    folder.mkdir(parents=True, exist_ok=True)
    home = Path(pyspark.__file__).parent
    java = find_java()
    environment = {**os.environ, "JAVA_HOME": str(java), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(home)}
    environment["SPARK_DAEMON_MEMORY"] = "256m"
    environment.pop("PYTHONPATH", None)  # a worker of a real cluster has no access to this checkout
    with (folder / f"{name}.log").open("wb") as log:
        command = [str(home / "bin" / "spark-class"), main_class, *arguments]
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment)


def _await(log: Path, expected: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until a log contains this text."""
    deadline = time.monotonic() + PATIENCE_S
    while expected not in (text := log.read_text(encoding="utf-8", errors="replace")):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{log.name}: {text[-2000:]}")
        time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def main() -> None:
    """Run a cluster until it is interrupted."""
    parser = argparse.ArgumentParser(description="A standalone Spark cluster on this machine.")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cores", type=int, default=1, help="of each worker")
    parser.add_argument("--memory", default="1g", help="of each worker")
    parser.add_argument("--folder", type=Path, default=Path(".cache/spark-cluster"), help="for logs and scratch files")
    options = parser.parse_args()
    with standalone(options.folder, workers=options.workers, cores=options.cores, memory=options.memory) as cluster:
        print(cluster.master, flush=True)
        with suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
