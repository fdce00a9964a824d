"""The same questions to real brokers, whose answers were recorded, and to this one that plays their release."""

import pytest

from broker.settings.releases import NAMES, Behaviour
from tests.conftest import BrokerWith
from tests.releases.questions import a_stranger_while_markers_wait, ask, ask_all, asked_of
from tests.releases.recording import ANSWERS, OF_CONSUMER_GROUPS, RUN, load
from tests.serving import Server

RECORDED = load()
KNOWN: dict[tuple[str, str], str] = {}
"""(question, release) -> what this one answers instead; GAPS.md lists it."""

RACES = (a_stranger_while_markers_wait,)
"""Asked again if the markers were written before the next request was read, which a busy machine may cause."""


@pytest.fixture
def cluster(broker_with: BrokerWith) -> Server:
    """A broker with few partitions of internal topics and nothing to wait for, as the recorded ones."""
    settings = {"offsets.topic.num.partitions": "4", "transaction.state.log.num.partitions": "4"}
    return broker_with(settings={**settings, "group.initial.rebalance.delay.ms": "0", **OF_CONSUMER_GROUPS})


def test_all_questions_were_recorded() -> None:
    """There is an answer of every release that runs."""
    assert set(RECORDED) == set(RUN), ANSWERS
    for name, answers in RECORDED.items():
        assert set(answers) == {question.__name__ for question in asked_of(name)}, name


SIDES = {each.since for each in Behaviour} | {NAMES[NAMES.index(each.since) - 1] for each in Behaviour}
"""Of all borders. The others are asked every night."""
RUNS = [pytest.param(name, marks=() if name in SIDES else pytest.mark.nightly) for name in RUN]


@pytest.mark.parametrize("name", RUNS)
def test_a_release_answers_as_the_real_one(cluster: Server, name: str) -> None:
    """Every question; what differs is known, and differs still."""
    cluster.control("PUT", "/v1/versions", {"as_version": name})
    expected = {question: KNOWN.get((question, name), answer) for question, answer in RECORDED[name].items()}
    answers = ask_all(cluster.addresses[0], name, 5, lambda seconds: cluster.advance(int(seconds * 1000)))
    for question in RACES:
        for _ in range(10):
            if answers.get(question.__name__) == expected.get(question.__name__):
                break
            answers[question.__name__] = ask(cluster.addresses[0], question, 5)
    assert answers == expected
