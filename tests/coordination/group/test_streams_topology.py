"""Topologies of streams groups at the machine: missing topics, partition counts, topology epochs (groups E.4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.coordination.group.modern.streams.configuration import PartitionCounts, _repartition_counts, summarized
from broker.coordination.group.modern.streams.topology import Topology, recorded_topology
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.streams_group_heartbeat import Subtopology
from protocol.messages.streams_group_heartbeat import Topology as WireTopology
from tests.coordination.group.consumer_harness import Cluster
from tests.coordination.group.harness import Context, G
from tests.coordination.group.streams_harness import StreamsMember, bench, info, subtopology


@pytest.fixture
def cluster() -> Cluster:
    """With the topics "in" of four and "other" of three partitions."""
    topics = Cluster()
    topics.create("in", 4)
    topics.create("other", 3)
    return topics


@pytest.fixture
def context(cluster: Cluster) -> Context:
    """A shard that knows it, and assigns at once."""
    return bench(cluster)


def joined(context: Context, *topology: Subtopology) -> StreamsMember:
    """A first member with that topology."""
    member = StreamsMember(context, topology=topology)
    member.join()
    return member


def wanted(member: StreamsMember) -> dict[str, int]:
    """The internal topics that the broker is to create, with their partition counts."""
    return {topic.name: topic.partitions for topic in member.result.missing}


def test_at_most_three_topics_are_named() -> None:
    """A message names three missing topics, and counts the others."""
    assert summarized(["a", "b", "c"]) == "a, b, c"
    assert summarized(["a", "b", "c", "d", "e"]) == "a, b, c and 2 additional topics"


def test_STR_05_a_repartition_topic_takes_the_count_of_its_source(context: Context) -> None:
    """Through a chain of subtopologies; a count that is given stays."""
    member = joined(
        context,
        subtopology("0", ["in"], sinks=["first"]),
        subtopology("1", repartitions=[info("first")], sinks=["second", "fixed"]),
        subtopology("2", repartitions=[info("second")]),
        subtopology("3", repartitions=[info("fixed", 7)], changelogs=[info("store")]),
    )
    assert wanted(member) == {"first": 4, "second": 4, "fixed": 7, "store": 7}


def test_co_partitioned_repartition_topics_take_one_count(context: Context) -> None:
    """That of the external topics; without any that of the fixed ones, or the largest."""
    member = joined(
        context,
        subtopology("0", ["in"], sinks=["a"]),
        subtopology("1", ["other"], repartitions=[info("a")], copartitioned=[([0], [0])]),
    )
    assert wanted(member) == {"a": 3}
    member = joined(
        bench(context.topics),
        subtopology("0", ["in"], sinks=["a"]),
        subtopology("1", ["other"], sinks=["b"]),
        subtopology("2", repartitions=[info("a"), info("b")], copartitioned=[([], [0, 1])]),
    )
    assert wanted(member) == {"a": 4, "b": 4}


def test_a_fixed_repartition_topic_with_another_count(context: Context) -> None:
    """Status 2 (INCORRECTLY_PARTITIONED_TOPICS), with both counts."""
    member = joined(context, subtopology("0", ["in"], repartitions=[info("fixed", 5)], copartitioned=[([0], [0])]))
    assert member.statuses == [2]
    (detail,) = member.details
    assert detail.startswith(
        "Number of partitions [5] of repartition topic [fixed] doesn't match number of partitions [4]"
    )


def test_the_first_of_several_topics_whose_count_is_not_that_of_the_source(context: Context) -> None:
    """In the order of Kafka's hash table, from process to process."""
    names = ["z", "y", "x", "w", "v", "u"]
    fixed = [info(name, 5) for name in names]
    member = joined(context, subtopology("0", ["in"], repartitions=fixed, copartitioned=[([0], range(6))]))
    (detail,) = member.details
    assert detail.startswith("Number of partitions [5] of repartition topic [u] doesn't match")


def test_a_changelog_that_another_subtopology_reads_counts_at_the_end(context: Context) -> None:
    """The other one's changelog has the count that the topic has as a repartition topic."""
    member = joined(
        context,
        subtopology("0", ["in"], changelogs=[info("both")]),
        subtopology("1", repartitions=[info("both", 3)], changelogs=[info("store")]),
    )
    assert wanted(member)["store"] == 3


def test_settings_of_internal_topics_are_described_in_the_order_of_a_hash_table(
    context: Context, cluster: Cluster
) -> None:
    """Once the topology is ready; before, as they were sent."""
    cluster.create("store", 4)
    member = joined(context, subtopology("0", ["in"], changelogs=[info("store", configs={"b": "1", "a": "2"})]))

    def keys() -> list[str]:
        topology = context.machine.streams.describe(G).topology
        assert topology is not None
        (changelog,) = next(iter(topology.subtopologies or ())).state_changelog_topics
        return [each.key for each in changelog.topic_configs]

    assert keys() == ["b", "a"]
    member.beat()
    member.beat(rack_id="r")
    assert keys() == ["a", "b"]


