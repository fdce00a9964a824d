"""Frames, headers, versions, the order of answers, and the limits of connections (CON-*; core I.1).

core CON-17 is about quotas (test_quotas.py).
"""

import struct
from collections.abc import Callable

import pytest

from protocol.apis import ApiKey
from protocol.codec import decode_response, encode_request
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.conftest import BrokerWith
from tests.scenarios.core.asking import created, fetch_request, interest, metadata, produce_request, records_of
from tests.scenarios.core.asking import fetch as fetch_one
from tests.scenarios.core.batches import batch
from tests.server import Server, until
from tests.wire import Closed, Wire, header

pytestmark = pytest.mark.also_over_sockets("frames and closed connections are what sockets carry")
VERSIONS = ApiVersionsRequest("test", "1.0")


def body(key: ApiKey, version: int, request: object) -> bytes:
    """A request's payload without the size."""
    return encode_request(key, version, 7, "test", request)[4:]


@pytest.mark.parametrize("size", [104_857_601, -1, 2**31 - 1, -(2**31)])
def test_CON_01_a_frame_of_impossible_size_closes_the_connection(broker: Server, size: int) -> None:
    """Above socket.request.max.bytes, or negative: closed at once, nothing is sent."""
    wire = broker.wire()
    wire.send_bytes(struct.pack(">i", size))
    wire.check_closed()


@pytest.mark.parametrize("key", [4, 200, 56, -1])
def test_CON_02_an_api_that_is_not_served_closes_the_connection(broker: Server, key: int) -> None:
    """Removed, unknown, or for controllers only."""
    wire = broker.wire()
    wire.send_frame(header(key, 0) + bytes(20))
    wire.check_closed()


@pytest.mark.parametrize(
    ("key", "version"), [(ApiKey.PRODUCE, 2), (ApiKey.METADATA, 14), (ApiKey.FETCH, 3), (ApiKey.METADATA, -1)]
)
def test_CON_03_a_version_that_is_not_served_closes_the_connection(broker: Server, key: ApiKey, version: int) -> None:
    """Also Produce 0 to 2, which are listed."""
    wire = broker.wire()
    wire.send_frame(header(key, version) + bytes(20))
    wire.check_closed()


def test_CON_04_an_unknown_version_of_ApiVersions_is_answered_with_the_known_ones(broker: Server) -> None:
    """A v0 body with code 35 and one entry, for any request body; the connection stays open (KIP-511)."""
    wire = broker.wire()
    wire.send_frame(header(ApiKey.API_VERSIONS, 99, tags=b"\0") + b"\xff garbage")
    newest = max(each.max_version for each in versions(broker, 0).api_keys if each.api_key == ApiKey.API_VERSIONS)
    expected = struct.pack(">ihihhh", 7, ErrorCode.UNSUPPORTED_VERSION, 1, 18, 0, newest)
    assert newest in (4, 5)  # of 4.3 and 4.4
    assert wire.receive_frame() == expected
    assert wire.call(ApiKey.API_VERSIONS, 4, VERSIONS).error_code is ErrorCode.NONE


def test_CON_04_the_header_of_an_unknown_version_must_carry_a_tag_section(broker: Server) -> None:
    """It is read as v2; without the section it is unreadable (core A.1.7)."""
    wire = broker.wire()
    wire.send_frame(header(ApiKey.API_VERSIONS, 99, tags=b""))
    wire.check_closed()


@pytest.mark.parametrize("name", ["my client", "", "-x", "x-"])
def test_CON_05_an_invalid_software_name_is_refused(broker: Server, name: str) -> None:
    """An invalid software name gets INVALID_REQUEST without any API key."""
    response = broker.wire().call(ApiKey.API_VERSIONS, 3, ApiVersionsRequest(name, "1.0"))
    assert (response.error_code, response.api_keys) == (ErrorCode.INVALID_REQUEST, ())


