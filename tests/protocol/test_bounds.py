"""What a small part of a frame can make of itself: arrays have a bound of their own beside the bytes that are there."""

import struct

import pytest

from protocol.apis import ApiKey
from protocol.codec import BadFrame, decode_header, decode_request, decode_response, encode_response
from protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from protocol.readers import MOST_ANSWERED, MOST_ELEMENTS
from protocol.uvarint import Unreadable
from protocol.writers import Parts, Unwritable, Writer, write_compact_string, write_string
from tests.wire import header


def check_refused(frame: bytes, reason: str) -> None:
    """Check that a frame cannot be read, with the bound in the reason."""
    with pytest.raises(BadFrame, match=reason):
        decode_request(frame, decode_header(frame))


def test_an_array_has_a_bound_in_a_frame_of_any_size() -> None:
    """Two million topics of one letter in six megabytes."""
    body = struct.pack(">i", 2 * MOST_ELEMENTS) + b"\0\1a" * (2 * MOST_ELEMENTS)
    check_refused(header(ApiKey.METADATA, 1) + body, "more than 1000000 elements")


def test_nested_arrays_share_the_bound() -> None:
    """Three topics, each with half as many partitions as a request may have elements."""
    half = MOST_ELEMENTS // 2
    topic = b"\0\1a" + struct.pack(">i", half) + bytes(4 * half)
    body = b"\0\1g" + struct.pack(">i", 3) + topic * 3
    check_refused(header(ApiKey.OFFSET_FETCH, 1) + body, "more than 1000000 elements")


@pytest.mark.slow
def test_as_many_as_the_bound_are_read() -> None:
    """A million topics: read here, and refused by the handler."""
    frame = header(ApiKey.METADATA, 1) + struct.pack(">i", MOST_ELEMENTS) + b"\0\1a" * MOST_ELEMENTS
    assert len(decode_request(frame, decode_header(frame)).topics) == MOST_ELEMENTS


def test_an_answer_may_have_more() -> None:
    """Metadata of a cluster with 150,000 partitions has; its sender was chosen."""
    partition = MetadataResponsePartition(replica_nodes=range(MOST_ELEMENTS + 1))
    response = MetadataResponse(topics=[MetadataResponseTopic(name="t", partitions=[partition])])
    frame = b"".join(encode_response(ApiKey.METADATA, 9, 1, response))[4:]
    _, metadata = decode_response(ApiKey.METADATA, 9, frame)
    assert len(metadata.topics[0].partitions[0].replica_nodes) == MOST_ELEMENTS + 1


def test_an_answer_has_a_bound_too() -> None:
    """Nothing is made of what is beyond it."""
    many = MOST_ANSWERED + 1
    with pytest.raises(Unreadable, match="more than 20000000 elements"):
        decode_response(ApiKey.METADATA, 1, struct.pack(">ii", 1, many) + bytes(many))


@pytest.mark.parametrize("key", [ApiKey.METADATA, ApiKey.PRODUCE])
def test_tag_sections_have_the_bound_too(key: ApiKey) -> None:
    """Tags of a body have two bytes each; Produce is decoded by hand-written code."""
    tags = b"\x81\x89\x7a" + b"\x09\0" * 2_000_001
    bodies = {ApiKey.METADATA: b"\x00\0\0\0" + tags, ApiKey.PRODUCE: b"\0\0\1" + bytes(4) + b"\x01" + tags}
    check_refused(header(key, 9) + bodies[key], "more than 1000000 elements")


def test_tags_of_a_header_have_the_bound() -> None:
    """Before the body is even looked at."""
    tags = b"\x81\x89\x7a" + b"\x09\0" * 2_000_001
    with pytest.raises(BadFrame, match="2000001 tags"):
        decode_header(header(ApiKey.METADATA, 9, tags=tags))


def test_records_of_a_produce_request_have_the_bound() -> None:
    """A million and one partitions without records."""
    many = MOST_ELEMENTS + 1
    body = b"\xff\xff\0\1" + bytes(4) + struct.pack(">i", 1) + b"\0\1t" + struct.pack(">i", many) + b"\0" * 8 * many
    check_refused(header(ApiKey.PRODUCE, 7) + body, "more than 1000000 elements")


@pytest.mark.parametrize(
    ("key", "version", "body"), [(ApiKey.METADATA, 1, b"\0\0\0\1\x7f\xff"), (ApiKey.METADATA, 9, b"\2\x80\x80\2")]
)
def test_a_string_has_its_bound_as_it_is_written_again(key: ApiKey, version: int, body: bytes) -> None:
    """Each byte that is no UTF-8 becomes three: such a name could be stored, and not be answered."""
    frame = header(key, version) + body
    check_refused(frame + b"\xff" * 32_767 + bytes(9), "a string that takes 98301 bytes as UTF-8, of at most 32767")
    sound = frame + b"x" * 32_767 + bytes(9)
    assert len(decode_request(sound, decode_header(sound)).topics[0].name) == 32_767


def test_a_client_id_has_its_bound_as_it_is_written_again() -> None:
    """It is in the descriptions of groups."""
    frame = header(ApiKey.METADATA, 1)[:8] + b"\x7f\xff" + b"\xff" * 32_767
    with pytest.raises(BadFrame, match="the client id: a string that takes 98301 bytes"):
        decode_header(frame)


@pytest.mark.parametrize("write", [write_string, write_compact_string])
def test_longer_strings_are_not_written(write: Writer) -> None:
    """As in Kafka: no client could read them."""
    out: Parts = []
    write(out, "x" * 32_767)
    with pytest.raises(Unwritable, match="a string of 32768 bytes; at most 32767 are allowed"):
        write(out, "x" * 32_768)
