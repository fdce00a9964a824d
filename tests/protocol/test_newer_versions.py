"""Versions that kio does not have: derived from Kafka's own message definitions, and written as Kafka defines them."""

import json
import struct
import zipfile
from pathlib import Path
from uuid import UUID

import pytest
from kio.schema.index import api_key_map, schema_name_map

from broker.settings.releases import NEWEST, release
from protocol.apis import ApiKey
from protocol.codec import (
    encode_request,
    encode_response,
    known_versions,
)
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.protocol.empty_messages import check_empty_messages
from tools import newer_versions
from tools.record_schemas import TARGET
from tools.record_schemas import newer_versions as read_from_jar

NEWER = [(key, version) for key in newer_versions.names() for version in newer_versions.versions_of(key)]
TOPIC_ID = UUID(int=0x1234)


@pytest.mark.nightly
def test_the_file_is_what_the_jar_of_4_4_0_defines(kafka_clients_4_4: Path) -> None:
    """Every field, its type and default; nothing that kio has."""
    assert json.loads(TARGET.read_text()) == read_from_jar(kafka_clients_4_4)


@pytest.fixture
def kafka_clients_4_4(tmp_path: Path) -> Path:
    """The kafka-clients jar of 4.4.0, among those of the brokers that the table of releases was recorded from."""
    from tools.old_kafka import fetch  # noqa: PLC0415

    jar = next(fetch("4.4").glob("kafka-clients-*.jar"))
    assert zipfile.is_zipfile(jar), tmp_path
    return jar


def test_with_them_the_newest_release_can_be_read_whole() -> None:
    """Every version that a 4.4 broker lists is known, and no version twice."""
    for title, (_low, high) in release(NEWEST).apis.items():
        key = next((key for key in ApiKey if key.title == title), None)
        if key is not None:
            assert (known_versions(key) or (0, -1))[1] >= high, title
    for number, version in NEWER:
        assert version not in schema_name_map.get(api_key_map.get(number, ""), ())


@pytest.mark.parametrize(("key", "version"), NEWER)
def test_each_is_read_as_it_was_written(key: int, version: int) -> None:
    """Empty messages of both directions; all are flexible."""
    check_empty_messages(key, version)


def test_api_versions_names_the_cluster_and_the_node() -> None:
    """v5 (KIP-1242): after the software, a nullable compact string and an int32."""
    body = encode_request(ApiKey.API_VERSIONS, 5, 1, "c", ApiVersionsRequest("a", "b", "id", 7))
    assert body.endswith(b"\x02a\x02b\x03id" + struct.pack(">i", 7) + b"\0")
    body = encode_request(ApiKey.API_VERSIONS, 5, 1, "c", ApiVersionsRequest("a", "b"))
    assert body.endswith(b"\x02a\x02b\x00" + struct.pack(">i", -1) + b"\0")
    assert encode_request(ApiKey.API_VERSIONS, 4, 1, "c", ApiVersionsRequest("a", "b", "id", 7)).endswith(
        b"\x02a\x02b\0"
    )


def test_offsets_of_a_transaction_name_topics_by_id() -> None:
    """TxnOffsetCommit v6 (KIP-1319): 16 bytes of the id instead of the name."""
    topic = TxnOffsetCommitRequestTopic("t", [TxnOffsetCommitRequestPartition(0, 9, "")], TOPIC_ID)
    request = TxnOffsetCommitRequest("x", "g", 1, 0, topics=[topic])
    new = encode_request(ApiKey.TXN_OFFSET_COMMIT, 6, 1, "c", request)
    old = encode_request(ApiKey.TXN_OFFSET_COMMIT, 5, 1, "c", request)
    assert TOPIC_ID.bytes in new
    assert TOPIC_ID.bytes not in old
    assert len(new) == len(old) + 14


def test_a_group_that_was_not_deleted_has_a_message() -> None:
    """DeleteGroups v3 has an error message behind the code."""
    response = DeleteGroupsResponse(results=[DeletableGroupResult("g", ErrorCode.GROUP_DELETION_FAILED, "no")])
    raw = b"".join(bytes(part) for part in encode_response(ApiKey.DELETE_GROUPS, 3, 1, response))
    assert raw.endswith(b"\x02g" + struct.pack(">h", 134) + b"\x03no\0\0")


def test_the_recovery_lag_moves_and_grows() -> None:
    """StreamsGroupHeartbeat: an int32 before the interval in v0, an int64 after it in v1 (KIP-1331)."""
    response = StreamsGroupHeartbeatResponse(acceptable_recovery_lag=5, task_offset_interval_ms=6)
    for version, lag_and_interval in ((0, struct.pack(">ii", 5, 6)), (1, struct.pack(">iq", 6, 5))):
        raw = b"".join(bytes(part) for part in encode_response(ApiKey.STREAMS_GROUP_HEARTBEAT, version, 1, response))
        assert lag_and_interval in raw
