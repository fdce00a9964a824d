"""Streams groups at the wire (groups STR-01 to STR-17, G.5)."""

from collections.abc import Mapping

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.streams_group_heartbeat import CopartitionGroup, KeyValue, Subtopology, TopicInfo, Topology
from tests.conftest import BrokerWith
from tests.scenarios.core.asking import created
from tests.scenarios.groups.members import G, Member, commit, coordinated
from tests.scenarios.groups.streams import HERE, STREAMS_SETTINGS, StreamsMember, described, shorten_sessions
from tests.server import Server, until
from tests.wire import Wire

FOLLOWED_MS = 1_000
"""A real coordinator sees some milliseconds late what has become of a topic, and assigns once in a second."""
TOPIC_RESOURCE, GROUP_RESOURCE, SET = 2, 32, 0


@pytest.fixture
def streams(broker_with: BrokerWith) -> Server:
    """A broker whose streams groups are assigned at once; its clock moves only when it is pushed."""
    server = broker_with(settings=STREAMS_SETTINGS)
    server.freeze()
    return server


@pytest.fixture
def wire(streams: Server) -> Wire:
    """A connection to the coordinator, with the topic "in" of four partitions."""
    connection = coordinated(streams)
    created(connection, "in", 4)
    streams.advance(FOLLOWED_MS)
    return connection


def reading(*topics: str, changelog: TopicInfo | None = None) -> list[Subtopology]:
    """One subtopology that reads these topics."""
    changelogs = [] if changelog is None else [changelog]
    return [Subtopology("0", list(topics), (), changelogs)]


