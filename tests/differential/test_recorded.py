"""Defects that histories found, each as the shortest one that showed it, against what a real Kafka answered then."""

from pathlib import Path

import pytest

from comparison.exchange import Recorded
from comparison.histories.play import Player
from comparison.histories.quiescence import wait_ready
from comparison.histories.run import load_history
from comparison.target import Target
from tests.conftest import BrokerWith
from tests.differential.targets import SETTINGS

SAVED = sorted((Path(__file__).parent / "histories").glob("*.json"))


@pytest.mark.parametrize("file", SAVED, ids=lambda file: file.stem)
def test_we_answer_what_kafka_answered(broker_with: BrokerWith, file: Path) -> None:
    """Field by field; `why` in the file describes what was wrong."""
    history = load_history(file)
    settings = SETTINGS | history.get("settings", {})
    broker = broker_with(settings=settings, as_version=history.get("release", "4.3"))
    exchange = Recorded(Target(broker.addresses[0], advance=broker.advance), history["kafka"])
    wait_ready(exchange.targets[0])
    played = Player(exchange, "").play(history["steps"], file.stem)
    assert not played.differences, "\n".join(map(str, played.differences))
    assert exchange.answers.keys() == history["kafka"].keys()
