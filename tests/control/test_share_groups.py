"""Share groups over HTTP: which member has which record, since when and how often; steered."""

from collections.abc import Callable, Sequence

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.control.chromium import Page
from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane
from tests.scenarios.core.asking import metadata
from tests.scenarios.groups.sharers import (
    ACCEPT,
    RELEASE,
    SHARE_SETTINGS,
    SHARES,
    Sharer,
    acquired_of,
    configure,
)
from tests.serving import until
from understudy import results

LOCK_MS = 30_000
Share = tuple[ControlPlane, Sharer]


@pytest.fixture
def share(plane_of: ControlPlaneOf) -> Share:
    """A group with a member that has acquired the three records of t-0; the clock is frozen."""
    settings = {**SHARE_SETTINGS, "group.share.assignment.interval.ms": 0}
    plane = plane_of(settings=settings, topics=["t:1"])
    plane.server.make_coordinators()
    plane.server.freeze()
    plane.kafka.topics["t"].write(*({"value": each, "partition": 0} for each in "abc"))
    wire = plane.server.wire()
    configure(wire, share_auto_offset_reset="earliest")
    request = ShareGroupHeartbeatRequest(SHARES, "m1", 0, None, ["t"])
    assert wire.call(ApiKey.SHARE_GROUP_HEARTBEAT, 1, request).error_code is ErrorCode.NONE
    (described,) = metadata(wire, "t")
    assert described.topic_id is not None
    member = Sharer(wire, described.topic_id)
    until(lambda: member.acquired() or None, "records")
    return plane, member


def records(plane: ControlPlane) -> Sequence[results.ShareRecords]:
    """The group's records in flight."""
    (partition,) = plane.kafka.groups[SHARES].show().share_partitions
    assert (partition.topic, partition.partition, partition.leader) == ("t", 0, 1)
    return partition.records


def test_records_in_flight_are_shown(share: Share) -> None:
    """By offset: the member, since when, how often, and until when it is locked; also in the shell."""
    plane, member = share
    now_ms = plane.server.now_ms()
    (held,) = records(plane)
    assert (held.first_offset, held.last_offset, held.state, held.delivery_count) == (0, 2, "acquired", 1)
    assert (held.member_id, held.since_ms, held.lock_until_ms) == ("m1", now_ms, now_ms + LOCK_MS)
    assert member.ack(1, 1, RELEASE) is ErrorCode.NONE
    assert member.ack(2, 2, ACCEPT) is ErrorCode.NONE
    assert [(each.first_offset, each.state, each.member_id) for each in records(plane)] == [
        (0, "acquired", "m1"),
        (1, "available", None),
        (2, "acknowledged", None),
    ]
    assert plane.ctl("groups", "show", SHARES)["share_partitions"][0]["start_offset"] == 0


def test_the_report_shows_the_last_delivery_and_leaves_out_polls(share: Share) -> None:
    """A record that is released again and again is archived without an error anywhere: the hint is what shows it."""
    plane, member = share
    member.ack(0, 0, ACCEPT)
    member.ack(2, 2, ACCEPT)
    wanted = (
        f"share group {SHARES} got offset 1 of t-0 5 times, as often as share.delivery.count.limit allows: unless "
        "accepted, a record is archived then, not delivered again"
    )
    for _ in range(4):
        assert wanted not in plane.kafka.report().hints
        assert member.ack(1, 1, RELEASE) is ErrorCode.NONE
        until(lambda: member.acquired() or None, "the record")
    assert member.ack(1, 1, RELEASE) is ErrorCode.NONE
    assert (member.acquired(max_wait_ms=0), records(plane)) == ([], ())
    report = plane.kafka.report()
    assert wanted in report.hints
    fetched = plane.kafka.journal.find(api="ShareFetch")
    shown = [each for each in report.requests if each.api == "ShareFetch"]
    assert 0 < len(shown) < len(fetched), "only those that acquired records, or acknowledged some"


def test_the_lag_is_what_is_not_delivered_for_good(share: Share) -> None:
    """As DescribeShareGroupOffsets answers it (KIP-1226), over HTTP and in the shell; a group has the sum."""
    plane, member = share
    wire = member.wire
    request = DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup(SHARES, None)])

    def lag() -> int:
        (group,) = wire.call(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, request).groups
        (partition,) = group.topics[0].partitions
        shown_group = plane.kafka.groups[SHARES].show()
        (listed,) = shown_group.lags
        assert (listed.topic, listed.partition, listed.end_offset) == ("t", 0, 3)
        start, left = (None if each == -1 else each for each in (partition.start_offset, partition.lag))
        assert (listed.offset, listed.lag) == (start, left)
        assert listed.lag == shown_group.lag == plane.kafka.groups.list()[0].lag
        return int(partition.lag)

    assert lag() == -1, "its leader has stored nothing yet: the tools show a dash"
    assert member.ack(1, 1, ACCEPT) is ErrorCode.NONE
    assert lag() == 2
    assert member.ack(0, 0, ACCEPT) is ErrorCode.NONE
    assert lag() == 1
    (row,) = [line.split() for line in plane.ctl_text("groups", "list").splitlines() if line.startswith(SHARES)]
    assert row[-1] == "1"


