"""Bad input, conformance 4 B01 to B22 and B44 to B47: frames, headers and bodies that are none."""

import socket
import struct

import pytest

from protocol.apis import ApiKey
from protocol.codec import decode_response, encode_request
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.metadata import MetadataRequest
from tests.conftest import BrokerWith
from tests.hostile.victims import MAX_INT, Victim, count
from tests.scenarios.core.asking import metadata
from tests.wire import framed, header

MIB = 1024 * 1024
METADATA_1 = header(ApiKey.METADATA, 1)
METADATA_9 = header(ApiKey.METADATA, 9)


def test_B01_an_empty_frame_has_no_header(victim: Victim) -> None:
    """A frame of size 0 closes its connection."""
    victim.check_refused(count(0), "too short for a request header")


@pytest.mark.parametrize("size", [-1, -(2**31)])
def test_B02_a_negative_size(victim: Victim, size: int) -> None:
    """After a negative size nothing more is read from the connection."""
    victim.check_refused(count(size) + b"abcd", f"a frame of {size} bytes")


@pytest.mark.parametrize("size", [MAX_INT, 100 * MIB + 1])
def test_B03_B04_a_size_above_the_limit(victim: Victim, size: int) -> None:
    """Closed at once; nothing is allocated for what was only announced."""
    victim.check_refused(count(size) + b"0123456789", f"a frame of {size} bytes")


def test_B05_the_largest_frame_may_trickle(victim: Victim) -> None:
    """The connections are held, without memory for bytes that have not come."""
    held = [victim.sent(count(100 * MIB) + b"0123456789") for _ in range(100)]
    assert not any(wire.has_answer() for wire in held)
    assert metadata(victim.broker.wire()) == ()
    assert not any(wire.has_answer() for wire in held)


def test_B05_a_frame_that_stalls_is_given_up(broker_with: BrokerWith) -> None:
    """After understudy.partial.frame.timeout.ms without 64 KiB of progress."""
    broker = broker_with(settings={"understudy.partial.frame.timeout.ms": 1000})
    broker.freeze()
    slow, stalled = (Victim(broker).sent(count(MIB)) for _ in range(2))
    for _ in range(3):
        slow.send_bytes(bytes(65_536))
        metadata(broker.wire())
        broker.advance(900)
    stalled.check_closed()
    assert not slow.has_answer()
    broker.advance(1000)
    slow.check_closed()


def test_B05_unfinished_frames_have_a_budget(broker_with: BrokerWith) -> None:
    """Where they take more than queued.max.request.bytes, the one that has stalled for longest goes."""
    broker = broker_with(settings={"queued.max.request.bytes": 4 * MIB, "socket.request.max.bytes": 4 * MIB})
    first, *others = [Victim(broker).sent(count(3 * MIB) + bytes(MIB)) for _ in range(5)]
    first.check_closed()
    assert metadata(broker.wire()) == ()
    assert not others[-1].has_answer()


