"""Scripts whose requests overlap: what their outcomes have, and when one of ours counts as a difference.

Both clusters are Understudy, so that a difference is one of their settings.
"""

from comparison.exchange import Pair
from comparison.histories.drawing.overlap import overlapping
from comparison.histories.outcomes import OutcomePlayer
from comparison.histories.overlap import play
from comparison.histories.quiescence import wait_ready
from comparison.histories.step_request import Step
from comparison.target import Target
from tests.conftest import BrokerWith
from tests.differential.targets import SETTINGS

CREATE: Step = {"do": "create_topic", "v": 7, "c": "0", "topic": "t0", "partitions": 1}
PLACE = {"topic": "t0", "partition": 0}
POLL: Step = {"do": "fetch", "v": 12, "c": "1", **PLACE, "offset": 0, "max_wait": 60_000, "min_bytes": 1}
METADATA: Step = {"do": "metadata", "v": 12, "c": "1", "topics": ["t0"]}
PRODUCE: Step = {"do": "produce", "v": 9, "c": "0", **PLACE, "records": [["a", "b", 1]], "acks": 1}
JOIN: Step = {"do": "join", "v": 3, "c": "0", "group": "g0", "member": "m0", "protocols": [["range", "", ["t0"]]]}


def target(broker_with: BrokerWith, settings: dict[str, str] | None = None, seed: int = 1) -> Target:
    """A cluster of its own with these settings, ready for scripts."""
    cluster = Target(broker_with(settings={**SETTINGS, **(settings or {})}, seed=seed).addresses[0])
    wait_ready(cluster)
    return cluster


def test_outcomes_show_when_each_response_came(broker_with: BrokerWith) -> None:
    """A fetch ends with the burst that produces, what is pipelined behind it then, and a cut has no response."""
    poll_that_stays = {**POLL, "c": "2", "offset": 1}
    outcome = play(
        target(broker_with), [CREATE, POLL, METADATA, PRODUCE, poll_that_stays, {"do": "cut", "c": "2"}], "o.", 0
    )
    came = {what: value["when"] for what, value in outcome.items() if what[0].isdigit()}
    assert came == {
        "0 CreateTopics": "at once",
        "1 Fetch": "after 2 bursts",
        "2 Metadata": "after 1 bursts",
        "3 Produce": "at once",
        "4 Fetch": "(cut)",
    }
    assert outcome["log t0-0"]["end"] == 1


def test_what_is_queued_behind_a_wait_at_the_end_is_not_served(broker_with: BrokerWith) -> None:
    """The logs are read before the connections close, and a connection with more than one request is not cut."""
    queued = {**PRODUCE, "c": "1", "now": True}
    outcome = play(target(broker_with), [CREATE, POLL, queued, {"do": "cut", "c": "1"}], "o.", 0)
    assert [outcome[what]["when"] for what in ("1 Fetch", "2 Produce")] == ["(waits)", "(waits)"]
    assert outcome["log t0-0"]["end"] == 0


def test_a_paused_broker_goes_on_after_the_script(broker_with: BrokerWith) -> None:
    """Steps pause and resume brokers; one that is still paused at the end is resumed, and responds again."""
    cluster, steered = target(broker_with), list[tuple[str, int]]()
    cluster.steer = lambda do, broker: steered.append((do, broker))
    steps: list[Step] = [{"do": do, "broker": broker} for do, broker in (("pause", 2), ("resume", 2), ("pause", 3))]
    play(cluster, [CREATE, *steps, PRODUCE], "o.", 0)
    assert steered == [("pause", 2), ("resume", 2), ("pause", 3), ("resume", 3)]
    assert cluster.away == set()


def test_equal_clusters_do_not_differ(broker_with: BrokerWith) -> None:
    """A script whose outcomes are the same on both is played twice on each."""
    player = OutcomePlayer(Pair(target(broker_with), target(broker_with, seed=2)), "equal")
    assert player.play([CREATE, POLL, METADATA, PRODUCE]).differences == []
    assert player.plays == [2, 2]


def test_an_outcome_that_the_other_does_not_show_is_a_difference(broker_with: BrokerWith) -> None:
    """Where groups wait for members a join waits, whose response the other gives in each of many plays."""
    slow = target(broker_with, {"group.initial.rebalance.delay.ms": "60000"})
    player = OutcomePlayer(Pair(target(broker_with), slow), "slow", most_plays=4)
    assert [str(each) for each in player.play([CREATE, JOIN]).differences][:1] == [
        "JoinGroup [1].when: Kafka 'at once', Understudy '(waits)'"
    ]
    assert player.plays == [4, 4]


def test_a_history_becomes_a_script_by_its_seed() -> None:
    """The same seed lets the same requests overlap; steps that need the clusters for themselves are left out."""
    history = [CREATE, *[dict(PRODUCE) for _ in range(40)], {"do": "restart", "clean": True}]
    script = overlapping(history, 7)
    assert script == overlapping(history, 7)
    assert {step["do"] for step in script} == {"create_topic", "produce", "cut"}
    assert any(step.get("now") for step in script)
