"""The small text files of a data directory and its partitions (transactions F.7, F.8).

Each function encodes or decodes file contents; the caller reads and writes the files.
"""

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from protocol.types import uuid_from_text, uuid_text

RECOVERY_POINT = "recovery-point-offset-checkpoint"
LOG_START = "log-start-offset-checkpoint"
HIGH_WATERMARK = "replication-offset-checkpoint"
CLEANER = "cleaner-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"

_VERSION = 0


class CheckpointError(ValueError):
    """Malformed checkpoint file; readers may treat it as missing."""


class EpochEntry(NamedTuple):
    """A leader epoch and the offset of its first record."""

    epoch: int
    start_offset: int


def _lines(contents: bytes) -> list[list[str]]:
    """Split a checkpoint into its entries: version line, count line, then `count` lines of fields."""
    try:
        lines = contents.decode().splitlines()
        version, count = int(lines[0]), int(lines[1])
    except (UnicodeDecodeError, IndexError, ValueError):
        raise CheckpointError("version or count cannot be read") from None
    if not contents.endswith(b"\n"):  # a power cut may leave `1 7` of `1 77`
        raise CheckpointError("its last line is cut off")
    entries = [line.split() for line in lines[2:] if line]
    if version != _VERSION or len(entries) != count:
        raise CheckpointError(f"version {version}, {count} entries promised, {len(entries)} found")
    return entries


def encode_offsets(offsets: Mapping[tuple[str, int], int]) -> bytes:
    """Encode an offset checkpoint of a data directory: (topic, partition) -> offset."""
    lines = [f"{topic} {partition} {offset}\n" for (topic, partition), offset in offsets.items()]
    return f"{_VERSION}\n{len(lines)}\n{''.join(lines)}".encode()


def decode_offsets(contents: bytes) -> dict[tuple[str, int], int]:
    """Decode an offset checkpoint.

    Raises:
        CheckpointError: malformed, or a partition is listed twice.
    """
    entries = _lines(contents)
    try:
        offsets = {(topic, int(partition)): int(offset) for topic, partition, offset in entries}
    except ValueError:
        raise CheckpointError("an entry is not `topic partition offset`") from None
    if len(offsets) != len(entries):
        raise CheckpointError("a partition is listed twice")
    return offsets


def encode_epochs(entries: Sequence[EpochEntry]) -> bytes:
    """Encode `leader-epoch-checkpoint`."""
    lines = [f"{entry.epoch} {entry.start_offset}\n" for entry in entries]
    return f"{_VERSION}\n{len(lines)}\n{''.join(lines)}".encode()


def decode_epochs(contents: bytes) -> list[EpochEntry]:
    """Decode the entries of `leader-epoch-checkpoint`.

    Raises:
        CheckpointError: malformed.
    """
    try:
        return [EpochEntry(int(epoch), int(start)) for epoch, start in _lines(contents)]
    except ValueError:
        raise CheckpointError("an entry is not `epoch offset`") from None


def encode_partition_metadata(topic_id: UUID) -> bytes:
    """Encode `partition.metadata`."""
    return f"version: {_VERSION}\ntopic_id: {uuid_text(topic_id)}".encode()


def decode_partition_metadata(contents: bytes) -> UUID:
    """Decode the topic id in `partition.metadata`.

    Raises:
        CheckpointError: malformed, or of a version that Kafka does not know (``PartitionMetadataFile``).
    """
    values = dict(line.split(": ", 1) for line in contents.decode(errors="replace").splitlines() if ": " in line)
    if values.get("version", "").strip() != "0":
        raise CheckpointError(f"version {values.get('version', 'missing').strip()}")
    try:
        return uuid_from_text(values["topic_id"].strip())
    except (KeyError, ValueError):
        raise CheckpointError("no topic id") from None


def encode_properties(values: Mapping[str, str]) -> bytes:
    """Encode a Java properties file with plain keys and values, such as `meta.properties`."""
    return "".join(f"{key}={value}\n" for key, value in values.items()).encode()


def decode_properties(contents: bytes) -> dict[str, str]:
    """Decode the values of a Java properties file, without comments."""
    pairs = {}
    for line in contents.decode(errors="replace").splitlines():
        text = line.strip()
        if text and text[0] not in "#!":
            key, _, value = text.partition("=")
            pairs[key.strip()] = value.strip().replace("\\:", ":").replace("\\=", "=")
    return pairs


def node_id_of(properties: Mapping[str, str]) -> str | None:
    """Return the node id in `meta.properties`, which is `broker.id` before KRaft; None if there is none."""
    return properties.get("node.id", properties.get("broker.id"))


def encode_clean_shutdown(broker_epoch: int) -> bytes:
    """Encode `.kafka_cleanshutdown`: everything was flushed by the broker of this epoch."""
    return json.dumps({"version": _VERSION, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()


def decode_clean_shutdown(contents: bytes) -> int:
    """Decode the broker epoch in `.kafka_cleanshutdown`; -1 if it has none (older releases wrote an empty file)."""
    try:
        return int(json.loads(contents)["brokerEpoch"])
    except (ValueError, KeyError, TypeError):
        return -1
