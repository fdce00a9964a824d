"""`understudy exam --upstream`: the exam in front of a cluster that runs elsewhere; here, another Understudy."""

from collections.abc import Iterator
from functools import partial

import pytest

from tests.exam.reference.driver import InProcess
from understudy.client import Cluster, start
from understudy.errors import UnderstudyError
from understudy.exam import upstream
from understudy.exam.exercise import TOPICS
from understudy.exam.runner import Runner
from understudy.exam.scenario import SCENARIOS
from understudy.exam.upstream import CREATED_TOPIC, GROUPS, opened
from understudy.exam.verdicts import Verdict

PLAYED = ("produce/answer-lost", "transactions/fenced", "groups/evicted-member-commits", "admin/create-topic")
"""One for each witness: the wire, the committed records, a group, a topic that the library has made."""


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Cluster]:
    """Three brokers, as a user has them."""
    settings = {"auto.create.topics.enable": False, "group.initial.rebalance.delay.ms": 0}
    with start(brokers=3, topics={"mine": 1}, settings=settings) as cluster:
        yield cluster


def examined(cluster: Cluster, *names: str, mutation: str = "") -> dict[str, Verdict]:
    """The verdicts on the reference client."""
    there = partial(opened, cluster.servers[0])
    runner = Runner(lambda: InProcess(mutation) if mutation else InProcess(), plays=1, timeout_ms=6_000, opened=there)
    return {each.scenario.id: each.verdict for each in runner.run([SCENARIOS[name] for name in names]).results}


def test_scenarios_pass_and_nothing_is_left(elsewhere: Cluster) -> None:
    """The topics and groups of the exam are deleted at the end, and no others."""
    assert examined(elsewhere, *PLAYED) == dict.fromkeys(PLAYED, Verdict.PASS)
    assert "mine" in {each.name for each in elsewhere.topics.list()}
    assert not {each.name for each in elsewhere.topics.list()} & {*TOPICS, CREATED_TOPIC}
    assert not {each.group_id for each in elsewhere.groups.list()} & GROUPS


def test_libraries_get_the_addresses_of_all_brokers(elsewhere: Cluster) -> None:
    """Of the proxy's, although it was given one: a scenario may stop that broker."""
    with opened(elsewhere.servers[0]) as cluster:
        addresses = cluster.bootstrap_servers.split(",")
    assert len({*addresses} - {*elsewhere.servers}) == 3


def test_a_topic_that_a_scenario_makes_is_deleted(elsewhere: Cluster) -> None:
    """A topic that a scenario creates is deleted before the next scenario."""
    with opened(elsewhere.servers[0]) as cluster:
        cluster.topics.create(CREATED_TOPIC, partitions=4, replication_factor=1)
        assert {each.name: len(each.partitions) for each in elsewhere.topics.list()}[CREATED_TOPIC] == 4
        cluster.reset(disconnect=True)
        assert CREATED_TOPIC not in {each.name for each in elsewhere.topics.list()}


def test_a_mutant_fails(elsewhere: Cluster) -> None:
    """The positive control: a client with a planted fault fails on a cluster behind the proxy, too."""
    verdicts = examined(elsewhere, "idempotence/answer-lost", mutation="new-sequence-after-loss")
    assert verdicts == {"idempotence/answer-lost": Verdict.FAIL}


def test_what_cannot_be_steered_is_not_exercised(elsewhere: Cluster) -> None:
    """Brokers, leaders and listeners of the cluster are not the exam's."""
    names = ("produce/leader-moves", "hostile/cluster-restarts", "transactions/coordinator-moves")
    chosen = [name for name in SCENARIOS if name in names or SCENARIOS[name].steers == {"listeners"}]
    assert examined(elsewhere, *chosen) == dict.fromkeys(chosen, Verdict.NOT_EXERCISED)


@pytest.mark.parametrize("name", ["t", CREATED_TOPIC])
def test_a_topic_of_the_users_is_not_deleted(elsewhere: Cluster, name: str) -> None:
    """The exam refuses to begin where a topic of the user has one of its names."""
    elsewhere.topics.create(name)
    elsewhere.topics[name].write({"value": "mine", "partition": 0})
    with pytest.raises(UnderstudyError, match=f"has a topic {name}: the exam deletes"):
        examined(elsewhere, "produce/answer-lost")
    assert [each.value for each in elsewhere.topics[name].partitions[0].records()] == [b"mine"]
    elsewhere.topics[name].delete()


def test_a_cluster_that_is_not_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that does not answer is one sentence after twenty seconds."""
    monkeypatch.setattr(upstream, "REACHED_S", 0.2)
    with pytest.raises(UnderstudyError, match=r"127\.0\.0\.1:1"), opened("127.0.0.1:1"):
        pass