@pytest.mark.parametrize(
    "topology",
    [
        [subtopology("0", repartitions=[info("loop")], sinks=["loop"])],
        [subtopology("0", ["in"]), subtopology("1", repartitions=[info("never")])],
        [subtopology("0", changelogs=[info("store")])],
        [subtopology("0", ["in"], changelogs=[info("store", 4)])],
    ],
)
def test_STR_07_topologies_that_cannot_be_resolved(context: Context, topology: list[Subtopology]) -> None:
    """STREAMS_INVALID_TOPOLOGY fails the heartbeat, and nothing is written."""
    assert StreamsMember(context, topology=topology).refused_join() is ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert context.records == []


def test_the_first_of_several_topics_with_another_count(context: Context, cluster: Cluster) -> None:
    """In the order of Kafka's hash table, where these two share a bucket: the topic that was put in first."""
    cluster.create("c1", 5)
    cluster.create("r0", 9)
    read = subtopology("1", repartitions=[info("r0")], changelogs=[info("c1")])
    member = joined(context, subtopology("0", ["in"], sinks=["r0"]), read)
    assert member.details == ["Existing topic r0 has different number of partitions: expected 4, found 9"]
    cluster.delete("r0")
    context.advance(1_000)
    member.beat()
    assert member.details == ["Existing topic c1 has different number of partitions: expected 4, found 5"]


@pytest.mark.parametrize(
    "broken",
    [
        subtopology("0", ["in"], copartitioned=[([0, 1], [])]),
        subtopology("0", ["in"], copartitioned=[([-1], [])]),
        subtopology("0", ["none"], copartitioned=[([1], [])]),
        subtopology("0", ["in"], copartitioned=[([], [0])]),
        subtopology("0", ["in"], changelogs=[info("a"), info("a")]),
        subtopology("0", repartitions=[info("a", 1), info("a", 1)]),
        subtopology("0", ["in"], repartitions=[info("a", -1)]),
    ],
)
def test_topologies_that_kafka_does_not_foresee(context: Context, broken: Subtopology) -> None:
    """UNKNOWN_SERVER_ERROR: an index of no topic, also without its source topics; a topic twice; a count below 0."""
    assert StreamsMember(context, topology=(broken,)).refused_join() is ErrorCode.UNKNOWN_SERVER_ERROR
    assert StreamsMember(context, topology=(subtopology("0", ["none"]),)).join().status is not None


def test_a_long_chain_is_counted_at_once(context: Context) -> None:
    """Though its first link comes last, so that each of Kafka's rounds decides one topic."""
    links = 3_000
    chain = [subtopology(chr(300 + n), repartitions=[info(f"t{n + 1}")], sinks=[f"t{n}"]) for n in range(links)]
    last = subtopology(chr(3_500), ["in"], sinks=[f"t{links}"])
    member = joined(context, *chain, subtopology("~", repartitions=[info("t0")]), last)
    assert set(wanted(member).values()) == {4}
    assert len(wanted(member)) == links + 1


TOPICS = [f"r{number}" for number in range(5)]
PARTS = st.lists(st.sampled_from(TOPICS), max_size=3, unique=True)
COUNTS = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 9), max_size=1)


@pytest.mark.slow
@given(st.lists(st.tuples(PARTS, PARTS, st.sampled_from([[], [], ["in"], ["other"]]), COUNTS), min_size=1, max_size=6))
def test_sinks_are_counted_as_by_kafkas_rounds(
    parts: list[tuple[list[str], list[str], list[str], dict[str, int]]],
) -> None:
    """Each round looks at all subtopologies in order, until one decides nothing."""
    topics = Cluster()
    topics.create("in", 4)
    topics.create("other", 3)
    fixed = {name: count for read, _, _, counts in parts for name, count in counts.items() if name in read}
    topology = [
        subtopology(chr(304 + n), sources, repartitions=[info(name, fixed.get(name, 0)) for name in read], sinks=sinks)
        for n, (read, sinks, sources, _) in enumerate(parts)
    ]
    partition_counts, known = dict(fixed), {"in": 4, "other": 3}
    while True:
        before = len(partition_counts)
        for read, sinks, sources, _ in parts:
            for sink in sinks:
                inputs = [partition_counts[name] for name in read if name in partition_counts] + [
                    known[name] for name in sources
                ]
                if sink not in partition_counts and inputs:
                    partition_counts[sink] = max(inputs)
        if len(partition_counts) == before:
            break
    needed = {name for read, sinks, _, _ in parts for name in (*read, *sinks)}
    counts = PartitionCounts.__new__(PartitionCounts)
    counts._topics, counts.decided = topics, {}
    stored = tuple(Topology.of(recorded_topology(WireTopology(0, topology))).subtopologies.values())
    if needed <= partition_counts.keys():
        assert _repartition_counts(stored, counts) == partition_counts
    else:
        with pytest.raises(KafkaError) as refusal:
            _repartition_counts(stored, counts)
        assert refusal.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY
