"""DescribeGroups at the handler: groups A.13, by version."""

import pytest

from broker.handlers.describe_groups import API
from broker.request import groups
from broker.request.context import AclOperation
from broker.request.node import partition_for
from broker.request.response_budget import Allowance
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from tests.coordination.group.harness import Client, Context, stable
from tests.handlers.group_harness import SHARDS, Stage
from tests.versions import every_version

NOT_ASKED = -2147483648


@every_version(API)
async def test_a_group_is_described(version: int) -> None:
    """A group is described with its state, protocol and members."""
    stage = Stage()
    member_id, _ = await stage.join()
    (group,) = (await stage.ask(API, DescribeGroupsRequest(["g"]), version)).groups
    assert (group.error_code, group.group_id, group.group_state) == (ErrorCode.NONE, "g", "Stable")
    assert (group.protocol_type, group.protocol_data) == ("consumer", "range")
    (member,) = group.members
    assert (member.member_id, member.client_id, member.client_host) == (member_id, "client", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (b"meta", b"mine")
    assert group.authorized_operations == NOT_ASKED


@every_version(API)
async def test_CLS_42_an_absent_group_is_dead(version: int) -> None:
    """Without an error up to version 5, with code and message from 6 on."""
    answer = await Stage().ask(API, DescribeGroupsRequest(["none"]), version)
    expected = DescribedGroup(group_id="none", group_state="Dead", members=())
    if version >= 6:
        expected.error_code, expected.error_message = ErrorCode.GROUP_ID_NOT_FOUND, "Group none not found."
    assert answer.groups == (expected,)


async def test_a_refused_group_does_not_fail_the_others() -> None:
    """A denied or a loading group has its error and an empty state; the empty name is a name like others."""
    stage = Stage()
    await stage.join()
    stage.coordinate(partition_for("", SHARDS), load=False)
    answer = await stage.ask(API, DescribeGroupsRequest(["g", "", "secret"]), 5, {(AclOperation.DESCRIBE, "secret")})
    codes = {group.group_id: (group.error_code, group.group_state) for group in answer.groups}
    assert codes["secret"] == (ErrorCode.GROUP_AUTHORIZATION_FAILED, "")
    assert codes[""] == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "")
    assert codes["g"] == (ErrorCode.NONE, "Stable")


async def test_authorized_operations_are_returned_on_request() -> None:
    """The bits of what the requester may do; of groups that are there."""
    stage = Stage()
    await stage.join()
    request = DescribeGroupsRequest(["g", "none"], include_authorized_operations=True)
    answer = await stage.ask(API, request, 6)
    assert {group.group_id: group.authorized_operations for group in answer.groups} == {"g": 3400, "none": NOT_ASKED}
    answer = await stage.ask(API, request, 5, {(AclOperation.DELETE, "g")})
    assert {group.group_id: group.authorized_operations for group in answer.groups} == {
        "g": 3400 - (1 << 6),
        "none": 3400,
    }


async def test_a_refusal_is_answered_for_every_group() -> None:
    """A refusal is in each group's entry, because the API has no error at the top."""
    refused = API.refuse(DescribeGroupsRequest(["a", "b"]), KafkaError(ErrorCode.NOT_COORDINATOR), 5)
    assert [(group.group_id, group.error_code) for group in refused.groups] == [
        ("a", ErrorCode.NOT_COORDINATOR),
        ("b", ErrorCode.NOT_COORDINATOR),
    ]


async def test_groups_come_by_their_coordinators_partitions() -> None:
    """Denied ones first; then in the order of a hash table of partitions, as often as they are named (a real 4.4.0)."""
    stage = Stage()
    names = [f"g{number}" for number in range(60)]
    request = DescribeGroupsRequest([*names, "g1"])
    answer = await stage.ask(API, request, 6, {(AclOperation.DESCRIBE, "g9")})
    group_ids = [group.group_id for group in answer.groups]
    assert (group_ids[0], sorted(group_ids)) == ("g9", sorted([*names, "g1"]))
    partitions = [partition_for(name, SHARDS) for name in group_ids[1:]]
    assert [each for at, each in enumerate(partitions) if at == 0 or partitions[at - 1] != each] == list(
        dict.fromkeys(partitions)
    )
    assert group_ids[1:] != [*names[:9], *names[10:], "g1"]


def test_a_protocol_may_be_named_by_the_empty_text() -> None:
    """Its metadata are shown all the same (seen on 4.4.0)."""
    context = Context()
    (member,) = stable(Client(context, [("", b"meta")]))
    group = context.machine.administration.describe(member.group_id)
    assert (group.group_state, group.protocol_data) == ("Stable", "")
    assert [each.member_metadata for each in group.members] == [b"meta"]


async def test_a_group_is_not_described_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Named over and over, its members would fill the memory: the whole request is refused."""
    stage = Stage()
    await stage.join()
    monkeypatch.setattr(groups, "Allowance", lambda: Allowance(3))
    assert len((await stage.ask(API, DescribeGroupsRequest(["g"] * 3 + ["none"]), 6)).groups) == 4
    refused = await stage.ask(API, DescribeGroupsRequest(["g"] * 4), 6)
    assert {(group.error_code, tuple(group.members)) for group in refused.groups} == {(ErrorCode.INVALID_REQUEST, ())}
