"""ShareFetches that end without records: on a lost connection, throttled, overtaken (groups D.5)."""

from uuid import UUID

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.share_fetch import ShareFetchResponse
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from protocol.types import uuid_text
from tests.conftest import BrokerWith
from tests.scenarios.core.asking import create, produced, topic
from tests.scenarios.core.batches import batch
from tests.scenarios.groups.sharers import SHARE_KEY, SHARE_SETTINGS, SHARES, Sharer, configure, initialize, only
from tests.scenarios.limits import client, limit
from tests.server import Server, until
from tests.wire import Wire

WAIT_MS = 10_000
LIMITED = "limited"
UPGRADE, UNSAFE = 1, 3


@pytest.fixture
def server(broker_with: BrokerWith) -> Server:
    """Two brokers whose clock moves only when it is pushed."""
    server = broker_with(brokers=2, settings=SHARE_SETTINGS)
    server.freeze()
    return server


def divided(server: Server) -> Sharer:
    """A member at broker 2, which leads partition 1 of two; the other one has its leader at broker 1."""
    wire = server.wire()
    (result,) = create(wire, topic("foo", -1, -1, assignments={0: [1], 1: [2]}, configs={"retention.ms": "-1"}))
    assert result.topic_id is not None, result.error_message
    configure(wire, share_auto_offset_reset="earliest")
    initialize(server.wire(coordinator(wire, result.topic_id, 1)), result.topic_id, 1)
    return Sharer(server.wire(2, client_id=LIMITED), result.topic_id, partitions=(0, 1))


def coordinator(wire: Wire, topic_id: UUID, partition: int) -> int:
    """The broker that keeps the state of a share partition, asked for until it is there."""
    request = FindCoordinatorRequest(
        key_type=SHARE_KEY, coordinator_keys=[f"{SHARES}:{uuid_text(topic_id)}:{partition}"]
    )

    def ready() -> int | None:
        (coordinator_entry,) = wire.call(ApiKey.FIND_COORDINATOR, 6, request).coordinators
        return int(coordinator_entry.node_id) if coordinator_entry.error_code is ErrorCode.NONE else None

    return until(ready, "a share coordinator")


def leaders(server: Server, response: ShareFetchResponse) -> bool:
    """Whether the response has the address of broker 1, and of no other."""
    return [f"{each.node_id}@{each.host}:{each.port}" for each in response.node_endpoints] == [
        f"1@{server.addresses[0]}"
    ]


def test_a_fetch_whose_connection_is_lost_acquires_nothing(server: Server) -> None:
    """The records that its session releases are for the others at once."""
    member = divided(server)
    member.partitions = (1,)
    produced(server.wire(2), "foo", batch(b"0", b"1"), partition=1)
    assert member.first() == [(0, 1, 1)]
    peer = Sharer(server.wire(2), member.topic_id, "m2", partitions=(1,))
    assert peer.acquired() == []
    member.wire.send(ApiKey.SHARE_FETCH, 2, member.request(max_wait_ms=WAIT_MS, min_bytes=1 << 19))
    member.wire.close()
    assert until(peer.acquired, "released records") == [(0, 1, 2)]


def test_a_throttled_fetch_names_the_new_leaders(server: Server) -> None:
    """Though it has none of the partitions that are led elsewhere (KIP-951)."""
    member = divided(server)
    member.partitions = (0,)
    first = member.fetch()
    assert only(first).error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert leaders(server, first)
    limit(server.wire(), client(LIMITED), consumer_byte_rate=2)
    throttled = member.fetch()
    assert throttled.throttle_time_ms > 0
    assert (throttled.error_code, list(throttled.responses)) == (ErrorCode.NONE, [])
    assert leaders(server, throttled)


def test_a_fetch_that_is_overtaken_names_the_new_leaders(server: Server) -> None:
    """Another request has used its session while it waited (groups D.5 SF12)."""
    member = divided(server)
    member.fetch()
    member.wire.send(ApiKey.SHARE_FETCH, 2, member.request(max_wait_ms=WAIT_MS))
    other = Sharer(server.wire(2), member.topic_id, epoch=2)
    until(lambda: other.fetch().error_code is ErrorCode.NONE, "the first one has begun")
    server.advance(WAIT_MS)
    overtaken = member.wire.answer()
    assert (overtaken.error_code, list(overtaken.responses)) == (ErrorCode.INVALID_SHARE_SESSION_EPOCH, [])
    assert leaders(server, overtaken)


def test_sessions_end_where_the_cluster_has_share_groups_no_more(server: Server) -> None:
    """share.version 0 forgets sessions and share partitions at each broker; records come again when it is back."""
    member = divided(server)
    member.partitions = (1,)
    produced(server.wire(2), "foo", batch(b"0", b"1"), partition=1)
    assert member.first() == [(0, 1, 1)]
    for level, kind in ((0, UNSAFE), (1, UPGRADE)):
        update = UpdateFeaturesRequest(60_000, [FeatureUpdateKey("share.version", level, upgrade_type=kind)])
        assert not server.wire().call(ApiKey.UPDATE_FEATURES, 2, update).error_code
    assert member.fetch().error_code is ErrorCode.SHARE_SESSION_NOT_FOUND
    member.epoch = 0
    assert [each[:2] for each in member.first()] == [(0, 1)]
