"""Messages of formats before 2 in a Produce request before v3."""

import pytest

from broker.request.message_format import upconvert
from protocol.errors import ErrorCode, KafkaError
from tests.protocol.records.test_message_set import gzipped, message

GZIP = 1


@pytest.mark.parametrize(
    ("messages", "error"),
    [
        (message(0, GZIP, gzipped()), ErrorCode.INVALID_RECORD),
        (message(0, GZIP, gzipped(message(0, GZIP, gzipped(message(0, 0, b"v"))))), ErrorCode.INVALID_RECORD),
        (message(0, GZIP, gzipped(message(0, 0, b"v", 0))), ErrorCode.INVALID_RECORD),
        (message(0, GZIP, b"no stream"), ErrorCode.CORRUPT_MESSAGE),
    ],
    ids=["empty", "compressed inside", "of another format inside", "garbage"],
)
def test_compressed_messages_that_no_log_takes_are_refused(messages: bytes, error: ErrorCode) -> None:
    """LogValidator: INVALID_RECORD for what a compressed message must not hold."""
    with pytest.raises(KafkaError) as refused:
        upconvert(memoryview(messages))
    assert refused.value.code == error
