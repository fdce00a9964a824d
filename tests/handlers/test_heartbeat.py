"""Heartbeat at the handler: groups A.8, 0.6."""

from broker.handlers.heartbeat import API
from protocol.errors import ErrorCode
from protocol.messages.heartbeat import HeartbeatRequest
from tests.handlers.group_harness import Stage
from tests.versions import every_version


@every_version(API)
async def test_a_member_is_alive(version: int) -> None:
    """In every version; the next generation is none of its business."""
    stage = Stage()
    member_id, generation = await stage.join()

    async def code(number: int) -> ErrorCode:
        answer: ErrorCode = (await stage.ask(API, HeartbeatRequest("g", number, member_id), version)).error_code
        return answer

    assert await code(generation) is ErrorCode.NONE
    assert await code(generation + 1) is ErrorCode.ILLEGAL_GENERATION


async def test_CLS_41_everybody_is_alive_while_the_shard_loads() -> None:
    """Quirk, on purpose: no member is to be lost to a failover."""
    stage = Stage()
    for index in range(2):
        stage.coordinate(index, load=False)
    assert (await stage.ask(API, HeartbeatRequest("g", 7, "m"), 4)).error_code is ErrorCode.NONE
    stage.coordinators.groups.clear()
    assert (await stage.ask(API, HeartbeatRequest("g", 7, "m"), 4)).error_code is ErrorCode.NOT_COORDINATOR
