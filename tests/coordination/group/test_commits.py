"""OffsetCommit, OffsetFetch and OffsetDelete (groups B.1, B.2, B.4; transactions E.4)."""

from uuid import UUID

import pytest

from broker.settings.releases import Behaviour
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.group import OffsetCommit, OffsetCommitTombstone
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from tests.coordination.group.harness import START_MS, Client, Context, G, stable

OK, NEW_ID, OLD_ID = ErrorCode.NONE, UUID(int=2), UUID(int=1)


def fetch(context: Context, *topics: OffsetFetchRequestTopics) -> OffsetFetchResponseGroup:
    """OffsetFetch of these topics, or of all."""
    wanted = OffsetFetchRequestGroup(G, list(topics) or None)
    return context.machine.fetch_offsets(wanted, require_stable=True)


def delete(context: Context, topic: str, *partitions: int) -> dict[int, ErrorCode] | ErrorCode:
    """OffsetDelete in one topic: codes by partition, or the code of the whole request."""
    topics = [OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(index) for index in partitions])]
    request = OffsetDeleteRequest(G, topics)
    answer = context.ask(lambda to: context.machine.delete_offsets(request, context.now_ms, to))
    if isinstance(answer.message, KafkaError):
        return answer.message.code
    return {p.partition_index: p.error_code for p in answer.message.topics[0].partitions}


