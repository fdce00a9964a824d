"""Runs three Kafka brokers on 127.0.0.1, the first of them also the controller, until the process gets SIGTERM.

python -m benchmarks.kafka_cluster --port PORT --folder FOLDER
"""

import argparse
import signal
import subprocess
import sys
from pathlib import Path

from benchmarks.targets import free_port, kafka

_BROKERS = 3
_REPLICATED = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}


def commands(port: int, folder: Path) -> list[list[str]]:
    """Format the folders, and return the commands of the brokers; the first one listens on `port`."""
    controller = free_port()
    brokers = []
    for node in range(1, _BROKERS + 1):
        own = folder / f"broker-{node}"
        own.mkdir()
        listens = f"PLAINTEXT://127.0.0.1:{port if node == 1 else free_port()}"
        is_controller = node == 1
        more = {
            "node.id": str(node),
            "process.roles": "broker,controller" if is_controller else "broker",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"{listens},CONTROLLER://127.0.0.1:{controller}" if is_controller else listens,
            "advertised.listeners": listens,
            **_REPLICATED,
        }
        brokers.append(kafka(port, own, more=more))
    return brokers


def main() -> None:
    """Start the brokers, and end them with this process; their data is discarded."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    brokers: list[subprocess.Popen[bytes]] = []
    try:
        brokers += map(subprocess.Popen, commands(options.port, options.folder))
        brokers[0].wait()
    finally:
        for broker in brokers:
            broker.kill()
        for broker in brokers:
            broker.wait()


if __name__ == "__main__":
    main()
