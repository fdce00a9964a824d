"""ListOffsets v0, which clients before 0.10.1 ask: where segments begin that are older than a moment (KIP-79)."""

from collections.abc import Iterator

import pytest

from protocol.apis import ApiKey
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.conftest import BrokerWith
from tests.releases.asking import Client, delete_records
from tests.serving import Server

HOUR_MS = 3_600_000


@pytest.fixture
def client(old: Server) -> Iterator[Client]:
    """Asks it."""
    old_client = Client(old.addresses[0], 5)
    yield old_client
    old_client.wire.close()


@pytest.fixture
def old(broker_with: BrokerWith) -> Server:
    """A broker of 2.0."""
    server = broker_with()
    server.control("PUT", "/v1/versions", {"as_version": "2.0"})
    return server


def starts(client: Client, topic: str, timestamp_ms: int, most: int = 10) -> list[int]:
    """The offsets of partition 0, as version 0 names them."""
    wanted = ListOffsetsTopic(topic, [ListOffsetsPartition(0, timestamp_ms, max_num_offsets=most)])
    answer = client.ask(ApiKey.LIST_OFFSETS, ListOffsetsRequest(-1, [wanted]), at_most=0)
    return list(answer.topics[0].partitions[0].old_style_offsets)


def test_segments_are_found_by_when_they_were_written(old: Server, client: Client) -> None:
    """By the broker's clock; the log's end counts as of now."""
    topic = client.topic({"segment.bytes": "150"})
    for at in range(2):
        client.produce(topic, key=b"%d" % at * 70)
    written_ms = old.now_ms()
    old.advance(HOUR_MS)
    client.produce(topic, key=b"2" * 70)
    assert starts(client, topic, written_ms) == [1, 0]
    assert starts(client, topic, written_ms, most=1) == [1]
    assert starts(client, topic, written_ms + 2 * HOUR_MS) == [3, 2, 1, 0]


def test_a_segment_begins_where_its_records_do(client: Client) -> None:
    """Not with those that DeleteRecords took away; an empty log begins where it ends."""
    topic = client.topic()
    assert starts(client, topic, -1) == [0]
    for _ in range(3):
        client.produce(topic)
    assert starts(client, topic, -1) == [3, 0]
    delete_records(client, topic)
    assert starts(client, topic, -2) == [3]