def partitions(wire: Wire, topic: str) -> int:
    """The partition count of a topic, 0 for none."""
    request = MetadataRequest([MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    (metadata_topic,) = wire.call(ApiKey.METADATA, 12, request).topics
    return len(metadata_topic.partitions)


def grow(wire: Wire, topic: str, count: int) -> None:
    """More partitions."""
    request = CreatePartitionsRequest([CreatePartitionsTopic(topic, count, None)], 5_000)
    assert wire.call(ApiKey.CREATE_PARTITIONS, 3, request).results[0].error_code is ErrorCode.NONE


def settings(wire: Wire, topic: str) -> Mapping[str, str | None]:
    """The settings of a topic."""
    request = DescribeConfigsRequest([DescribeConfigsResource(TOPIC_RESOURCE, topic, None)])
    (resource,) = wire.call(ApiKey.DESCRIBE_CONFIGS, 4, request).results
    return {each.name: each.value for each in resource.configs}


def follows(streams: Server, member: StreamsMember, active: dict[str, list[int]]) -> None:
    """Return when a member has these tasks."""

    def there() -> bool | None:
        streams.advance(FOLLOWED_MS)
        member.confirm()
        return member.active == active or None

    until(there, "the tasks of the member")


def test_STR_01_a_first_member_has_all_tasks(wire: Wire) -> None:
    """At once, in epoch 2; ListGroups has the group's type."""
    member = StreamsMember(wire, reading("in"))
    response = member.join()
    assert (response.error_code, member.epoch, member.active, member.statuses) == (0, 2, {"0": [0, 1, 2, 3]}, {})
    again = member.beat()
    assert (again.member_epoch, again.active_tasks, again.standby_tasks, again.warmup_tasks) == (2, None, None, None)
    (listed,) = wire.call(ApiKey.LIST_GROUPS, 5, ListGroupsRequest()).groups
    assert (listed.group_type, listed.protocol_type, listed.group_state) == ("streams", "streams", "Stable")


def test_STR_03_a_source_topic_is_missing(wire: Wire, streams: Server) -> None:
    """Status 1 until it is created; ListGroups finds the state by "not_ready" alone."""
    member = StreamsMember(wire, reading("later"))
    assert (member.join().error_code, member.active, member.statuses) == (
        0,
        {},
        {1: "Source topics later are missing."},
    )
    assert described(wire).group_state == "NotReady"
    for name, count in (("NotReady", 0), ("not_ready", 1)):
        assert len(wire.call(ApiKey.LIST_GROUPS, 5, ListGroupsRequest([name])).groups) == count
    created(wire, "later", 2)
    follows(streams, member, {"0": [0, 1]})


def test_STR_04_a_changelog_is_created(wire: Wire, streams: Server) -> None:
    """With the topic's settings; the member gets its tasks afterwards."""
    configs = [KeyValue("cleanup.policy", "compact"), KeyValue("retention.ms", "12345")]
    member = StreamsMember(wire, reading("in", changelog=TopicInfo("store-changelog", 0, 0, configs)))
    member.join()
    assert (member.active, member.statuses) == ({}, {3: "Internal topics are missing: store-changelog"})
    follows(streams, member, {"0": [0, 1, 2, 3]})
    assert partitions(wire, "store-changelog") == 4
    topic_settings = settings(wire, "store-changelog")
    assert (topic_settings["cleanup.policy"], topic_settings["retention.ms"]) == ("compact", "12345")


def test_STR_05_a_repartition_topic_is_created(wire: Wire, streams: Server) -> None:
    """With as many partitions as the source; both subtopologies have tasks then."""
    topology = [
        Subtopology("0", ["in"], repartition_sink_topics=["app-repartition"]),
        Subtopology("1", repartition_source_topics=[TopicInfo("app-repartition")]),
    ]
    member = StreamsMember(wire, topology)
    member.join()
    assert list(member.statuses) == [3]
    follows(streams, member, {"0": [0, 1, 2, 3], "1": [0, 1, 2, 3]})
    assert partitions(wire, "app-repartition") == 4


def test_internal_topics_that_cannot_be_created(wire: Wire, streams: Server) -> None:
    """The error is in the next responses, and creation is not tried again for two heartbeat intervals."""
    member = StreamsMember(wire, reading("in", changelog=TopicInfo("changelog", 0, 7)))
    member.join()
    assert member.statuses == {3: "Internal topics are missing: changelog"}

    def reported() -> bool | None:
        member.beat()
        return "Creation failed" in member.statuses[3] or None

    until(reported, "the failure")
    assert member.statuses[3].startswith("Internal topics are missing: changelog; Creation failed: changelog (")
    streams.advance(10_000)
    member.beat()
    assert "Creation failed" not in member.statuses[3]
    until(reported, "the failure of the second attempt, the first one for the topology as this group has it")
    streams.advance(10_000)
    for _ in range(2):
        member.beat()
        assert "Creation failed" not in member.statuses[3], "it is tried once for each configuration of the topology"


def test_an_internal_topic_that_comes_and_goes_between_two_heartbeats(wire: Wire) -> None:
    """It is not created again, since the topics are what they were when it was requested, until they change."""
    topology = reading("later", changelog=TopicInfo("store"))
    member = StreamsMember(wire, topology)
    member.join()
    created(wire, "later", 1)
    other = StreamsMember(wire, topology, "m2")
    other.join()
    assert (3 in other.statuses, partitions(wire, "store")) == (True, 1)
    request = DeleteTopicsRequest(topics=[DeleteTopicState("store")], timeout_ms=5_000)
    assert wire.call(ApiKey.DELETE_TOPICS, 6, request).responses[0].error_code is ErrorCode.NONE
    member.beat()
    assert (3 in member.statuses, partitions(wire, "store")) == (True, 0)
    grow(wire, "later", 2)
    member.beat()
    assert (3 in member.statuses, partitions(wire, "store")) == (True, 2)


def test_STR_14_commits_are_fenced_by_the_member_epoch(wire: Wire) -> None:
    """113 for an epoch that is too new, 35 before version 9."""
    member = StreamsMember(wire, reading("in"))
    member.join()
    assert commit(wire, "in", 5, 2, "m1") is ErrorCode.NONE
    assert commit(wire, "in", 5, 3, "m1") is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(wire, "in", 5, 1, "m1") is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(wire, "in", 5, 2, "m2") is ErrorCode.UNKNOWN_MEMBER_ID
    topic = OffsetCommitRequestTopic("in", [OffsetCommitRequestPartition(0, 5)])
    old = wire.call(ApiKey.OFFSET_COMMIT, 8, OffsetCommitRequest(G, 2, "m1", topics=[topic]))
    assert old.topics[0].partitions[0].error_code is ErrorCode.UNSUPPORTED_VERSION


def test_STR_16_a_classic_group_is_converted_once_it_is_empty(wire: Wire) -> None:
    """And a classic member takes an Empty streams group over; 69 and 23 while there are members."""
    classic = Member(wire)
    classic.start()
    classic.joined()
    classic.sync({classic.member_id: b""})
    member = StreamsMember(wire, reading("in"))
    assert member.join().error_code is ErrorCode.GROUP_ID_NOT_FOUND
    classic.leave()
    assert member.join().error_code is ErrorCode.NONE
    assert described(wire).group_state == "Stable"
    assert Member(wire).refused() == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")
    member.beat(-1)
    other = Member(wire)
    other.start()
    other.joined()
    assert described(wire).error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert member.join().error_code is ErrorCode.GROUP_ID_NOT_FOUND


def test_STR_17_a_stateful_source_grows(wire: Wire, streams: Server) -> None:
    """The changelog that exists has too few partitions then."""
    member = StreamsMember(wire, reading("in", changelog=TopicInfo("changelog")))
    member.join()
    follows(streams, member, {"0": [0, 1, 2, 3]})
    grow(wire, "in", 5)

    def reported() -> bool | None:
        streams.advance(FOLLOWED_MS)
        member.confirm()
        return 2 in member.statuses or None

    until(reported, "status 2")
    assert "expected 5, found 4" in member.statuses[2]


def test_a_groups_own_settings_apply(wire: Wire, streams: Server) -> None:
    """A session timeout of the group's own ends the session of a silent member."""
    group_settings = {"streams.session.timeout.ms": "2000", "streams.heartbeat.interval.ms": "1000"}
    configs = [AlterableConfig(name, SET, value) for name, value in group_settings.items()]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(GROUP_RESOURCE, G, configs)])
    assert wire.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request).responses[0].error_code is ErrorCode.NONE
    member = StreamsMember(wire, reading("in"))
    response = member.join()
    assert response.heartbeat_interval_ms == 1_000
    streams.advance(1_999)
    assert len(described(wire).members) == 1
    streams.advance(1)
    until(lambda: len(described(wire).members) == 0 or None, "the end of the session")