@pytest.mark.parametrize(
    ("knows", "code"), [(False, ErrorCode.ILLEGAL_GENERATION), (True, ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_OFF_02_a_generation_needs_a_group(knows: bool, code: ErrorCode) -> None:
    """ILLEGAL_GENERATION up to version 8, GROUP_ID_NOT_FOUND from 9 on; no group is created."""
    context = Context()
    assert context.commit("foo", {0: 5}, 3, "m", knows_stale_epochs=knows) is code
    assert not context.machine.groups


def test_a_commit_keeps_the_session() -> None:
    """It renews the session as a heartbeat does (groups B.1)."""
    context = Context()
    (client,) = stable(Client(context))
    context.advance(9999)
    context.commit("foo", {0: 6}, client.generation, client.member_id)
    context.advance(9999)
    assert client.heartbeat() is OK


def test_a_group_is_made_even_if_no_offset_was_accepted() -> None:
    """In memory only: it is gone with the coordinator."""
    context = Context()
    context.commit("foo", {0: 1}, metadata={0: "x" * 4097})
    assert G in context.machine.groups
    assert not context.reloaded().machine.groups


def test_commits_that_are_not_replicated_are_not_fetched() -> None:
    """OffsetFetch answers what they replace, each until its own turn: offsets of the log's high watermark."""
    context = Context()
    context.commit("foo", {0: 5})
    context.followers_lag = True
    context.commit("foo", {0: 6, 1: 1})
    context.commit("foo", {0: 7})
    first, second = context.records[1:3], context.records[3:]
    assert (context.offset("foo"), context.offset("foo", 1)) == (5, -1)
    assert [each.name for each in fetch(context).topics] == ["foo"]
    context.machine.replicated(first)
    assert (context.offset("foo"), context.offset("foo", 1)) == (6, 1)
    context.machine.replicated(second)
    assert context.offset("foo") == 7


def test_a_topic_whose_first_commit_is_not_replicated_is_not_listed() -> None:
    """A fetch of all offsets has no entry of it, not even an empty one."""
    context = Context()
    context.commit("foo", {0: 5})
    context.followers_lag = True
    context.commit("bar", {0: 6})
    everything = OffsetFetchRequestGroup(G, None)
    assert [each.name for each in context.machine.fetch_offsets(everything, require_stable=False).topics] == ["foo"]
    context.machine.replicated(context.records[1:])
    assert [each.name for each in context.machine.fetch_offsets(everything, require_stable=False).topics] == [
        "foo",
        "bar",
    ]


def test_a_deletion_that_is_not_replicated_is_not_seen() -> None:
    """The offset is there until all replicas in sync know that it is gone."""
    context = Context()
    context.commit("foo", {0: 5})
    context.followers_lag = True
    assert delete(context, "foo", 0) == {0: OK}
    assert context.offset("foo") == 5
    context.machine.replicated(context.records[-1:])
    assert context.offset("foo") == -1


def test_a_retention_without_end_wraps() -> None:
    """Quirk: the offset is stored, and has expired by the next check (``OffsetMetadataManager.expireTimestampMs``)."""
    context = Context({"offsets.retention.check.interval.ms": 700})
    assert context.commit("foo", {0: 5}, retention_time_ms=2**63 - 1) == {0: OK}
    assert context.records == [OffsetCommit(G, "foo", 0, 5, -1, "", START_MS, START_MS - 1 - 2**63, version=1)]
    context.advance(699)
    assert context.offset("foo") == 5
    context.advance(1)
    assert context.offset("foo") == -1


def test_an_older_broker_stores_no_topic_ids() -> None:
    """Values of version 3 (before 4.1)."""
    context = Context(behaves=lambda behaviour: behaviour is not Behaviour.TOPIC_IDS_OF_OFFSETS)
    context.commit("foo", {0: 5}, topic_id=OLD_ID)
    assert context.records == [OffsetCommit(G, "foo", 0, 5, -1, "", START_MS, version=3)]


def test_a_commit_that_cannot_be_remembered_is_refused() -> None:
    """A commit whose record the log refuses changes nothing, and its client gets the error."""
    context = Context(refuse_append=ErrorCode.NOT_ENOUGH_REPLICAS)
    assert context.commit("foo", {0: 5}) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert not context.machine.groups


def test_all_offsets_are_fetched_by_topic() -> None:
    """Without topics: what is committed, and nothing else."""
    context = Context()
    assert fetch(context) == OffsetFetchResponseGroup(G, [])
    context.commit("foo", {0: 5, 2: 7})
    context.commit("bar", {1: 6})
    assert fetch(context).topics == [
        OffsetFetchResponseTopics("foo", [OffsetFetchResponsePartitions(0, 5), OffsetFetchResponsePartitions(2, 7)]),
        OffsetFetchResponseTopics("bar", [OffsetFetchResponsePartitions(1, 6)]),
    ]


def test_an_absent_group_has_no_offsets() -> None:
    """No error, and offset -1 for each named partition."""
    answer = fetch(Context(), OffsetFetchRequestTopics("foo", [0]))
    assert answer.error_code is OK
    assert answer.topics[0].partitions == [OffsetFetchResponsePartitions(0, -1, -1, "")]


def test_unknown_subscriptions_are_subscriptions_to_everything() -> None:
    """A "consumer" group whose metadata cannot be read (groups B.4)."""
    context = Context()
    (client,) = stable(Client(context))
    context.commit("foo", {0: 5}, client.generation, client.member_id)
    assert delete(context, "foo", 0) == {0: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}


def test_offsets_of_other_protocol_types_are_deleted_when_empty() -> None:
    """NON_EMPTY_GROUP while there are members, GROUP_ID_NOT_FOUND without a group."""
    context = Context()
    assert delete(context, "foo", 0) is ErrorCode.GROUP_ID_NOT_FOUND
    (client,) = stable(Client(context, protocol_type="connect"))
    context.commit("foo", {0: 5}, client.generation, client.member_id)
    assert delete(context, "foo", 0) is ErrorCode.NON_EMPTY_GROUP
    context.leave(client.identity())
    assert delete(context, "foo", 0) == {0: OK}
    assert context.offset("foo") == -1


def test_a_deleted_topic_takes_its_offsets_along() -> None:
    """In all groups, where the stored id is its own or unknown (groups B.4)."""
    context = Context()
    context.commit("foo", {0: 1}, topic_id=OLD_ID)
    context.commit("foo", {1: 2}, topic_id=NEW_ID)
    context.commit("foo", {0: 3}, group_id="h")
    context.commit("bar", {0: 4}, topic_id=OLD_ID)
    outcome = context.machine.topic_deleted("foo", OLD_ID, context.now_ms)
    assert outcome.records == (OffsetCommitTombstone(G, "foo", 0), OffsetCommitTombstone("h", "foo", 0))
    context.perform(outcome)
    assert (context.offset("foo", 0), context.offset("foo", 1), context.offset("bar")) == (-1, 2, 4)