def test_locks_end_by_the_clock(share: Share) -> None:
    """Pushed past the lock, the records are available, once more."""
    plane, member = share
    plane.server.advance(LOCK_MS)
    (free,) = records(plane)
    assert (free.state, free.delivery_count, free.member_id) == ("available", 1, None)
    assert member.acquired() == [(0, 2, 2)]


def test_a_record_that_comes_again_shows_why(share: Share) -> None:
    """Who had it before, from when to when, and how that ended; also while another member has it."""
    plane, member = share
    begun_ms = plane.server.now_ms()
    assert records(plane)[0].last_end is None
    plane.server.advance(1_000)
    assert member.ack(0, 0, RELEASE) is ErrorCode.NONE
    plane.server.advance(LOCK_MS)
    released, expired = records(plane)
    assert (released.last_member_id, released.last_since_ms, released.last_ended_ms) == (
        "m1",
        begun_ms,
        begun_ms + 1_000,
    )
    assert released.last_end == "released by its member"
    assert (expired.last_ended_ms, expired.last_end) == (begun_ms + LOCK_MS, "its lock ended")
    peer = Sharer(plane.server.wire(), member.topic_id, "m2")
    assert peer.acquired() == [(0, 2, 2)]
    assert [(each.member_id, each.last_member_id) for each in records(plane)] == [("m2", "m1"), ("m2", "m1")]


@pytest.mark.parametrize(
    ("api", "ask"),
    [
        ("ShareFetch", lambda member: member.fetch().error_code),
        ("ShareAcknowledge", lambda member: member.acknowledge((0, 2, [ACCEPT])).error_code),
    ],
)
def test_faults_refuse_share_requests(share: Share, api: str, ask: Callable[[Sharer], ErrorCode]) -> None:
    """Once; the next request is served, and the records are as before."""
    plane, member = share
    plane.http("POST", "/v1/faults", {"match": {"api": api}, "do": {"error": "COORDINATOR_NOT_AVAILABLE"}, "times": 1})
    assert ask(member) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert ask(member) is ErrorCode.NONE


def test_why_names_a_refused_acknowledgement(share: Share) -> None:
    """The code, the rule and the request; in a ShareAcknowledge and in a ShareFetch."""
    plane, member = share
    peer = Sharer(plane.server.wire(), member.topic_id, "m2")
    assert peer.acquired() == []
    assert peer.ack(0, 2, ACCEPT) is ErrorCode.INVALID_RECORD_STATE
    why = plane.kafka.groups[SHARES].why()
    assert (why.error, why.rule) == ("INVALID_RECORD_STATE", "groups D.6")
    assert "their acquisition lock may have timed out" in why.why
    assert "ShareAcknowledge v2 of client `test`" in why.why
    assert peer.fetch(acks=[(7, 8, [ACCEPT])]).error_code is ErrorCode.NONE
    why = plane.kafka.groups[SHARES].why()
    assert (why.error, why.rule) == ("INVALID_REQUEST", "groups D.5")
    assert "beyond the records in flight" in why.why
    assert peer.fetch(epoch=1).error_code is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert "adds 1 to its epoch" in plane.kafka.groups[SHARES].why().why


def test_a_reset_forgets_records_in_flight(share: Share) -> None:
    """Sessions end, and the group is gone."""
    plane, member = share
    plane.server.reset()
    assert member.fetch().error_code is ErrorCode.SHARE_SESSION_NOT_FOUND


def test_a_snapshot_brings_back_what_was_written(share: Share) -> None:
    """What was acquired is available again; what was accepted stays accepted."""
    plane, member = share
    assert member.ack(0, 0, ACCEPT) is ErrorCode.NONE
    snapshot = plane.http("POST", "/v1/snapshots")["id"]
    assert member.ack(1, 2, ACCEPT) is ErrorCode.NONE
    plane.http("POST", f"/v1/snapshots/{snapshot}/restore")
    other = Sharer(plane.server.wire(), member.topic_id, "m2")
    assert until(lambda: acquired_of(other.fetch()) or None, "records") == [(1, 2, 1)]


@pytest.mark.interop
@pytest.mark.timeout(120)
def test_the_console_shows_how_far_the_group_is(page: Page, share: Share) -> None:
    """Share groups commit no offsets: each partition has a start, and records in flight by member."""
    plane, _ = share
    page.open(plane.url, "groups", SHARES)
    page.sees("Share partitions", "Group epoch", "Records in flight")
    cells = [cell.text for cell in page.row("broker 1").find_elements("tag name", "td")]
    assert cells == ["t", "0", "broker 1", "0", "\N{EN DASH}", "3", "3"]
    assert "Nothing is committed" not in page.text
