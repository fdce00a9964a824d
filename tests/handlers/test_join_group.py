"""JoinGroup at the handler: groups A.4, by version."""

import asyncio

from broker.handlers.join_group import API
from broker.request.context import AclOperation
from protocol.errors import ErrorCode
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from tests.handlers.group_harness import Stage
from tests.versions import every_version


def request(**fields: object) -> JoinGroupRequest:
    """A first join."""
    protocols = [JoinGroupRequestProtocol("range", b"meta")]
    values = {
        "group_id": "g",
        "session_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "rebalance_timeout_ms": 60_000,
    }
    return JoinGroupRequest(**{"protocols": protocols, **values, **fields})  # type: ignore[arg-type]


def refusal(code: ErrorCode, member_id: str, version: int) -> JoinGroupResponse:
    """What a failed join looks like in that version."""
    return JoinGroupResponse(code, protocol_name=None if version >= 7 else "", member_id=member_id)


@every_version(API, since=4)
async def test_CLS_01_a_first_join_is_answered_with_a_member_id(version: int) -> None:
    """From v4 on a first join is answered with MEMBER_ID_REQUIRED and the id to return with."""
    answer = await Stage().ask(API, request(), version)
    assert answer.member_id.startswith("client-")
    assert answer == refusal(ErrorCode.MEMBER_ID_REQUIRED, answer.member_id, version)


@every_version(API)
async def test_CLS_02_03_a_member_joins(version: int) -> None:
    """Directly, or with the id that it was given; in version 0 the session timeout is the rebalance timeout."""
    stage = Stage()
    member_id = (await stage.ask(API, request(), version)).member_id if version >= 4 else ""
    joining = asyncio.ensure_future(stage.ask(API, request(member_id=member_id), version))
    await asyncio.wait({joining}, timeout=0)
    stage.clock.advance(0)
    answer = await joining
    assert (answer.error_code, answer.generation_id, answer.protocol_name) == (ErrorCode.NONE, 1, "range")
    assert answer.protocol_type == ("consumer" if version >= 7 else None)
    assert answer.leader == answer.member_id == answer.members[0].member_id
    group = stage.group_coordinator("g").machine.administration.describe("g")
    assert group.members[0].client_host == "/127.0.0.1"
    member = stage.group_coordinator("g").machine.groups["g"].members[answer.member_id]  # type: ignore[attr-defined]
    assert member.rebalance_timeout_ms == (10_000 if version == 0 else 60_000)


@every_version(API, since=4)
async def test_a_protocol_with_the_empty_name_is_null_since_v7(version: int) -> None:
    """As every response without the name of a protocol."""
    stage = Stage()
    protocols = [JoinGroupRequestProtocol("", b"meta")]
    member_id = (await stage.ask(API, request(protocols=protocols), version)).member_id
    joining = asyncio.ensure_future(stage.ask(API, request(protocols=protocols, member_id=member_id), version))
    await asyncio.wait({joining}, timeout=0)
    stage.clock.advance(0)
    answer = await joining
    assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, 1)
    assert answer.protocol_name == (None if version >= 7 else "")


async def test_a_join_does_not_wait_for_replicas() -> None:
    """Neither for its group's record nor for those of others (groups A.4 J5); assignments wait for theirs."""
    stage = Stage()
    log = stage.log_of("g")
    log.replicated_to = 0
    member_id = (await asyncio.wait_for(stage.ask(API, request(), 9), 60)).member_id
    joining = asyncio.ensure_future(stage.ask(API, request(member_id=member_id), 9))
    await asyncio.wait({joining}, timeout=0)
    stage.clock.advance(0)
    await asyncio.sleep(0)
    assert joining.done()
    assert joining.result().generation_id == 1


async def test_joining_needs_read_on_the_group() -> None:
    """GROUP_AUTHORIZATION_FAILED, without a member id."""
    answer = await Stage().ask(API, request(member_id="m"), 9, {(AclOperation.READ, "g")})
    assert answer == refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED, "", 9)


async def test_CLS_41_joins_are_refused_while_the_shard_loads() -> None:
    """COORDINATOR_LOAD_IN_PROGRESS; NOT_COORDINATOR where the broker does not lead the shard."""
    stage = Stage()
    for index in range(2):
        stage.coordinate(index, load=False)
    answer = await stage.ask(API, request(member_id="m"), 9)
    assert answer == refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "", 9)
    stage.coordinators.groups.clear()
    assert (await stage.ask(API, request(), 9)).error_code is ErrorCode.NOT_COORDINATOR


async def test_a_parked_join_is_answered_when_the_coordinator_moves() -> None:
    """NOT_COORDINATOR, with its member id."""
    stage = Stage(group_initial_rebalance_delay_ms="3000")
    joining = asyncio.ensure_future(stage.ask(API, request(), 3))
    await asyncio.wait({joining}, timeout=0)
    stage.group_coordinator("g").close()
    answer = await joining
    assert answer.error_code is ErrorCode.NOT_COORDINATOR
    assert answer.member_id.startswith("client-")


async def test_a_group_that_cannot_be_remembered_is_not_joined() -> None:
    """The log's error under the name that clients know."""
    stage = Stage()
    stage.log_of("g").refuse = ErrorCode.NOT_ENOUGH_REPLICAS
    assert await stage.ask(API, request(), 3) == refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, "", 3)