def test_STR_02_an_empty_group_waits_for_further_members(broker_with: BrokerWith) -> None:
    """Status 5 and epoch 1 without tasks; three seconds later there are tasks."""
    server = broker_with(settings={**STREAMS_SETTINGS, "group.streams.initial.rebalance.delay.ms": 3_000})
    server.freeze()
    wire = coordinated(server)
    created(wire, "in", 4)
    server.advance(FOLLOWED_MS)
    member = StreamsMember(wire, reading("in"))
    member.join()
    assert (member.epoch, member.active, list(member.statuses)) == (1, {}, [5])
    server.advance(3_000)
    follows(server, member, {"0": [0, 1, 2, 3]})
    assert member.epoch == 2


def test_STR_06_sources_that_are_not_co_partitioned(wire: Wire, streams: Server) -> None:
    """Status 2, with their partition counts."""
    created(wire, "other", 3)
    streams.advance(FOLLOWED_MS)
    topology = [Subtopology("0", ["in", "other"], copartition_groups=[CopartitionGroup([0, 1])])]
    member = StreamsMember(wire, topology)
    assert (member.join().error_code, member.active) == (0, {})
    assert member.statuses == {
        2: "Following topics do not have the same number of partitions: [{in=4, other=3}]",
    }


def test_STR_07_a_loop_of_repartition_topics(wire: Wire) -> None:
    """The heartbeat fails with 130, and there is no group."""
    loop = Subtopology("0", repartition_sink_topics=["loop"], repartition_source_topics=[TopicInfo("loop")])
    assert StreamsMember(wire, [loop]).join().error_code is ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert described(wire).error_code is ErrorCode.GROUP_ID_NOT_FOUND


def test_STR_08_a_join_needs_a_topology_and_a_heartbeat_takes_none(wire: Wire) -> None:
    """And lists of tasks come together or not at all: 42 each."""
    member = StreamsMember(wire, reading("in"))
    assert member.join(topology=None).error_code is ErrorCode.INVALID_REQUEST
    member.join()
    assert member.beat(topology=Topology(0, reading("in"))).error_code is ErrorCode.INVALID_REQUEST
    assert member.beat(active_tasks={"0": [0]}).error_code is ErrorCode.INVALID_REQUEST
    assert member.beat().error_code is ErrorCode.NONE


def test_STR_09_half_of_the_tasks_move(wire: Wire, streams: Server) -> None:
    """To a member of another process, after the first one has confirmed."""
    first, second = StreamsMember(wire, reading("in")), StreamsMember(wire, reading("in"), "m2", "p2")
    first.join()
    streams.advance(FOLLOWED_MS)
    second.join()
    assert second.active == {}
    first.confirm()
    assert (first.epoch, len(first.active["0"])) == (2, 2)
    second.confirm()
    assert second.active == {}
    first.confirm()
    second.confirm()
    assert (first.epoch, second.epoch) == (3, 3)
    assert sorted(first.active["0"] + second.active["0"]) == [0, 1, 2, 3]


