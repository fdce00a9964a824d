"""Defects that histories found, each as the shortest one that showed it, against what a real Kafka answered then."""

from pathlib import Path

import pytest

from comparison.exchange import Recorded
from comparison.histories.play import Player
from comparison.histories.run import saved
from comparison.histories.settle import warmed_up
from comparison.side import Side
from tests.conftest import BrokerWith
from tests.differential.targets import SETTINGS

SAVED = sorted((Path(__file__).parent / "histories").glob("*.json"))


@pytest.mark.parametrize("file", SAVED, ids=lambda file: file.stem)
def test_we_answer_what_kafka_answered(broker_with: BrokerWith, file: Path) -> None:
    """Field by field; `why` in the file says what was wrong."""
    history = saved(file)
    exchange = Recorded(Side(broker_with(settings=SETTINGS).addresses[0]), history["kafka"])
    warmed_up(exchange.sides[0])
    played = Player(exchange, "").play(history["steps"], file.stem)
    assert not played.differences, "\n".join(map(str, played.differences))
    assert exchange.answers.keys() == history["kafka"].keys()
