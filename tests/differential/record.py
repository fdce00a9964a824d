"""Records what a real Kafka answers to saved histories: ``python -m tests.differential.record FILE...``.

A file needs its `why` and its `steps`; the answers are written into it. Where it names a `release`, the jars of
KAFKA_LIBS have to be of that one.
"""

import json
import sys
import tempfile
from pathlib import Path

from comparison.exchange import Recording
from comparison.histories.play import Player
from comparison.histories.quiescence import wait_ready
from comparison.histories.run import load_history, save
from comparison.target import Target
from tests.clients.targets import oracle_release
from tests.differential.targets import Kafka


def main(files: list[Path]) -> None:
    """Record them with one broker for each distinct set of settings."""
    by_settings: dict[str, list[Path]] = {}
    for file in files:
        by_settings.setdefault(json.dumps(load_history(file).get("settings", {})), []).append(file)
    for settings, alike in by_settings.items():
        record(alike, json.loads(settings))


def record(files: list[Path], settings: dict[str, str]) -> None:
    """Record histories with one broker."""
    with tempfile.TemporaryDirectory() as folder:
        kafka = Kafka(Path(folder), settings)
        kafka.start()
        try:
            exchange = Recording(Target(kafka.bootstrap))
            wait_ready(exchange.targets[0])
            for file in files:
                history = load_history(file)
                if history.get("release", oracle_release()) != oracle_release():
                    raise SystemExit(f"{file.name} is of {history['release']}, and this Kafka is {oracle_release()}")
                Player(exchange, "").play(history["steps"], file.stem)
                save(file, history["why"], history["steps"], exchange.answers, history.get("release"), settings)
        finally:
            kafka.stop()


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