def versions(broker: Server, version: int) -> ApiVersionsResponse:
    """The ApiVersions response of that version."""
    response: ApiVersionsResponse = broker.wire().call(ApiKey.API_VERSIONS, version, VERSIONS)
    assert response.error_code is ErrorCode.NONE
    return response


@pytest.mark.parametrize("version", [3, 4])
def test_CON_06_finalized_features_are_returned_with_their_epoch(broker: Server, version: int) -> None:
    """Both versions return transaction.version 2 and a real epoch."""
    response = versions(broker, version)
    levels = {each.name: (each.min_version_level, each.max_version_level) for each in response.finalized_features}
    assert levels["transaction.version"] == (2, 2)
    assert response.finalized_features_epoch >= 0


def test_CON_06_features_that_start_at_zero_are_returned_from_v4_on(broker: Server) -> None:
    """Clients of v3 fail on a minimum of 0, so it leaves those features out."""
    assert [each.name for each in versions(broker, 3).supported_features] == ["metadata.version"]
    reported = {each.name: (each.min_version, each.max_version) for each in versions(broker, 4).supported_features}
    assert reported["metadata.version"] in ((7, 30), (7, 33))  # of 4.3 and 4.4
    assert reported["transaction.version"] == (0, 2)
    assert reported["group.version"] == (0, 1)


def test_CON_07_the_list_of_apis_is_the_brokers(broker: Server) -> None:
    """Produce from 0 though 0 to 2 are refused; nothing removed, nothing of controllers, no telemetry."""
    reported = {each.api_key: (each.min_version, each.max_version) for each in versions(broker, 4).api_keys}
    assert reported[ApiKey.PRODUCE] == (0, 13)
    assert reported[ApiKey.FETCH] == (4, 18)
    assert reported.keys().isdisjoint({4, 5, 6, 7, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 71, 72, 73, 82})


def test_CON_08_a_client_may_name_the_cluster_and_broker_that_it_means(broker: Server) -> None:
    """Both or none of them; another one is REBOOTSTRAP_REQUIRED (KIP-1242). Of 4.4."""
    wire = broker.wire()
    if max(each.max_version for each in versions(broker, 0).api_keys if each.api_key == ApiKey.API_VERSIONS) < 5:
        pytest.skip("of Kafka 4.4")
    here = str(wire.call(ApiKey.METADATA, 10, MetadataRequest()).cluster_id)

    def code(cluster_id: str | None, node_id: int) -> ErrorCode:
        request = ApiVersionsRequest("test", "1.0", cluster_id, node_id)
        error_code: ErrorCode = wire.call(ApiKey.API_VERSIONS, 5, request).error_code
        return error_code

    assert [code("x", -1), code(None, 1)] == [ErrorCode.INVALID_REQUEST] * 2
    assert [code("x", 1), code(here, 2), code("x", 2)] == [ErrorCode.REBOOTSTRAP_REQUIRED] * 3
    assert [code(here, 1), code(None, -1)] == [ErrorCode.NONE] * 2


def test_CON_09_answers_keep_the_order_of_requests(broker: Server) -> None:
    """A fetch that waits holds back the next request of its connection, but no other connection."""
    setup = broker.wire()
    created(setup, "foo")
    broker.freeze()
    wire = broker.wire()
    wire.send(ApiKey.FETCH, 12, fetch_request({"foo": [interest()]}, max_wait_ms=500))
    wire.send(ApiKey.METADATA, 12, MetadataRequest())
    broker.advance(499)
    metadata(setup, "foo")
    assert not wire.has_answer()
    broker.advance(1)
    assert wire.answer().responses[0].partitions[0].error_code is ErrorCode.NONE
    assert wire.answer().brokers[0].node_id == 1


def test_CON_10_a_body_that_is_cut_short_closes_the_connection(broker: Server) -> None:
    """A body without its last byte closes the connection."""
    wire = broker.wire()
    wire.send_frame(body(ApiKey.METADATA, 9, MetadataRequest([MetadataRequestTopic("foo")]))[:-1])
    wire.check_closed()


