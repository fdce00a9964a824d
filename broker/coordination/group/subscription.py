"""What a member of a classic "consumer" group subscribes to, out of the metadata that it sent when it joined.

Only the prefix that all versions of Kafka's ``ConsumerProtocolSubscription`` share is read: int16 version, then the
fields of version 0 (groups A.1).
"""

import struct

CONSUMER_PROTOCOL_TYPE = "consumer"

_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """The topics of a subscription, or ``None`` if the bytes are no subscription."""
    try:
        at = _INT16.size  # the version; whatever it is, version 0 is its prefix
        (count,) = _INT32.unpack_from(metadata, at)
        at += _INT32.size
        if count < 0:
            return None
        topics = set()
        for _ in range(count):
            topic, at = _string(metadata, at)
            topics.add(topic)
        (size,) = _INT32.unpack_from(metadata, at)
    except (struct.error, ValueError):
        return None
    return frozenset(topics) if size <= len(metadata) - at - _INT32.size else None


def _string(data: bytes, at: int) -> tuple[str, int]:
    (size,) = _INT16.unpack_from(data, at)
    at += _INT16.size
    if not 0 <= size <= len(data) - at:
        raise ValueError("a string longer than what is left")
    return data[at : at + size].decode(), at + size
