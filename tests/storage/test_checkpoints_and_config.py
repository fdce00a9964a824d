"""The small text files, and a topic's settings as a log sees them (transactions F.7, F.8; core appendix 2)."""

from uuid import UUID

import pytest

from storage import checkpoints
from storage.checkpoints import CheckpointError, EpochEntry
from storage.log.config import LogConfig


def test_offset_checkpoints() -> None:
    """Version, count, a line for each partition; topics may hold dots and dashes."""
    offsets = {("a-b.c", 0): 5, ("x", 12): 2**62}
    text = checkpoints.encode_offsets(offsets)
    assert text == b"0\n2\na-b.c 0 5\nx 12 4611686018427387904\n"
    assert checkpoints.decode_offsets(text) == offsets
    assert checkpoints.decode_offsets(b"0\n0\n") == {}


@pytest.mark.parametrize(
    "text",
    [b"", b"0\n", b"1\n0\n", b"0\n2\na 0 1\n", b"0\n2\na 0 1\na 0 2\n", b"0\n1\na 0\n", b"0\n1\na b c\n", b"\xff\n0\n"],
    ids=repr,
)
def test_malformed_offset_checkpoints(text: bytes) -> None:
    """They are an error; the reader of the file decides what follows."""
    with pytest.raises(CheckpointError):
        checkpoints.decode_offsets(text)


def test_leader_epoch_checkpoints() -> None:
    """An epoch and its first offset a line."""
    entries = [EpochEntry(0, 0), EpochEntry(5, 17)]
    assert checkpoints.encode_epochs(entries) == b"0\n2\n0 0\n5 17\n"
    assert checkpoints.decode_epochs(b"0\n2\n0 0\n5 17\n") == entries
    with pytest.raises(CheckpointError):
        checkpoints.decode_epochs(b"0\n1\n5\n")


@pytest.mark.parametrize("cut", range(1, 9))
def test_what_a_power_cut_has_left_of_a_checkpoint_is_no_checkpoint(cut: int) -> None:
    """`5 1` would be another offset than `5 17`, without a sign of damage but the missing end of its line."""
    whole = checkpoints.encode_epochs([EpochEntry(0, 0), EpochEntry(5, 17)])
    with pytest.raises(CheckpointError):
        checkpoints.decode_epochs(whole[:-cut])
    with pytest.raises(CheckpointError):
        checkpoints.decode_offsets(checkpoints.encode_offsets({("t", 0): 0, ("u", 0): 17})[:-cut])


def test_partition_metadata() -> None:
    """The topic id in base64url, no newline at the end."""
    topic_id = UUID(bytes=bytes(range(240, 256)))
    text = checkpoints.encode_partition_metadata(topic_id)
    assert text == b"version: 0\ntopic_id: 8PHy8_T19vf4-fr7_P3-_w"
    assert checkpoints.decode_partition_metadata(text + b"\n") == topic_id
    for broken in (b"", b"version: 0\n", b"version: 0\ntopic_id: x"):
        with pytest.raises(CheckpointError):
            checkpoints.decode_partition_metadata(broken)


def test_java_properties() -> None:
    """Comments and escapes as Java writes them."""
    text = b"#\n#Mon Jan 01 00:00:00 UTC 2024\ncluster.id=abc\\=\\=\n version = 1 \n!x\n\n"
    assert checkpoints.decode_properties(text) == {"cluster.id": "abc==", "version": "1"}
    assert checkpoints.decode_properties(checkpoints.encode_properties({"a.b": "c"})) == {"a.b": "c"}


def test_the_clean_shutdown_marker() -> None:
    """JSON with the broker's epoch; an old, empty one has none."""
    assert checkpoints.encode_clean_shutdown(42) == b'{"version":0,"brokerEpoch":42}'
    assert checkpoints.decode_clean_shutdown(b'{"version":0,"brokerEpoch":42}') == 42
    assert [checkpoints.decode_clean_shutdown(text) for text in (b"", b"[]", b"{}")] == [-1, -1, -1]


def test_defaults_are_kafkas() -> None:
    """They are those of core appendix 2."""
    config = LogConfig()
    assert (config.segment_size, config.retention_ms, config.index_interval_bytes) == (1 << 30, 604_800_000, 4096)
    assert (config.delete, config.compact, config.log_append_time) == (True, False, False)


def test_settings_by_kafkas_names() -> None:
    """Typed; unknown names and nulls do not concern the log."""
    config = LogConfig.from_settings(
        {
            "cleanup.policy": "compact, delete",
            "min.cleanable.dirty.ratio": "0.25",
            "retention.ms": "-1",
            "internal.segment.bytes": "200",
            "preallocate": "true",
            "message.timestamp.type": "LogAppendTime",
            "remote.storage.enable": "false",
            "compression.type": None,
        }
    )
    assert (config.compact, config.delete, config.min_cleanable_dirty_ratio) == (True, True, 0.25)
    assert (config.retention_ms, config.segment_size, config.preallocate, config.log_append_time) == (
        -1,
        200,
        True,
        True,
    )
    assert config.compression_type == "producer"
    assert LogConfig.from_settings({"cleanup.policy": ""}).cleanup_policy == ()


def test_a_segment_is_as_old_as_the_shorter_limit_lets_it() -> None:
    """`max.compaction.lag.ms` counts where the log is compacted (core F.3.2)."""
    settings = {"segment.ms": "1000", "max.compaction.lag.ms": "100"}
    assert LogConfig.from_settings(settings).max_segment_ms == 1000
    assert LogConfig.from_settings({**settings, "cleanup.policy": "compact"}).max_segment_ms == 100
