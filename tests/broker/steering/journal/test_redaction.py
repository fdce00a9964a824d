"""Requests without their secrets: masking raises nothing for any bytes that a peer sends."""

import random

import pytest

from broker.steering.journal.redaction import APIS, redacted_answer, redacted_request
from protocol.apis import ApiKey
from protocol.codec import known_versions
from tests.wire import header

CHANCE = random.Random(7)
"""Its bytes are mostly small numbers, so that arrays and texts have lengths that fit."""


def noise(length: int) -> bytes:
    """Bytes of a body."""
    return bytes(CHANCE.choices((0, 1, 2, 3, 5, 65, 255), (8, 4, 3, 2, 1, 4, 1), k=length))


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(APIS), ids=lambda key: ApiKey(key).title)
def test_a_body_of_noise_is_masked_or_left_out(key: ApiKey) -> None:
    """In all versions; the header stays."""
    low, high = known_versions(key) or (0, 0)
    for version in range(low, high + 1):
        begin = header(key, version)
        for _ in range(400):
            frame = begin + noise(CHANCE.randrange(60))
            kept = redacted_request(frame)
            assert kept[:8] == frame[:8]
            answer = noise(4 + CHANCE.randrange(60))
            assert redacted_answer(frame, answer)


def test_a_text_that_is_not_utf_8_is_left_out() -> None:
    """A client id that is no UTF-8 does no harm either."""
    frame = header(ApiKey.SASL_AUTHENTICATE, 1, client_id=b"\xff\xfe") + b"\0\0\0\6secret"
    assert b"secret" not in redacted_request(frame)
