"""Versions that Kafka 4.0 removed: their layouts, byte for byte, and that each can be read and written."""

import struct
from typing import Any

import pytest
from kio.schema.index import api_key_map, schema_name_map

from protocol.apis import ApiKey
from protocol.codec import (
    encode_request,
    encode_response,
    known_versions,
)
from protocol.errors import ErrorCode
from protocol.messages import (
    create_acls,
    delete_acls,
    describe_acls,
    describe_configs,
    fetch,
    list_offsets,
    offset_commit,
    produce,
)
from tests.protocol.empty_messages import check_empty_messages
from tools import newer_versions
from tools.removed_versions import request_schema, response_schema, versions_of

REMOVED = [
    (key, version)
    for key in ApiKey
    for version in versions_of(key)
    if version not in schema_name_map.get(api_key_map.get(key, ""), ())
    and version not in newer_versions.versions_of(key)
]


def text(value: str) -> bytes:
    """An old string."""
    return struct.pack(">h", len(value)) + value.encode()


def request_body(key: ApiKey, version: int, request: Any) -> bytes:
    """What follows size and header (key, version, correlation id, null client id)."""
    return encode_request(key, version, 1, None, request)[14:]


def response_body(key: ApiKey, version: int, response: Any) -> bytes:
    """What follows size and correlation id."""
    return b"".join(bytes(part) for part in encode_response(key, version, 1, response))[8:]


@pytest.mark.parametrize(("key", "version"), REMOVED, ids=lambda value: str(getattr(value, "name", value)))
def test_each_is_read_as_it_was_written(key: ApiKey, version: int) -> None:
    """Empty messages of every removed version, both directions; none is flexible."""
    low, high = known_versions(key) or (9, 0)
    assert low <= version < high
    assert hasattr(request_schema(key, version), "__removed__")
    assert not request_schema(key, version).__flexible__
    assert not response_schema(key, version).__flexible__
    check_empty_messages(key, version)


def test_produce_before_transactions() -> None:
    """v0: acks, timeout, records; the answer has neither time nor throttling."""
    data = produce.TopicProduceData("t", [produce.PartitionProduceData(3, b"abc")])
    request = produce.ProduceRequest(None, -1, 500, [data])
    expected = struct.pack(">hii", -1, 500, 1) + text("t") + struct.pack(">iii", 1, 3, 3) + b"abc"
    assert request_body(ApiKey.PRODUCE, 2, request) == expected
    part = produce.PartitionProduceResponse(3, ErrorCode.CORRUPT_MESSAGE, 9, 1234)
    response = produce.ProduceResponse([produce.TopicProduceResponse("t", [part])], 7)
    start = struct.pack(">i", 1) + text("t") + struct.pack(">iihq", 1, 3, 2, 9)
    assert response_body(ApiKey.PRODUCE, 0, response) == start
    assert response_body(ApiKey.PRODUCE, 1, response) == start + struct.pack(">i", 7)
    assert response_body(ApiKey.PRODUCE, 2, response) == start + struct.pack(">qi", 1234, 7)


def test_fetch_before_isolation() -> None:
    """v3 bounds the answer, v2 does not; v0 has no throttling."""
    topic = fetch.FetchTopic("t", [fetch.FetchPartition(1, 5, 100)])
    request = fetch.FetchRequest(max_wait_ms=10, min_bytes=2, max_bytes=300, topics=[topic])
    tail = struct.pack(">i", 1) + text("t") + struct.pack(">iiqi", 1, 1, 5, 100)
    assert request_body(ApiKey.FETCH, 3, request) == struct.pack(">iiii", -1, 10, 2, 300) + tail
    assert request_body(ApiKey.FETCH, 2, request) == struct.pack(">iii", -1, 10, 2) + tail
    part = fetch.PartitionData(1, ErrorCode.NONE, 6, records=b"xy")
    response = fetch.FetchResponse(8, [fetch.FetchableTopicResponse("t", [part])])
    body = struct.pack(">i", 1) + text("t") + struct.pack(">iihqi", 1, 1, 0, 6, 2) + b"xy"
    assert response_body(ApiKey.FETCH, 0, response) == body
    assert response_body(ApiKey.FETCH, 1, response) == struct.pack(">i", 8) + body


