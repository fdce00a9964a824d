"""The player deletes only the topics that its own steps created: what it does beside the steps changes no log.

Both clusters are Understudy, so every play has to be the same on both.
"""

from comparison.exchange import Pair
from comparison.histories.drawing.batches import BROKER
from comparison.histories.generate import BROKER_SETTINGS
from comparison.histories.play import Player
from comparison.histories.quiescence import wait_ready
from comparison.histories.run import Histories
from comparison.histories.step_request import Step
from comparison.target import Target
from protocol.apis import ApiKey
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tests.conftest import BrokerWith
from tests.differential.targets import SETTINGS

STATIC_BROKER, DEFAULT = 4, 5
"""Config sources of DescribeConfigs."""
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


def test_settings_and_levels_that_a_history_changes_are_the_defaults_after_it(broker_with: BrokerWith) -> None:
    """A history of the kind `settings` has no difference to itself, and leaves no setting of the broker behind."""
    targets = [Target(broker_with(settings=SETTINGS, seed=seed).addresses[0]) for seed in (1, 2)]
    report = Histories(Pair(*targets)).run([1], kind="settings")
    assert [str(each) for each in report.differing] == []
    assert report.pair.coverage.seen["UpdateFeatures", 1, "NONE"]
    wanted = [DescribeConfigsResource(BROKER, name, list(BROKER_SETTINGS)) for name in ("1", "")]
    answer = targets[0].call(ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(wanted))
    sources = {config.config_source for result in answer.results for config in result.configs}
    for target in targets:
        target.close()
    assert sources <= {STATIC_BROKER, DEFAULT}
