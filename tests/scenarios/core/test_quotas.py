"""Client quotas (core G.10, A.6): how a client that exceeds one is throttled."""

from itertools import count

import pytest

from protocol.apis import ApiKey
from protocol.codec import encode_request
from protocol.errors import ErrorCode
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.fetch import FetchResponse
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.produce import ProduceResponse
from tests.scenarios.core.asking import create, exists, fetch_all, interest, produce_request, produced, topic
from tests.scenarios.core.batches import sized
from tests.scenarios.limits import Entity, client, limit
from tests.scenarios.on_kafka import TARGET, ours_alone
from tests.server import Server, until
from tests.wire import Wire

NAME = "foo"
KEPT = topic(NAME, configs={"retention.ms": "-1"})
"""The rows' records are of 2023: retention would take them away when its round comes."""
_numbers = count(1)
WINDOW_MS = 10_000
"""Ten full windows of a second: what the rate of a newcomer is measured over."""


@pytest.fixture
def admin(broker: Server) -> Wire:
    """A client without quotas."""
    return broker.wire()


@pytest.fixture
def limited(broker: Server) -> Wire:
    """A client for a quota: its client id is new, so it has used up nothing."""
    return broker.wire(client_id=f"limited-{next(_numbers)}")


# --- bytes -----------------------------------------------------------------------------------------------------------


def sent(wire: Wire, size: int, *, acks: int = 1, version: int = 9) -> tuple[int, int]:
    """Produce a batch of so many bytes: ThrottleTimeMs of the answer, and the size of the request in bytes."""
    request = produce_request({NAME: {0: sized(size)}}, acks=acks)
    response: ProduceResponse = wire.call(ApiKey.PRODUCE, version, request)
    assert response.responses[0].partition_responses[0].error_code is ErrorCode.NONE
    size_bytes = len(encode_request(ApiKey.PRODUCE, version, 1, wire.client_id, request)) - 4
    return response.throttle_time_ms, size_bytes


def test_QUO_02_a_produce_is_done_and_then_throttled(broker: Server, admin: Wire, limited: Wire) -> None:
    """Until its bytes, averaged over all windows, are within the quota again; other clients are not throttled."""
    create(admin, KEPT)
    limit(admin, client(limited.client_id), producer_byte_rate=1000)
    now_ms = broker.freeze()
    throttle_ms, size = sent(limited, 20_480)
    assert throttle_ms == size - WINDOW_MS
    limited.send(ApiKey.METADATA, 9, MetadataRequest([]))
    assert sent(admin, 20_480)[0] == 0
    assert not limited.has_answer()
    broker.advance(throttle_ms)
    assert limited.answer().throttle_time_ms == 0
    assert broker.now_ms() - now_ms >= throttle_ms


def test_QUO_02_below_the_quota_no_client_is_throttled(admin: Wire, limited: Wire) -> None:
    """A burst may be as large as all windows together."""
    create(admin, KEPT)
    limit(admin, client(limited.client_id), producer_byte_rate=1000)
    assert sent(limited, 9_000)[0] == 0
    assert sent(limited, 5_000)[0] > 0


def test_QUO_02_the_same_without_acknowledgement(broker: Server, admin: Wire, limited: Wire) -> None:
    """There is no response to carry the throttle time, but the connection is muted."""
    create(admin, KEPT)
    limit(admin, client(limited.client_id), producer_byte_rate=10_000)
    now_ms = broker.freeze()
    request = produce_request({NAME: {0: sized(104_000)}}, acks=0)
    limited.send(ApiKey.PRODUCE, 9, request, answered=False)
    limited.send(ApiKey.METADATA, 9, MetadataRequest([]))
    assert exists(admin, NAME)
    assert not limited.has_answer()
    broker.advance(1_000)
    assert limited.answer().throttle_time_ms == 0
    assert broker.now_ms() - now_ms >= 400
    assert produced(admin, NAME, sized(100)) == 1


def test_QUO_03_a_fetch_above_the_quota_is_answered_without_data(broker: Server, admin: Wire, limited: Wire) -> None:
    """And with how long to wait; when the windows are over there are data again."""
    create(admin, KEPT)
    for _ in range(4):
        produced(admin, NAME, sized(4_000))
    limit(admin, client(limited.client_id), consumer_byte_rate=1000)
    broker.freeze()

    def fetched(offset: int) -> FetchResponse:
        return fetch_all(limited, {NAME: [interest(0, offset, 4_000)]})

    for offset in (0, 1):
        response = fetched(offset)
        assert (response.throttle_time_ms, len(response.responses)) == (0, 1)
    empty = fetched(2)
    assert (list(empty.responses), empty.error_code) == ([], 0)
    assert 1_800 <= empty.throttle_time_ms <= 2_500
    broker.advance(12_000)
    response = fetched(2)
    assert (response.throttle_time_ms, len(response.responses)) == (0, 1)