def test_STR_10_standby_tasks_are_in_the_other_process(broker_with: BrokerWith) -> None:
    """Each task with a store has one standby, in the other process."""
    server = broker_with(settings={**STREAMS_SETTINGS, "group.streams.num.standby.replicas": 1})
    server.freeze()
    wire = coordinated(server)
    created(wire, "in", 4)
    created(wire, "changelog", 4)
    server.advance(FOLLOWED_MS)
    topology = reading("in", changelog=TopicInfo("changelog"))
    first, second = StreamsMember(wire, topology), StreamsMember(wire, topology, "m2", "p2")
    first.join()
    assert first.standby == {}
    second.join()

    def settled() -> bool | None:
        server.advance(FOLLOWED_MS)
        first.confirm()
        second.confirm()
        return (bool(first.standby) and (first.active, first.standby) == (second.standby, second.active)) or None

    until(settled, "the standby tasks")
    assert sorted(first.active["0"] + first.standby["0"]) == [0, 1, 2, 3]


def test_STR_11_another_topology(wire: Wire, streams: Server) -> None:
    """42 at the same epoch; at a lower one the member is stale, which is status 0."""
    created(wire, "other", 2)
    streams.advance(FOLLOWED_MS)
    assert StreamsMember(wire, reading("in"), topology_epoch=3).join().error_code is ErrorCode.NONE
    equal = StreamsMember(wire, reading("other"), "m2", topology_epoch=3)
    assert equal.join().error_code is ErrorCode.INVALID_REQUEST
    stale = StreamsMember(wire, reading("other"), "m2", topology_epoch=2)
    assert stale.join().error_code is ErrorCode.NONE
    stale.beat()
    assert stale.statuses[0] == "The member's topology epoch 2 is behind the group's topology epoch 3."


def test_STR_12_a_shutdown_of_the_application(wire: Wire) -> None:
    """Status 4 for every member until the group is Empty."""
    first, second = StreamsMember(wire, reading("in")), StreamsMember(wire, reading("in"), "m2", "p2")
    first.join()
    second.join()
    first.beat(shutdown_application=True)
    second.beat()
    assert 4 in first.statuses
    assert 4 in second.statuses
    second.beat(-1)
    first.beat(-1)
    first.join()
    assert 4 not in first.statuses


@pytest.mark.parametrize("silent", [False, True])
def test_STR_13_tasks_of_a_member_that_is_gone_move(wire: Wire, streams: Server, silent: bool) -> None:
    """Tasks move when their member leaves or its session ends."""
    shorten_sessions(wire)
    first, second = StreamsMember(wire, reading("in")), StreamsMember(wire, reading("in"), "m2", "p2")
    first.join()
    second.join()
    if not silent:
        assert first.beat(-1).member_epoch == -1
    follows(streams, second, {"0": [0, 1, 2, 3]})
    assert first.beat(2).error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_STR_13_a_member_that_gets_nothing_but_errors_stays(wire: Wire, streams: Server) -> None:
    """While its source topic is gone its endpoint cannot be listed (UNKNOWN_SERVER_ERROR); its session goes on."""
    shorten_sessions(wire)
    member = StreamsMember(wire, reading("in"))
    member.join(user_endpoint=HERE)
    request = DeleteTopicsRequest(topics=[DeleteTopicState("in")], timeout_ms=5_000)
    assert wire.call(ApiKey.DELETE_TOPICS, 6, request).responses[0].error_code is ErrorCode.NONE
    for _ in range(3):
        streams.advance(FOLLOWED_MS)
        assert member.beat(endpoint_information_epoch=99).error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    created(wire, "in", 4)
    streams.advance(FOLLOWED_MS)
    assert member.beat(endpoint_information_epoch=99).error_code is ErrorCode.NONE


def test_STR_15_a_task_that_does_not_exist(wire: Wire) -> None:
    """Of an unknown subtopology, or beyond its number of tasks: 42."""
    member = StreamsMember(wire, reading("in"))
    member.join()
    for tasks in ({"9": [0]}, {"0": [0, 4]}):
        response = member.beat(active_tasks=tasks, standby_tasks={}, warmup_tasks={})
        assert response.error_code is ErrorCode.INVALID_REQUEST
    assert member.confirm().error_code is ErrorCode.NONE
