"""A streams group (KIP-1071) moves with its directory to Apache Kafka and back; its members go on."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from protocol.apis import ApiKey
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.streams_group_describe import DescribedGroup
from protocol.messages.streams_group_heartbeat import Subtopology, TopicInfo
from tests.scenarios.core.asking import created
from tests.scenarios.groups.members import G
from tests.scenarios.groups.streams import StreamsMember, described
from tests.serving import until
from tests.swap.nodes import Node
from tests.wire import Wire

pytestmark = [pytest.mark.interop, pytest.mark.timeout(240)]
TOPOLOGY = [Subtopology("0", ["in"], (), [TopicInfo("changelog")])]


@contextmanager
def coordinator(node: Node, members: Sequence[StreamsMember] = ()) -> Iterator[Wire]:
    """A connection to the node once it coordinates the group; the members use it from then on."""
    with Wire(node.bootstrap) as wire:

        def ready() -> bool | None:
            wire.call(ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=[G]))
            return described(wire).error_code not in (14, 15, 16) or None

        until(ready, "the coordinator", 60)
        for member in members:
            member.wire = wire
        yield wire


def settled(members: list[StreamsMember], tasks: int) -> None:
    """Return when the members have so many active tasks together."""

    def done() -> bool | None:
        for member in members:
            assert member.confirm().error_code == 0
        assigned_tasks = sum(len(each) for member in members for each in member.active.values())
        return (assigned_tasks == tasks and len({member.epoch for member in members}) == 1) or None

    until(done, "the tasks", 30)


def stable(wire: Wire, members: Sequence[StreamsMember]) -> None:
    """Return when the group has nothing left to assign."""

    def done() -> bool | None:
        for member in members:
            assert member.confirm().error_code == 0
        return described(wire, G).group_state == "Stable" or None

    until(done, "a stable group", 30)


def seen(wire: Wire) -> tuple[object, ...]:
    """What a description has: members by id, and the topology by its subtopologies."""
    group: DescribedGroup = described(wire)
    assert group.topology is not None
    members = {
        each.member_id: (each.member_epoch, each.process_id, each.topology_epoch, each.assignment,
                         each.target_assignment)
        for each in group.members
    }  # fmt: skip
    return (
        group.group_epoch,
        group.assignment_epoch,
        members,
        [each.subtopology_id for each in group.topology.subtopologies or ()],
    )


def test_a_group_goes_to_kafka_and_back(node: Node) -> None:
    """The same epochs, members, targets and topology there; heartbeats go on, and a member leaves in Kafka."""
    node.start_ours()
    with coordinator(node) as wire:
        created(wire, "in", 4)
        members = [StreamsMember(wire, TOPOLOGY, f"m{at}", f"p{at}") for at in (1, 2)]
        for member in members:
            member.join()
        settled(members, 4)
        before, tasks = seen(wire), [dict(member.active) for member in members]
    node.stop()
    node.start_kafka()
    with coordinator(node, members) as wire:
        assert seen(wire) == before
        for member in members:
            response = member.beat()
            assert (response.error_code, response.member_epoch, response.active_tasks) == (0, member.epoch, None)
        assert [member.active for member in members] == tasks
        assert members[1].beat(-1).error_code == 0
        settled(members[:1], 4)
        after = seen(wire)
    assert node.kafka_complaints() == []
    node.stop()
    node.start_ours()
    with coordinator(node, members) as wire:
        assert seen(wire) == after
        assert members[0].confirm().error_code == 0
        members[1].join()
        settled(members, 4)
        stable(wire, members)
