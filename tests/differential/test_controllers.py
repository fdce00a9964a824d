"""Controllers that stop under requests: what the player of scripts shows of it, and that it finds a difference.

Both clusters are Understudy, so that a difference is one of how their controllers are steered.
"""

from comparison.exchange import Pair
from comparison.histories.multi_broker import assign_internal_topics
from comparison.histories.outcomes import OutcomePlayer
from comparison.histories.overlap import Outcome, play
from comparison.histories.quiescence import wait_ready
from comparison.target import Target
from tests.conftest import BrokerWith
from tests.differential.controllers import CONTROLLERS
from tests.differential.quorum import IMPATIENT, understudys
from tests.differential.targets import SETTINGS


def cluster(broker_with: BrokerWith, seed: int = 1) -> Target:
    """Three controllers and three brokers."""
    settings = {**SETTINGS, **IMPATIENT, "controller.socket.timeout.ms": "3000"}
    target = understudys(broker_with(settings=settings, brokers=3, controllers=3, seed=seed))
    wait_ready(target)
    assign_internal_topics(target)
    return target


def created(outcome: Outcome) -> tuple[str, str]:
    """When the last CreateTopics was answered, and its error."""
    *_, last = (each for what, each in outcome.items() if what.endswith(" CreateTopics"))
    response = last["response"]
    return last["when"], response if isinstance(response, str) else response["topics"][0]["error_code"]


def test_requests_wait_for_the_next_controller_and_all_come_back(broker_with: BrokerWith) -> None:
    """Twice, so that a second play finds three controllers: each request is served by the one that was elected."""
    target = cluster(broker_with)
    for number in range(2):
        outcome = play(target, CONTROLLERS["active controller is killed"], f"s{number}.", 0)
        assert created(outcome) == ("after 1 bursts", "NONE")
        assert outcome["topics"] == {"t0": 1, "t1": 1, "t3": 2, "t4": 1}
        assert not target.leaderless


def test_a_request_of_a_broker_that_is_killed_is_lost(broker_with: BrokerWith) -> None:
    """It waits in the broker until there is a controller, and ends with it."""
    outcome = play(cluster(broker_with), CONTROLLERS["no controller, broker with a request is killed"], "s.", 0)
    assert created(outcome)[1] == "(connection closed)"
    assert outcome["topics"] == {"t0": 1}


def test_producer_ids_are_exhausted_without_a_controller(broker_with: BrokerWith) -> None:
    """A broker without ids left gets no others, until a controller is active again."""
    outcome = play(cluster(broker_with), CONTROLLERS["producer ids without a controller"], "s.", 0)
    errors = [each["response"]["error_code"] for what, each in outcome.items() if what.endswith(" InitProducerId")]
    assert errors == ["COORDINATOR_LOAD_IN_PROGRESS", "NONE"]


def test_a_controller_that_does_not_resign_is_a_difference(broker_with: BrokerWith) -> None:
    """The player finds a cluster that goes on with its controller; not an equal one."""
    theirs, steps = cluster(broker_with), CONTROLLERS["active controller is killed"]
    equal = OutcomePlayer(Pair(theirs, cluster(broker_with, 2)), "equal", most_plays=2)
    assert not equal.play(steps).differences
    deaf = cluster(broker_with, 3)
    steer = deaf.steer_controllers
    assert steer is not None
    deaf.steer_controllers = lambda how, which: None if how == "kill" else steer(how, which)
    differences = OutcomePlayer(Pair(theirs, deaf), "deaf", most_plays=2).play(steps).differences
    assert any(each.api == "CreateTopics" and each.understudy == "at once" for each in differences), differences
