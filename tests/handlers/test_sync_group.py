"""SyncGroup at the handler: groups A.7."""

import asyncio

from broker.handlers.join_group import API as JOIN
from broker.handlers.sync_group import API
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.handlers.group_harness import Stage
from tests.handlers.test_join_group import request as join_request
from tests.versions import every_version


@every_version(API)
async def test_a_member_takes_its_assignment(version: int) -> None:
    """In every version; type and name from 5 on."""
    stage = Stage()
    member_id, generation = await stage.join()
    request = SyncGroupRequest("g", generation, member_id, protocol_type="consumer", protocol_name="range")
    answer = await stage.ask(API, request, version)
    named = ("consumer", "range") if version >= 5 else (None, None)
    assert answer == SyncGroupResponse(assignment=b"mine", protocol_type=named[0], protocol_name=named[1])


async def test_an_assignment_that_is_not_replicated_is_not_given_to_a_member_yet() -> None:
    """Not even to a member whose SyncGroup arrives after the leader's (groups A.7.6)."""
    stage = Stage()
    log = stage.log_of("g")
    member_id, generation = await stage.join()
    log.replicated_to = len(log.records)
    joined = asyncio.ensure_future(stage.ask(JOIN, join_request(member_id=member_id), 9))
    await asyncio.wait({joined}, timeout=0)
    stage.clock.advance(0)
    generation = (await joined).generation_id
    shares = [SyncGroupRequestAssignment(member_id, b"next")]
    syncs = [
        asyncio.ensure_future(stage.ask(API, SyncGroupRequest("g", generation, member_id, assignments=assignments), 4))
        for assignments in (shares, [])
    ]
    await asyncio.wait(syncs, timeout=0)
    assert not any(each.done() for each in syncs)
    log.replicate(len(log.records))
    assert [(await each).assignment for each in syncs] == [b"next", b"next"]
