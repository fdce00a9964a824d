"""Large compressed batches, conformance 4 B41: taken as Kafka takes them, while others are served, and never held."""

import select

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.metadata import MetadataRequest
from protocol.records.batch import write_varint
from protocol.records.compression import Codec, compress
from tests.hostile.malformed import MIB, ZSTD, carrying, zstd_zeros
from tests.hostile.victims import Victim
from tests.scenarios.core.asking import created, produce, produce_request
from tests.scenarios.core.batches import batch

VALUE_MIB = 1984


def one_record(index: int = 0) -> bytes:
    """A record with almost 2 GiB of zeros as its value, as a zstd stream."""
    deltas = bytearray((0, 0))
    write_varint(deltas, index)
    body = bytearray()
    write_varint(body, -1)
    write_varint(body, VALUE_MIB * MIB)
    head = bytearray()
    write_varint(head, len(deltas) + len(body) + VALUE_MIB * MIB + 1)
    head += deltas + body
    return bytes(compress(Codec.ZSTD, head)) + zstd_zeros(VALUE_MIB) + bytes(compress(Codec.ZSTD, b"\0"))


@pytest.mark.timeout(300)
def test_B41_a_record_of_two_gigabytes_is_taken(victim: Victim) -> None:
    """Its client waits, others do not, and the broker does not grow."""
    wire, other = victim.broker.wire(patience_s=200), victim.broker.wire()
    created(wire, "foo")
    size = victim.broker.resident_bytes()
    sent = carrying(ZSTD, one_record())
    assert len(sent) < MIB
    wire.send(ApiKey.PRODUCE, 9, produce_request({"foo": {0: sent}}))
    answers, most = 0, 0
    while not select.select([wire.socket], [], [], 0)[0]:
        assert other.call(ApiKey.METADATA, 12, MetadataRequest()).brokers
        answers, most = answers + 1, max(most, victim.broker.resident_bytes())
    (topic,) = wire.answer().responses
    (answer,) = topic.partition_responses
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)
    assert answers > 50
    assert most - size < 32 * MIB
    assert produce(other, "foo", batch(b"x")).base_offset == 1


@pytest.mark.timeout(300)
def test_B41_a_batch_of_four_gigabytes_is_refused(victim: Victim) -> None:
    """It is beyond understudy.max.decompressed.batch.bytes; Kafka has no such limit."""
    wire = victim.broker.wire(patience_s=200)
    created(wire, "foo")
    sent = carrying(ZSTD, one_record(0) + one_record(1), 2)
    assert produce(wire, "foo", sent).error_code is ErrorCode.INVALID_RECORD