def test_CON_10_bytes_after_the_body_are_ignored(broker: Server) -> None:
    """Four bytes after the body are ignored."""
    wire = broker.wire()
    wire.send_frame(body(ApiKey.METADATA, 9, MetadataRequest()) + b"more")
    _, response = decode_response(ApiKey.METADATA, 9, wire.receive_frame())
    assert response.brokers[0].node_id == 1


def test_CON_11_an_unknown_tag_of_the_header_is_ignored(broker: Server) -> None:
    """A header with the unknown tag 77 is read as one without it."""
    wire = broker.wire()
    request = body(ApiKey.METADATA, 12, MetadataRequest())
    plain = header(ApiKey.METADATA, 12)
    wire.send_frame(header(ApiKey.METADATA, 12, tags=b"\x01\x4d\x03abc") + request[len(plain) :])
    _, response = decode_response(ApiKey.METADATA, 12, wire.receive_frame())
    assert response.brokers[0].node_id == 1


def test_CON_12_a_client_may_have_no_id(broker: Server) -> None:
    """A null client id counts as the empty one."""
    assert broker.wire(client_id=None).call(ApiKey.METADATA, 1, MetadataRequest()).brokers[0].node_id == 1


def test_CON_13_an_idle_connection_is_closed(broker_with: BrokerWith) -> None:
    """After connections.max.idle.ms without a byte; one that talks meanwhile stays."""
    broker = broker_with(settings={"connections.max.idle.ms": 1000})
    broker.freeze()
    idle, busy = broker.wire(), broker.wire()
    metadata(idle)
    metadata(busy)
    broker.advance(900)
    metadata(busy)
    broker.advance(900)
    idle.check_closed()
    assert metadata(busy) == ()


def served(server: Server) -> Wire | None:
    """A new connection that gets an answer."""
    wire = server.wire()
    try:
        metadata(wire)
    except Closed:
        return None
    return wire


def test_CON_14_a_host_has_only_so_many_connections(broker_with: BrokerWith) -> None:
    """One more is accepted and closed at once; once another one closes, a new one is served."""
    broker = broker_with(settings={"max.connections.per.ip": 3})
    several = [until(lambda: served(broker), "a connection that is served") for _ in range(3)]
    broker.wire().check_closed()
    assert [metadata(wire) for wire in several] == [(), (), ()]
    several[0].close()
    assert metadata(until(lambda: served(broker), "a connection in place of the closed one")) == ()


def test_CON_15_acks_0_to_a_missing_topic_closes_the_connection(broker: Server) -> None:
    """There is no answer that could carry the error."""
    wire = broker.wire()
    wire.send(ApiKey.PRODUCE, 9, produce_request({"nope": {0: batch(b"x")}}, acks=0))
    wire.check_closed()


def test_CON_15_acks_0_is_not_answered(broker: Server) -> None:
    """The next answer is that of the next request, and the record is there."""
    wire = broker.wire()
    created(wire, "foo")
    wire.send(ApiKey.PRODUCE, 9, produce_request({"foo": {0: batch(b"x")}}, acks=0), answered=False)
    assert [record.value for record in records_of(fetch_one(wire, "foo"))] == [b"x"]


def refused_handshake(wire: Wire) -> None:
    """SaslHandshake is answered with an error and no mechanisms."""
    response = wire.call(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN"))
    assert (response.error_code, response.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, ())


def refused_authentication(wire: Wire) -> None:
    """SaslAuthenticate is answered with an error and its message."""
    response = wire.call(ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(b"\0user\0secret"))
    assert response.error_code is ErrorCode.ILLEGAL_SASL_STATE
    assert response.error_message == "SaslAuthenticate request received after successful authentication"


@pytest.mark.parametrize("check", [refused_handshake, refused_authentication])
def test_CON_16_a_plain_listener_refuses_sasl(broker: Server, check: Callable[[Wire], None]) -> None:
    """ILLEGAL_SASL_STATE, and the connection is as usable as before."""
    wire = broker.wire()
    check(wire)
    assert metadata(wire) == ()
