"""What is made of a frame by itself: a refusal as the broker's own, and what the journal keeps of a large answer."""

import pytest

from broker.handlers.api_versions import API
from broker.request.connection import Connection
from broker.server.dispatcher import unsupported_version
from broker.steering.journal.kept import answer_without_records, expand, weight_of
from protocol.apis import ApiKey
from protocol.codec import RequestHeader, decode_response, encode_response, known_versions
from protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from protocol.messages.share_fetch import AcquiredRecords, ShareFetchableTopicResponse, ShareFetchResponse
from protocol.messages.share_fetch import PartitionData as SharePartitionData
from protocol.types import Message
from proxy.frames import journal_parts, refusal_of
from tests.scenarios.core.batches import batch
from tests.versions import SERVED
from tests.wire import header

HEAD = 61
LARGE, SMALL = batch(b"v" * 4000), batch(b"v")
FETCHED = FetchResponse(
    responses=[FetchableTopicResponse("t", [PartitionData(0, records=LARGE), PartitionData(1, records=SMALL)])]
)
SHARED = ShareFetchResponse(
    responses=[
        ShareFetchableTopicResponse(
            None,
            [
                SharePartitionData(0, records=LARGE, acquired_records=[AcquiredRecords(n, n, 1) for n in range(50)]),
                SharePartitionData(1, records=SMALL),
            ],
        )
    ]
)


@pytest.mark.parametrize(
    ("key", "version", "response"),
    [(ApiKey.FETCH, 4, FETCHED), (ApiKey.FETCH, 12, FETCHED), (ApiKey.SHARE_FETCH, 2, SHARED)],
)
def test_a_large_answer_is_kept_without_its_records(key: ApiKey, version: int, response: Message) -> None:
    """The proxy's journal keeps large responses without their records, as a broker's does."""
    raw = b"".join(encode_response(key, version, 7, response))[4:]
    parts = journal_parts(RequestHeader(key, version, 7), raw)
    assert b"".join(parts) == len(raw).to_bytes(4, "big") + raw
    kept = answer_without_records(parts)
    assert weight_of(kept) < 2000
    whole, sizes = expand(kept, key, version)
    assert sizes == [len(LARGE), len(SMALL)]
    _, kept_response = decode_response(key, version, bytes(whole[4:]))
    heads = [bytes(each.records) for each in kept_response.responses[0].partitions]
    assert heads == [bytes(LARGE[:HEAD]), bytes(SMALL[:HEAD])]


def test_a_refusal_is_that_of_a_broker() -> None:
    """Of ApiVersions that are known nowhere; other requests are for the broker to judge."""
    _, high = known_versions(ApiKey.API_VERSIONS) or (0, 0)
    connection = Connection("c", "PLAINTEXT", "127.0.0.1", 1)
    refusal = refusal_of(bytearray(header(ApiKey.API_VERSIONS, high + 1)))
    assert b"".join(refusal or ()) == b"".join(unsupported_version(7, connection, SERVED[API.key].versions))
    others = [header(ApiKey.API_VERSIONS, high), header(ApiKey.METADATA, 99), header(999, 0), b"\0\x12\0\x63"]
    assert [refusal_of(bytearray(each)) for each in others] == [None] * len(others)
