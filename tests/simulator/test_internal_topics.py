"""A streams group whose internal topic could not be created needs an operator; other groups without tasks are found."""

import pytest

from broker.request import streams_topics
from simulator.result import Result
from simulator.run import KINDS, run
from tests.mutants.mutant import Mutant

SEED = 638813168
"""The group's topic is requested while two of three brokers run."""
NOT_CREATED = Mutant("internal topics are not created", streams_topics._create, "if not topics:", "if topics:")


def played() -> Result:
    """The run that found it."""
    return run(SEED, 0.5, kinds=KINDS)


@pytest.mark.slow
def test_a_topic_that_could_not_be_created_is_created_by_an_operator() -> None:
    """And the group's members get its tasks."""
    assert not played().violations


@pytest.mark.slow
def test_a_topic_that_was_never_tried_is_found() -> None:
    """No creation of it has failed, so no operator hides that the group has no tasks."""
    with NOT_CREATED.alive():
        assert any("has no owner in streams" in each for each in played().violations)
