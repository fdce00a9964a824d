"""Requests of a broker whose process has ended: they change nothing any more, as they die with it in Kafka."""

import pytest

from broker.steering.faults.actions import Delay
from broker.steering.faults.match import Match
from protocol.apis import ApiKey
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.scenarios.transactions.harness import Stage, running

DELAY_MS = 1_000
MATCH = Match(ApiKey.CREATE_TOPICS, broker=2)


def creating(topic: str) -> CreateTopicsRequest:
    """A request that creates a topic."""
    return CreateTopicsRequest([CreatableTopic(topic, 1, 1)], 10_000)


async def turns(stage: Stage, ms: int = 0) -> None:
    """Let time pass, and requests and responses arrive."""
    await stage.pass_time(ms)
    for _ in range(20):
        await stage.pass_time(0)


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("hung_up", [False, True])
@pytest.mark.parametrize("killed", [False, True])
async def test_requests_end_with_their_broker(restarted: bool, hung_up: bool, killed: bool) -> None:
    """The one in progress, which a fault delays, and the one behind it, also after their client has hung up."""
    async with running({}, brokers=2) as stage:
        stage.cluster.faults.add(MATCH, Delay(DELAY_MS), {})
        wire = await stage.connect(2)
        wire.send(ApiKey.CREATE_TOPICS, 7, creating("delayed"))
        wire.send(ApiKey.CREATE_TOPICS, 7, creating("behind"))
        await turns(stage)
        if hung_up:
            wire.close()
            await turns(stage)
        assert stage.topic_names() == set()
        if killed:
            stage.kill(2)
        else:
            await stage.stop(2)
        if restarted:
            await stage.start(2)
        await turns(stage, 2 * DELAY_MS)
        assert stage.topic_names() == set()
        again = await stage.connect(2 if restarted else 1)
        assert (await again.call(ApiKey.CREATE_TOPICS, 7, creating("again"))).topics[0].error_code == 0


async def test_requests_of_a_client_that_hung_up_are_served() -> None:
    """As long as their broker lives: a producer with acks=0 relies on it."""
    async with running({}, brokers=2) as stage:
        stage.cluster.faults.add(MATCH, Delay(DELAY_MS), {})
        wire = await stage.connect(2)
        wire.send(ApiKey.CREATE_TOPICS, 7, creating("delayed"))
        wire.send(ApiKey.CREATE_TOPICS, 7, creating("behind"))
        await turns(stage)
        wire.close()
        await turns(stage, 2 * DELAY_MS)
        assert stage.topic_names() == {"delayed", "behind"}
