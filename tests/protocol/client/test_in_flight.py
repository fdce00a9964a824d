"""Requests in flight: numbers, frames in any pieces, responses in order."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.apis import ApiKey
from protocol.client.in_flight import BadResponse, InFlightRequests
from protocol.codec import decode_header, decode_request, encode_response
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.produce import ProduceRequest


def beat(number: int, code: ErrorCode = ErrorCode.NONE) -> bytes:
    """A response to a heartbeat."""
    return b"".join(encode_response(ApiKey.HEARTBEAT, 4, number, HeartbeatResponse(code)))


@given(st.lists(st.integers(1, 60), min_size=1))
def test_responses_come_in_the_order_of_requests_in_any_pieces(sizes: list[int]) -> None:
    """Reads may end anywhere, also within a size."""
    requests = InFlightRequests("me")
    for _ in range(3):
        requests.encode(ApiKey.HEARTBEAT, 4, HeartbeatRequest("g"))
    codes = [ErrorCode.NONE, ErrorCode.NOT_COORDINATOR, ErrorCode.REBALANCE_IN_PROGRESS]
    stream = b"".join(beat(number, code) for number, code in enumerate(codes, 1))
    received = []
    while stream:
        size = sizes.pop(0) if sizes else 1
        requests.receive(stream[:size])
        stream = stream[size:]
        while (frame := requests.frame()) is not None:
            received.append(requests.decode(frame).error_code)
    assert received == codes
    assert not requests.pending


def test_a_transport_that_reads_the_missing_bytes_never_reads_into_the_next_frame() -> None:
    """First the four bytes of the size, then the body."""
    requests = InFlightRequests(None)
    stream = beat(1) + b"next"
    read_sizes = []
    while requests.frame() is None:
        read_sizes.append(requests.missing_bytes)
        requests.receive(stream[: read_sizes[-1]])
        stream = stream[read_sizes[-1] :]
    assert read_sizes == [4, len(beat(1)) - 4]
    assert stream == b"next"


def test_a_request_has_the_next_number_and_the_client_id() -> None:
    """Each request, also one without a response, has the next correlation id and the client id."""
    requests = InFlightRequests("me")
    requests.encode(ApiKey.PRODUCE, 3, ProduceRequest(None, 0, 5), answered=False)
    frame = requests.encode(ApiKey.HEARTBEAT, 4, HeartbeatRequest("g", 7, "m"))[4:]
    header = decode_header(frame)
    assert (header.correlation_id, header.client_id) == (2, "me")
    assert decode_request(frame, header) == HeartbeatRequest("g", 7, "m")
    assert [each.correlation_id for each in requests.pending] == [2]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (beat(2), "request 2 arrived where 1 was due"),
        (struct.pack(">ii", 4, 1), "Heartbeat cannot be read"),
        (struct.pack(">i", -5), "a frame of -5 bytes"),
    ],
)
def test_bytes_that_are_no_response_are_an_error(data: bytes, reason: str) -> None:
    """One kind of error for all of them."""
    requests = InFlightRequests("me")
    requests.encode(ApiKey.HEARTBEAT, 4, HeartbeatRequest("g"))
    requests.receive(data)
    with pytest.raises(BadResponse, match=reason):
        requests.decode(requests.frame() or b"")


def test_a_response_without_a_request_is_an_error() -> None:
    """As a broker's second response to one request would be."""
    with pytest.raises(BadResponse, match="without a request"):
        InFlightRequests("me").decode(beat(1)[4:])


def test_a_refused_version_of_api_versions_is_answered_in_version_0() -> None:
    """KIP-511: the client has to read what the broker serves instead."""
    requests = InFlightRequests("me")
    requests.encode(ApiKey.API_VERSIONS, 4, ApiVersionsRequest("test", "1"))
    response = ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, [ApiVersion(18, 0, 2)])
    requests.receive(b"".join(encode_response(ApiKey.API_VERSIONS, 0, 1, response)))
    assert requests.decode(requests.frame() or b"").api_keys[0].max_version == 2