def test_list_offsets_by_segment() -> None:
    """v0 takes a number of offsets and gives a list of them."""
    wanted = list_offsets.ListOffsetsPartition(2, -1, max_num_offsets=4)
    request = list_offsets.ListOffsetsRequest(-1, [list_offsets.ListOffsetsTopic("t", [wanted])])
    expected = struct.pack(">ii", -1, 1) + text("t") + struct.pack(">iiqi", 1, 2, -1, 4)
    assert request_body(ApiKey.LIST_OFFSETS, 0, request) == expected
    part = list_offsets.ListOffsetsPartitionResponse(2, old_style_offsets=[77, 5])
    response = list_offsets.ListOffsetsResponse([list_offsets.ListOffsetsTopicResponse("t", [part])])
    expected = struct.pack(">i", 1) + text("t") + struct.pack(">iihiqq", 1, 2, 0, 2, 77, 5)
    assert response_body(ApiKey.LIST_OFFSETS, 0, response) == expected


def test_offset_commit_with_times() -> None:
    """v1 has a time per partition, v0 not even a member."""
    part = offset_commit.OffsetCommitRequestPartition(2, 7, "m", commit_timestamp=99)
    topic = offset_commit.OffsetCommitRequestTopic("t", [part])
    request = offset_commit.OffsetCommitRequest("g", 4, "me", topics=[topic])
    topics = struct.pack(">i", 1) + text("t") + struct.pack(">iiq", 1, 2, 7)
    head = text("g") + struct.pack(">i", 4) + text("me")
    assert request_body(ApiKey.OFFSET_COMMIT, 1, request) == head + topics + struct.pack(">q", 99) + text("m")
    assert request_body(ApiKey.OFFSET_COMMIT, 0, request) == text("g") + topics + text("m")


def test_describe_configs_with_a_flag() -> None:
    """v0 has a flag for default values, not their source."""
    config = describe_configs.DescribeConfigsResourceResult("k", "v", is_default=True)
    result = describe_configs.DescribeConfigsResult(ErrorCode.NONE, None, 2, "t", [config])
    expected = struct.pack(">iihhb", 0, 1, 0, -1, 2) + text("t") + struct.pack(">i", 1) + text("k") + text("v")
    response = describe_configs.DescribeConfigsResponse(results=[result])
    assert response_body(ApiKey.DESCRIBE_CONFIGS, 0, response) == expected + b"\0\1\0"


def test_acls_before_prefixes() -> None:
    """In v0 of the ACL APIs every resource name is literal."""
    wanted = create_acls.CreateAclsRequest([create_acls.AclCreation(2, "t", 3, "User:a", "*", 3, 3)])
    body = struct.pack(">ib", 1, 2) + text("t") + text("User:a") + text("*") + b"\3\3"
    assert request_body(ApiKey.CREATE_ACLS, 0, wanted) == body
    request = describe_acls.DescribeAclsRequest(2, "t", 3, "User:a", "*", 3, 3)
    assert request_body(ApiKey.DESCRIBE_ACLS, 0, request) == body[4:]
    gone = delete_acls.DeleteAclsRequest([delete_acls.DeleteAclsFilter(2, "t", 3, "User:a", "*", 3, 3)])
    assert request_body(ApiKey.DELETE_ACLS, 0, gone) == body
    reported = describe_acls.DescribeAclsResource(2, "t", 3, [describe_acls.AclDescription("User:a", "*", 3, 3)])
    answer = describe_acls.DescribeAclsResponse(0, ErrorCode.NONE, None, [reported])
    expected = struct.pack(">ihhib", 0, 0, -1, 1, 2) + text("t") + struct.pack(">i", 1) + text("User:a") + text("*")
    assert response_body(ApiKey.DESCRIBE_ACLS, 0, answer) == expected + b"\3\3"