def test_QUO_03_a_session_outlives_a_throttled_fetch(broker: Server, admin: Wire, limited: Wire) -> None:
    """Its epoch has advanced; and no session begins with one."""
    create(admin, KEPT)
    for _ in range(4):
        produced(admin, NAME, sized(4_000))
    broker.freeze()
    first = fetch_all(limited, {NAME: [interest(0, 0, 4_000)]}, session=(0, 0))
    assert first.session_id
    limit(admin, client(limited.client_id), consumer_byte_rate=300)
    empty = fetch_all(limited, {NAME: [interest(0, 1, 4_000)]}, session=(first.session_id, 1))
    assert (empty.session_id, list(empty.responses)) == (first.session_id, [])
    assert empty.throttle_time_ms > 0
    limit(admin, client(limited.client_id), consumer_byte_rate=None)
    broker.advance(empty.throttle_time_ms)
    second = fetch_all(limited, {NAME: [interest(0, 1, 4_000)]}, session=(first.session_id, 2))
    assert (second.error_code, len(second.responses)) == (0, 1)
    limit(admin, client(limited.client_id), consumer_byte_rate=300)
    none = fetch_all(limited, {NAME: [interest(0, 1, 4_000)]}, session=(0, 0))
    assert (none.session_id, list(none.responses), none.error_code) == (0, [], 0)
    assert none.throttle_time_ms > 0


def test_QUO_03_a_fetch_is_given_no_more_than_all_windows_hold(admin: Wire, limited: Wire) -> None:
    """A throttled fetch gets at most what all windows hold, however much it asks for."""
    create(admin, KEPT)
    for _ in range(5):
        produced(admin, NAME, sized(400))
    limit(admin, client(limited.client_id), consumer_byte_rate=100)
    response = fetch_all(limited, {NAME: [interest(0, 0, 100_000)]})
    assert response.throttle_time_ms > 0 or len(response.responses[0].partitions[0].records or b"") <= 1_000


# --- precedence ------------------------------------------------------------------------------------------------------


ABSENT = ""
RANKS: list[tuple[str | None, str | None]] = [
    (ABSENT, None),
    (ABSENT, "its own"),
    (None, ABSENT),
    (None, None),
    (None, "its own"),
    ("ANONYMOUS", ABSENT),
    ("ANONYMOUS", None),
    ("ANONYMOUS", "its own"),
]
"""User and client id, from the least specific entity to the most specific one."""


def ranked(rank: int, client_id: str) -> Entity:
    """The entity of a rank."""
    user, named = RANKS[rank]
    parts = {"user": user, "client-id": client_id if named == "its own" else named}
    return {kind: name for kind, name in parts.items() if name != ABSENT}


@pytest.mark.parametrize("rank", range(len(RANKS)))
def test_QUO_02_the_most_specific_entity_counts(admin: Wire, limited: Wire, rank: int) -> None:
    """A generous quota lets everything through that more general ones would not, and the other way round."""
    create(admin, KEPT)
    assert limited.client_id
    for general in range(rank):
        limit(admin, ranked(general, limited.client_id), producer_byte_rate=1_000)
    limit(admin, ranked(rank, limited.client_id), producer_byte_rate=10**9)
    assert sent(limited, 20_000)[0] == 0
    for general in range(rank):
        limit(admin, ranked(general, limited.client_id), producer_byte_rate=10**9)
    limit(admin, ranked(rank, limited.client_id), producer_byte_rate=1_000)
    assert sent(limited, 20_000)[0] > 0


def test_QUO_02_a_users_clients_share_its_quota(broker: Server, admin: Wire) -> None:
    """Those of a client id are each client's own."""
    create(admin, KEPT)
    one, other = broker.wire(client_id="one"), broker.wire(client_id="other")
    limit(admin, {"client-id": None}, producer_byte_rate=100_000)
    assert (sent(one, 600_000)[0], sent(other, 600_000)[0]) == (0, 0)
    limit(admin, {"client-id": None}, producer_byte_rate=None)
    limit(admin, {"user": "ANONYMOUS"}, producer_byte_rate=100_000)
    assert sent(one, 600_000)[0] == 0
    assert sent(other, 600_000)[0] > 0


