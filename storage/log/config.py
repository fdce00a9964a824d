"""Configuration of one log: a topic's configs, resolved, typed, with Kafka's defaults.

Names are Kafka's with underscores; durations are milliseconds. Values are not checked here, but where
they are set. Table: core appendix 2 (Kafka: LogConfig).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final

MAX_LONG: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Configuration of a topic's logs; the defaults are Kafka's (core appendix 2).

    `internal_segment_bytes` overrides `segment_bytes`, without its minimum; 0 means not set.
    """

    cleanup_policy: tuple[str, ...] = ("delete",)
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_type: str = "producer"
    compression_zstd_level: int = 3
    delete_retention_ms: int = 86_400_000
    file_delete_delay_ms: int = 60_000
    flush_messages: int = MAX_LONG
    flush_ms: int = MAX_LONG
    index_interval_bytes: int = 4096
    internal_segment_bytes: int = 0
    local_retention_bytes: int = -2
    local_retention_ms: int = -2
    max_compaction_lag_ms: int = MAX_LONG
    max_decompressed_message_bytes: int = 2_147_483_639
    max_message_bytes: int = 1_048_588
    message_timestamp_after_max_ms: int = 3_600_000
    message_timestamp_before_max_ms: int = MAX_LONG
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    remote_copy_lag_bytes: int = -1
    remote_copy_lag_ms: int = 0
    remote_log_copy_disable: bool = False
    remote_storage_enable: bool = False
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    segment_bytes: int = 1_073_741_824
    segment_index_bytes: int = 10_485_760
    segment_jitter_ms: int = 0
    segment_ms: int = 604_800_000

    compact: bool = field(init=False, default=False)
    """Whether the cleaner works on the log."""
    log_append_time: bool = field(init=False, default=False)
    """Whether the broker's time replaces the producers'."""
    segment_size: int = field(init=False, default=0)
    """The size in bytes at which a segment is rolled."""
    tiered: bool = field(init=False, default=False)
    """Whether the log has a remote tier (UnifiedLog.remoteLogEnabled)."""
    copied: bool = field(init=False, default=False)
    """Whether closed segments are copied to it, and local retention applies."""
    max_segment_ms: int = field(init=False, default=0)
    """The age at which an append rolls the segment, without jitter (core F.3.2)."""

    def __post_init__(self) -> None:
        """Compute once what every append needs."""
        object.__setattr__(self, "compact", "compact" in self.cleanup_policy)
        object.__setattr__(self, "log_append_time", self.message_timestamp_type == "LogAppendTime")
        object.__setattr__(self, "segment_size", self.internal_segment_bytes or self.segment_bytes)
        object.__setattr__(self, "tiered", self.remote_storage_enable and not self.compact)
        object.__setattr__(self, "copied", self.tiered and not self.remote_log_copy_disable)
        compacted_ms = min(self.segment_ms, self.max_compaction_lag_ms)
        object.__setattr__(self, "max_segment_ms", compacted_ms if self.compact else self.segment_ms)

    @property
    def local_bytes(self) -> int:
        """Bytes that are kept locally; -1 for all."""
        return (
            self.retention_bytes if not self.copied or self.local_retention_bytes == -2 else self.local_retention_bytes
        )

    @property
    def local_ms(self) -> int:
        """How long records are kept locally, in ms; -1 for ever."""
        return self.retention_ms if not self.copied or self.local_retention_ms == -2 else self.local_retention_ms

    @property
    def delete(self) -> bool:
        """Whether time and size retention apply."""
        return "delete" in self.cleanup_policy

    @classmethod
    def from_settings(cls, settings: Mapping[str, str | None]) -> "LogConfig":
        """Resolve topic settings by their Kafka names (`retention.ms`); other names are ignored.

        Raises:
            ValueError: a malformed number.
        """
        values: dict[str, object] = {}
        for name, text in settings.items():
            kind = _KINDS.get(name)
            if kind is not None and text is not None:
                values[name.replace(".", "_").replace("-", "_")] = _parse(text.strip(), kind)
        return cls(**values)  # type: ignore[arg-type]  # each value was parsed to its field's type


def _parse(text: str, kind: object) -> object:
    if kind is tuple:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if kind is bool:
        return text.lower() == "true"
    if kind is int:
        return int(text)
    return float(text) if kind is float else text


_KINDS: Final = {each.name.replace("_", "."): type(each.default) for each in fields(LogConfig) if each.init}

DEFAULT_LOG_CONFIG: Final = LogConfig()
"""Kafka's defaults; logs without settings of their own share it."""
