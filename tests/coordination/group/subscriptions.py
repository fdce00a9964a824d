"""Subscriptions of Kafka's consumer protocol, as bytes."""

import struct


def subscription(*topics: str, version: int = 1, user_data: bytes | None = None) -> bytes:
    """ConsumerProtocolSubscription: version, topics, user data; from version 1 on no owned partitions."""
    out = struct.pack(">hi", version, len(topics))
    for topic in topics:
        out += struct.pack(">h", len(topic.encode())) + topic.encode()
    out += struct.pack(">i", -1) if user_data is None else struct.pack(">i", len(user_data)) + user_data
    return out + (struct.pack(">i", 0) if version else b"")