def test_B06_a_browser(victim: Victim) -> None:
    """The log names the protocol that it looks like."""
    victim.check_refused(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP on a Kafka port")


def test_B07_a_client_that_uses_tls(victim: Victim) -> None:
    """A ClientHello at a plaintext listener ends the connection, and the log names TLS."""
    victim.check_refused(bytes.fromhex("16030100a50100") + bytes(100), "TLS on a plaintext listener")


@pytest.mark.parametrize("key", [9999, -1])
def test_B08_B09_an_unknown_api(victim: Victim, key: int) -> None:
    """A request of an unknown API, whose header has no known shape, ends the connection."""
    victim.check_refused(framed(header(key, 0, tags=b"")), "unknown api key", api=f"api key {key}", version=0)


@pytest.mark.parametrize(("key", "version"), [(ApiKey.PRODUCE, 99), (ApiKey.METADATA, -1)])
def test_B10_B11_a_version_that_is_not_served(victim: Victim, key: ApiKey, version: int) -> None:
    """The log has the range that is served."""
    victim.check_refused(framed(header(key, version)), "is outside", api=key.title, version=version)


def test_B12_ApiVersions_of_the_future(victim: Victim) -> None:
    """The one request that is answered in any version: as v0, with the range."""
    wire = victim.sent(framed(header(ApiKey.API_VERSIONS, 99, tags=b"\0")))
    assert wire.receive_frame() == struct.pack(">ihihhh", 7, ErrorCode.UNSUPPORTED_VERSION, 1, 18, 0, 5)


def test_B12_ApiVersions_of_the_future_without_tags(victim: Victim) -> None:
    """Its header is that of v3 and above."""
    data = framed(header(ApiKey.API_VERSIONS, 99, tags=b""))
    victim.check_refused(data, "tags", api="ApiVersions", version=99)


def test_B13_a_software_name_with_a_bang(victim: Victim) -> None:
    """An error in the answer, not a close."""
    wire = victim.broker.wire()
    answer = wire.call(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("bad!name", "1"))
    assert answer.error_code is ErrorCode.INVALID_REQUEST


def test_B14_half_a_header(victim: Victim) -> None:
    """A frame with an API and a version alone ends the connection as too short for a header."""
    victim.check_refused(framed(struct.pack(">hh", 3, 1)), "too short for a request header", api="Metadata", version=1)


def test_B15_a_client_id_that_ends_outside_the_frame(victim: Victim) -> None:
    """A thousand bytes are announced, three are there."""
    data = framed(struct.pack(">hhih", 3, 1, 7, 1000) + b"abc")
    victim.check_refused(data, "the client id ends outside the frame", api="Metadata", version=1)


@pytest.mark.parametrize("announced", [MAX_INT, 50_000_000])
def test_B16_B17_an_array_of_impossible_length(victim: Victim, announced: int) -> None:
    """Refused before anything is made of it."""
    victim.check_request_refused(ApiKey.METADATA, 1, count(announced), f"an array of {announced} elements")


def test_B18_a_compact_array_of_impossible_length(victim: Victim) -> None:
    """2^32 - 1 as a variable-length number."""
    victim.check_request_refused(ApiKey.METADATA, 9, b"\xff\xff\xff\xff\x0f", "an array of")


def test_B19_a_number_without_an_end(victim: Victim) -> None:
    """Ten bytes that all have the continuation bit."""
    victim.check_request_refused(ApiKey.METADATA, 9, b"\xff" * 10, "too long")


def test_B20_bytes_after_the_body(victim: Victim) -> None:
    """Ignored; the answer is the usual one."""
    wire = victim.sent(framed(METADATA_1 + count(0) + b"\xff" * 100))
    assert decode_response(ApiKey.METADATA, 1, wire.receive_frame())[1].brokers
    assert metadata(wire) == ()


def test_B21_a_body_cut_short_and_nothing_more(victim: Victim) -> None:
    """A frame that is complete, a body that is not, then the end of the stream."""
    wire = victim.sent(framed((METADATA_1 + count(0))[:-2]))
    wire.socket.shutdown(socket.SHUT_WR)
    wire.check_closed()


def test_B21_a_frame_cut_short_and_nothing_more(victim: Victim) -> None:
    """Half a frame, then the end of the stream: nothing to answer."""
    wire = victim.sent(framed(METADATA_1 + count(0))[:-2])
    wire.socket.shutdown(socket.SHUT_WR)
    wire.check_closed()


def test_B22_tagged_fields_without_number(victim: Victim) -> None:
    """Half a billion of them in the header."""
    data = framed(header(ApiKey.METADATA, 9, tags=b"\xff\xff\xff\xff\x07"))
    victim.check_refused(data, "tags", api="Metadata", version=9)


def test_B22_tagged_fields_without_number_in_a_body(victim: Victim) -> None:
    """A request whose body ends with an impossible number of tagged fields is refused."""
    body = encode_request(ApiKey.METADATA, 9, 7, "test", MetadataRequest())[4 + len(METADATA_9) :]
    victim.check_request_refused(ApiKey.METADATA, 9, body[:-1] + b"\xff\xff\xff\xff\x07")


def test_B44_part_of_a_length(victim: Victim) -> None:
    """Three bytes of four: held, until the deadline for unfinished frames."""
    wire = victim.sent(b"\0\0\0")
    assert metadata(victim.broker.wire()) == ()
    assert not wire.has_answer()


def test_B44_part_of_a_length_is_given_up(broker_with: BrokerWith) -> None:
    """Kafka would hold it for ten minutes."""
    broker = broker_with(settings={"understudy.partial.frame.timeout.ms": 1000})
    wire = Victim(broker).sent(b"\0\0\0")
    metadata(broker.wire())
    broker.advance(1001)
    wire.check_closed()


def test_B45_a_fetch_of_all_topics_there_could_be(victim: Victim) -> None:
    """2^31 - 1 of them, and no byte of any."""
    body = struct.pack(">iiiibi", -1, 100, 1, MIB, 0, MAX_INT)
    victim.check_request_refused(ApiKey.FETCH, 4, body, f"an array of {MAX_INT} elements")


def test_B46_null_where_a_string_is_required(victim: Victim) -> None:
    """JoinGroup with null for its group id is refused as unreadable."""
    victim.check_request_refused(ApiKey.JOIN_GROUP, 2, struct.pack(">h", -1), "null where a string is required")


def test_B47_a_client_id_that_is_no_text(victim: Victim) -> None:
    """Read with replacement characters, as Java does; served like any other."""
    wire = victim.sent(framed(header(ApiKey.API_VERSIONS, 0, client_id=b"\xff\xfe\xfd", correlation_id=4)))
    assert wire.receive_frame()[:6] == struct.pack(">ih", 4, 0)