def test_a_reset_cluster_throttles_no_client(broker: Server, admin: Wire, limited: Wire) -> None:
    """A client that has to wait for an hour need not, and nothing is used up."""
    if TARGET == "kafka":
        ours_alone("a reset")
    create(admin, KEPT)
    limit(admin, client(limited.client_id), producer_byte_rate=1)
    assert sent(limited, 3_600_000 // 1_000 * 2)[0] > 3_600_000
    broker.reset()
    create(admin, KEPT)
    limit(admin, client(limited.client_id), producer_byte_rate=1_000)
    assert sent(limited, 3_000)[0] == 0


# --- connections -----------------------------------------------------------------------------------------------------


def test_QUO_05_an_address_may_open_so_many_connections(broker: Server, admin: Wire) -> None:
    """As many at once as all windows together allow; the next one is not read, and closed after a second."""
    address = "127.0.0.3"
    limit(admin, {"ip": address}, connection_creation_rate=1)
    broker.freeze()
    for _ in range(10):
        assert exists(broker.wire(source=address), NAME) is False
    unwelcome = broker.wire(source=address)
    unwelcome.send(ApiKey.METADATA, 9, MetadataRequest([]))
    assert exists(broker.wire(source="127.0.0.4"), NAME) is False
    assert not unwelcome.has_answer()
    broker.advance(1_000)
    unwelcome.check_closed()


# --- requests --------------------------------------------------------------------------------------------------------


def test_CON_17_requests_take_time_that_a_quota_bounds(broker: Server, admin: Wire, limited: Wire) -> None:
    """By one window at most; the next request is read when it is over."""
    limit(admin, client(limited.client_id), request_percentage=0.00001)
    now_ms = broker.freeze()
    answer = limited.call(ApiKey.METADATA, 9, MetadataRequest([]))
    assert answer.throttle_time_ms == 1_000
    limited.send(ApiKey.METADATA, 9, MetadataRequest([]))
    assert admin.call(ApiKey.METADATA, 9, MetadataRequest([])).throttle_time_ms == 0
    assert not limited.has_answer()
    broker.advance(answer.throttle_time_ms)
    assert 0 < limited.answer().throttle_time_ms <= 1_000
    assert broker.now_ms() - now_ms >= 1_000


# --- changes of partitions -------------------------------------------------------------------------------------------


def creation(wire: Wire, name: str, partitions: int, version: int) -> tuple[int, str | None, int]:
    """CreateTopics of one topic: code, message and ThrottleTimeMs."""
    request = CreateTopicsRequest([topic(name, partitions)], 5_000)
    response: CreateTopicsResponse = wire.call(ApiKey.CREATE_TOPICS, version, request)
    (result,) = response.topics
    return result.error_code, result.error_message, response.throttle_time_ms


def test_QUO_04_what_exceeds_the_burst_is_refused_or_waited_for(broker: Server, admin: Wire, limited: Wire) -> None:
    """By the version: 6 refuses what finds no token left, 5 does it and waits."""
    limit(admin, client(limited.client_id), controller_mutation_rate=1)
    broker.freeze()
    assert creation(limited, "a", 20, 6) == (0, None, 0)
    code, message, throttle_ms = creation(limited, "b", 1, 6)
    assert (code, message) == (89, None)
    assert 4_000 <= throttle_ms <= 9_000
    assert not exists(admin, "b")
    broker.advance(throttle_ms)
    assert creation(limited, "b", 3, 5)[:2] == (0, None)


def test_QUO_04_an_older_version_does_it_and_waits(broker: Server, admin: Wire, limited: Wire) -> None:
    """For as long as tokens are missing."""
    limit(admin, client(limited.client_id), controller_mutation_rate=2)
    broker.freeze()
    code, message, throttle_ms = creation(limited, "a", 24, 5)
    assert (code, message) == (0, None)
    assert 900 <= throttle_ms <= 1_000
    assert exists(admin, "a")
    broker.advance(throttle_ms)


def test_QUO_04_partitions_that_are_added_or_go_cost_the_same(broker: Server, admin: Wire, limited: Wire) -> None:
    """Since versions 3 and 5 they are refused too; nothing is charged for what was refused."""
    for name in ("a", "b"):
        create(admin, topic(name))
    limit(admin, client(limited.client_id), controller_mutation_rate=1)
    broker.freeze()
    more = CreatePartitionsRequest([CreatePartitionsTopic("a", 17, None)], 5_000)
    answer = limited.call(ApiKey.CREATE_PARTITIONS, 3, more)
    assert (answer.results[0].error_code, answer.throttle_time_ms) == (0, 0)
    answer = limited.call(
        ApiKey.CREATE_PARTITIONS, 3, CreatePartitionsRequest([CreatePartitionsTopic("b", 2, None)], 5_000)
    )
    (result,) = answer.results
    assert (result.error_code, result.error_message) == (89, None)
    assert 0 < answer.throttle_time_ms <= 5_000
    broker.advance(answer.throttle_time_ms)
    gone = limited.call(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest([], 5_000, [DeleteTopicState("a")]))
    assert (gone.responses[0].error_code, gone.throttle_time_ms) == (0, 0)
    kept = limited.call(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest([], 5_000, [DeleteTopicState("b")]))
    (result,) = kept.responses
    assert (result.name, result.error_code, result.error_message) == ("b", 89, None)
    assert kept.throttle_time_ms > 10_000
    assert exists(admin, "b")
    assert not exists(admin, "a")


def test_QUO_04_topics_that_make_themselves_cost_too(admin: Wire, limited: Wire) -> None:
    """Where the quota is used up no topic is created, and the response does not name the reason."""
    limit(admin, client(limited.client_id), controller_mutation_rate=1)
    assert creation(limited, "a", 60, 6)[0] == 0
    request = MetadataRequest([MetadataRequestTopic("auto")])
    assert limited.call(ApiKey.METADATA, 9, request).topics[0].error_code == 3
    assert limited.call(ApiKey.METADATA, 9, request).topics[0].error_code == 3
    assert not exists(admin, "auto")
    assert until(lambda: not admin.call(ApiKey.METADATA, 9, request).topics[0].error_code, "who has no quota makes it")
