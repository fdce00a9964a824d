"""Each feature up and down: what UpdateFeatures answered on real brokers of 4.4 of four beginnings."""

import json

import pytest

from tests.conftest import BrokerWith
from tests.releases.feature_updates import BEGINS, KINDS, LEVELS, STARTS, WALK, ask_all, load

RECORDED = load()


def test_all_of_it_was_recorded() -> None:
    """A table and a walk for each beginning; some requests succeed, and some are refused."""
    assert tuple(RECORDED) == STARTS
    table = sum(len(levels) for levels in LEVELS.values()) * len(KINDS)
    for answers in RECORDED.values():
        assert len(answers) == 1 + table + len(WALK)
        assert sum(answer == "0" for answer in answers.values()) > 20
        assert sum(answer.startswith("95 ") for answer in answers.values()) > 200


@pytest.mark.parametrize("start", STARTS)
def test_features_go_up_and_down_as_on_a_real_broker(broker_with: BrokerWith, start: int) -> None:
    """Code, text, and the levels that a connected client is shown after each step."""
    begins = json.loads(RECORDED[start][BEGINS])
    absent = {name: 0 for name in LEVELS if "." in name and name != "unheard.of"}
    broker = broker_with(as_version="4.4", features={**absent, **begins})
    with broker.wire() as wire:
        assert ask_all(wire) == RECORDED[start]
