"""Internal topics that a heartbeat of a streams group creates (groups E.5)."""

from types import SimpleNamespace
from typing import Any, cast

from broker.coordination.group.modern.streams.configuration import InternalTopic, Status
from broker.coordination.group.modern.streams.step import HeartbeatResult
from broker.handlers import APIS
from broker.handlers.streams_group_heartbeat import API
from broker.request.streams_topics import create_internal_topics
from protocol.messages.streams_group_heartbeat import Status as Reported
from protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse
from tests.handlers.admin_harness import AdminStage, StagedContext


def detail(stage: AdminStage, *topics: InternalTopic) -> str:
    """What a heartbeat reports that creates these topics."""
    node = stage.cluster.nodes[1]
    ctx = StagedContext(API, 0, 1, "test", stage.connection, node, cast("Any", stage.cluster), apis=APIS)
    status = Reported(Status.MISSING_INTERNAL_TOPICS, "missing")
    create_internal_topics("g", HeartbeatResult(StreamsGroupHeartbeatResponse(status=[status]), topics), ctx)
    return str(status.status_detail)


def test_too_many_partitions_are_not_created() -> None:
    """A policy violation as of CreateTopics, in the next heartbeat's status: two billion would fill the memory."""
    stage, wanted = AdminStage(), [InternalTopic("rep", 2_000_000_000, -1, {}), InternalTopic("log", 1, -1, {})]
    assert detail(stage, *wanted) == "missing"
    problem = "Excessively large number of partitions per request."
    assert detail(stage, *wanted) == f"missing; Creation failed: rep ({problem}), log ({problem})."
    assert not stage.image.topics


async def test_failures_are_remembered_of_a_thousand_topics() -> None:
    """The oldest are forgotten first: names are the clients' to make up."""
    stage = AdminStage()
    detail(stage, *(InternalTopic(f"a b{number}", 1, -1, {}) for number in range(1500)))
    known = stage.cluster.nodes[1].streams_topic_failures
    assert (len(known), next(iter(known))) == (1000, "a b500")


async def test_a_creation_that_fails_without_a_message_has_kafkas_text() -> None:
    """If the creation of an internal topic fails without a message, the status has the text of the error code."""
    stage, wanted = AdminStage(), InternalTopic("log", 1, -1, {})
    exceeded = SimpleNamespace(mutations=SimpleNamespace(charge=lambda *_, **__: 1_000))
    stage.cluster.nodes[stage.cluster.controller_id].quotas = cast("Any", exceeded)
    detail(stage, wanted)
    assert detail(stage, wanted) == "missing; Creation failed: log (The throttling quota has been exceeded.)."
