"""Runs a real Apache Kafka in the foreground, ``make oracle``: 4.4.0, or that of KAFKA_LIBS. Its data are discarded."""

import argparse
import os
import signal
import tempfile
from pathlib import Path

from tests.differential.targets import Kafka
from tests.ports import free_ports
from tests.storage.kafka_tools import need_kafka
from tools.old_kafka import fetch


def main() -> None:
    """Start it, print its address, and run until a signal ends it."""
    parser = argparse.ArgumentParser(description="Run a real Apache Kafka of one broker.")
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="a setting of the broker")
    options = parser.parse_args()
    if "KAFKA_LIBS" not in os.environ:
        os.environ["KAFKA_LIBS"] = str(fetch("4.4"))
    need_kafka()
    settings = dict(each.split("=", 1) for each in options.set)
    with tempfile.TemporaryDirectory() as folder:
        kafka = Kafka(Path(folder), settings, port=options.port or free_ports(1)[0])
        kafka.start()
        try:
            print(f"bootstrap.servers={kafka.bootstrap}", flush=True)  # noqa: T201
            signal.sigwait({signal.SIGINT, signal.SIGTERM})
        finally:
            kafka.stop()


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    main()
