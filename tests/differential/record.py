"""Records what a real Kafka answers to saved histories: ``python -m tests.differential.record FILE...``.

A file needs its `why` and its `steps`; the answers are written into it.
"""

import sys
import tempfile
from pathlib import Path

from comparison.exchange import Recording
from comparison.histories.play import Player
from comparison.histories.run import save, saved
from comparison.histories.settle import warmed_up
from comparison.side import Side
from tests.differential.targets import Kafka


def main(files: list[Path]) -> None:
    """Record them all with one broker."""
    with tempfile.TemporaryDirectory() as folder:
        kafka = Kafka(Path(folder))
        kafka.start()
        try:
            exchange = Recording(Side(kafka.bootstrap))
            warmed_up(exchange.sides[0])
            for file in files:
                history = saved(file)
                Player(exchange, "").play(history["steps"], file.stem)
                save(file, history["why"], history["steps"], exchange.answers)
        finally:
            kafka.stop()


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
