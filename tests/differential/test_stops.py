"""Brokers that stop under a wait: what the player of scripts shows, and that it finds a broker that stops otherwise.

Both clusters are Understudy, so that a difference is one of how their brokers are steered.
"""

from collections.abc import Mapping

from comparison.exchange import Pair
from comparison.histories.multi_broker import assign_internal_topics
from comparison.histories.outcomes import OutcomePlayer
from comparison.histories.overlap import play
from comparison.histories.quiescence import wait_ready
from comparison.histories.step_request import Step
from comparison.target import Target
from tests.conftest import BrokerWith
from tests.differential.overlaps import join, poll, produce, replicas
from tests.differential.stops import LAG, LAGGING, LEADER, OTHER, STOPS, broker, metadata, names
from tests.differential.targets import SETTINGS, THREE

SETTINGS_OF_THREE = {**SETTINGS, **THREE, "broker.session.timeout.ms": "1500"}
"""So that a broker is missed soon."""
LEADER_STOPS: list[Step] = [
    *(replicas(LEADER, OTHER, LAGGING), produce(acks=-1), LAG, produce(c="1", acks=-1, timeout=30_000)),
    *(poll("2", 1), metadata("3", LEADER), broker("stop"), metadata("3", LEADER), metadata("3", LEADER)),
]


def three(broker_with: BrokerWith, seed: int = 1, does: Mapping[str, str] | None = None) -> Target:
    """A cluster of three brokers; `does` replaces what is done to one."""
    server = broker_with(settings=SETTINGS_OF_THREE, brokers=3, seed=seed)

    def steer(do: str, node: int) -> None:
        server.control("POST", f"/v1/brokers/{node}/{(does or {}).get(do, do)}")

    cluster = Target(server.addresses[0], others=server.addresses[1:], steer=steer)
    wait_ready(cluster)
    assign_internal_topics(cluster)
    return cluster


def test_waits_at_a_broker_that_stops_end_and_afterwards_it_is_as_before(broker_with: BrokerWith) -> None:
    """A produce loses its leader, other connections are closed, and at the end all brokers are in sync again."""
    cluster = three(broker_with)
    for number in range(2):  # the second time, each broker and each coordinator is where it was
        outcome = play(cluster, LEADER_STOPS, f"s{number}.", 0)
        (produced,) = outcome["3 Produce"]["response"]["responses"][0]["partition_responses"]
        assert produced["error_code"] == "NOT_LEADER_OR_FOLLOWER"
        ended = [outcome[what]["response"] for what in ("4 Fetch", "7 Metadata", "8 Metadata")]
        assert ended == ["(connection closed)", "(connection closed)", "(connection refused)"]
        assert outcome["log t0-0"]["end"] == 2
        assert cluster.away == cluster.ended == set()


def test_a_coordinator_is_chosen_by_names_and_moves(broker_with: BrokerWith) -> None:
    """A join waits at the broker that the script names, until another one coordinates the group."""
    steps: list[Step] = [
        *(names(g0=LEADER), replicas(OTHER), join("m0"), join("m0"), {**join("m1"), "b": LEADER}, join("m1")),
        *({"do": "move_coordinator", "name": "g0", "to": OTHER}, {**join("m1"), "b": OTHER}),
    ]
    outcome = play(three(broker_with), steps, "s.", 0)
    responses = [outcome[f"{number} JoinGroup"] for number in (4, 5, 7)]
    assert [each["response"]["error_code"] for each in responses[:2]] == ["MEMBER_ID_REQUIRED", "NOT_COORDINATOR"]
    assert responses[1]["when"] != "at once"
    assert responses[2]["response"]["error_code"] != "NOT_COORDINATOR"


def test_a_share_fetch_acquires_nothing_at_a_broker_that_stops(broker_with: BrokerWith) -> None:
    """What another member gives up as its connection ends is for the next leader; what waits has no response."""
    outcome = play(three(broker_with), STOPS["share fetch, leader stops"], "s.", 0)
    before, waiting, after = (outcome[f"{number} ShareFetch"]["response"] for number in (9, 10, 12))
    acquired = [each["responses"][0]["partitions"][0]["acquired_records"] for each in (before, after)]
    assert [[batch["last_offset"] for batch in each] for each in acquired] == [[2], [2]]
    assert waiting == "(connection closed)"


def test_a_killed_broker_is_missed(broker_with: BrokerWith) -> None:
    """After `missed` no broker lists it, and another one leads."""
    steps = [replicas(LEADER, OTHER), broker("kill"), broker("missed"), metadata(), produce(b=OTHER)]
    outcome = play(three(broker_with), steps, "s.", 0)
    assert [each["node_id"] for each in outcome["3 Metadata"]["response"]["brokers"]] == [1, 2]
    (produced,) = outcome["4 Produce"]["response"]["responses"][0]["partition_responses"]
    assert produced["error_code"] == "NONE"


def test_a_broker_that_does_not_hand_over_is_a_difference(broker_with: BrokerWith) -> None:
    """The player finds a cluster whose brokers close their connections before their leaders move; not an equal one."""
    theirs = three(broker_with)
    equal = OutcomePlayer(Pair(theirs, three(broker_with, 2)), "equal", most_plays=2)
    assert not equal.play(LEADER_STOPS).differences
    faulty = OutcomePlayer(Pair(theirs, three(broker_with, 3, {"stop": "kill"})), "faulty", most_plays=2)
    differences = [str(each) for each in faulty.play([*LEADER_STOPS[:-2], broker("missed")]).differences]
    assert any(each.startswith("Produce [3]") and "connection closed" in each for each in differences), differences
