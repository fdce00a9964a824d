"""The player deletes only the topics that its own steps created: what it does beside the steps changes no log.

Both clusters are Understudy, so every play has to be the same on both.
"""

from comparison.exchange import Pair
from comparison.histories.play import Player
from comparison.histories.quiescence import wait_ready
from comparison.histories.step_request import Step
from comparison.target import Target
from tests.conftest import BrokerWith
from tests.differential.targets import SETTINGS

STEPS: list[Step] = [
    {"do": "metadata", "v": 12, "c": "0", "topics": ["t0"], "auto": True},
    {"do": "share_beat", "v": 1, "c": "0", "group": "h0", "member": "S0", "epoch": 0, "topics": ["t0"]},
    {"do": "produce", "v": 9, "c": "0", "topic": "t0", "partition": 0, "records": [["a", "b", 1]], "acks": 1},
    {"do": "create_topic", "v": 7, "c": "0", "topic": "t0", "partitions": 3},
]


def test_a_topic_that_exists_keeps_its_records(broker_with: BrokerWith) -> None:
    """CreateTopics of a topic that exists must not replace it, although its topic ids, and orders by them, differ."""
    end_offsets = []
    for seed in range(1, 5):
        settings = {**SETTINGS, "num.partitions": "3"}
        brokers = [broker_with(settings=settings, seed=broker_seed) for broker_seed in (seed, seed + 50)]
        targets = [Target(broker.addresses[0]) for broker in brokers]
        for target in targets:
            wait_ready(target)
        exchange = Pair(*targets)
        played = Player(exchange, f"h{seed}").play(STEPS)
        assert not played.differences, "\n".join(map(str, played.differences))
        assert exchange.answers["3"]["topics"][0]["error_code"] == "TOPIC_ALREADY_EXISTS"
        end_offsets.append(exchange.answers["log t0-0"]["end"])
    assert end_offsets == [1, 1, 1, 1]
