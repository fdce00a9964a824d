"""Batches damaged on purpose, with a valid checksum: refused with a declared error, or stored sound."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.records.batch import RecordBatch
from protocol.records.compression import Codec
from protocol.records.errors import RecordsError
from protocol.records.records import build_batch, read_records
from storage.append_errors import RecordsRejectedError
from storage.log.config import LogConfig
from tests.storage.validating import CODECS, append, records

CONFIGS = [
    LogConfig(),
    LogConfig(cleanup_policy=("compact",), message_timestamp_before_max_ms=1000),
    LogConfig(message_timestamp_type="LogAppendTime", compression_type="zstd"),
    LogConfig(compression_type="uncompressed", message_timestamp_after_max_ms=2**63 - 1),
]


def check_stored(damaged: bytearray, config: LogConfig) -> None:
    """Append a batch whose checksum is made to match; what is accepted must be whole and readable."""
    damaged[17:21] = RecordBatch(damaged).compute_crc().to_bytes(4, "big")
    with suppress(RecordsRejectedError):
        stored = append(damaged, config)
        assert stored.crc_ok()
        assert (stored.base_offset, stored.partition_leader_epoch) == (100, 7)
        assert len(list(read_records(stored))) == stored.record_count


@pytest.mark.slow
@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("codec", CODECS)
def test_any_changed_byte_is_refused_or_harmless(codec: Codec, config: LogConfig) -> None:
    """Every byte that the checksum covers, to its extremes and to its neighbours."""
    sent = build_batch(records(), codec=codec, producer_id=1, producer_epoch=0, base_sequence=0)
    for position in range(21, len(sent)):
        for value in (0, 1, 0x7F, 0x80, 0xFF, sent[position] ^ 1):
            damaged = bytearray(sent)
            damaged[position] = value
            check_stored(damaged, config)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.sampled_from(CONFIGS), st.sampled_from(CODECS), st.data())
def test_any_changes_are_refused_or_harmless(config: LogConfig, codec: Codec, data: st.DataObject) -> None:
    """Several changed bytes at once are refused, or do no harm."""
    damaged = build_batch(records(20), codec=codec)
    for _ in range(data.draw(st.integers(1, 6))):
        damaged[data.draw(st.integers(21, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    check_stored(damaged, config)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.binary(max_size=120))
def test_any_bytes_are_refused(payload: bytes) -> None:
    """Random bytes as the records of a batch, in every codec."""
    for codec in CODECS:
        damaged = build_batch(records(1))[:61] + payload
        damaged[8:12] = (len(damaged) - 12).to_bytes(4, "big")
        damaged[22] = codec
        check_stored(damaged, LogConfig())
        batch = RecordBatch(damaged)
        with suppress(RecordsError):
            assert len(list(read_records(batch))) == max(batch.record_count, 0)
