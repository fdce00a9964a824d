"""Entries of a data directory that belong to Kafka or Understudy, and removal of those only.

A data directory is refused when it holds entries that neither Kafka nor Understudy writes. Later removal goes file by
file: an unknown file that has appeared in between is kept, and so is its directory.

A directory that Understudy formatted carries `understudy.properties`. The file names the directory and the broker
incarnation that served it last; when Kafka has served it since, the metadata log names another incarnation and the
directory counts as Kafka's.
"""

import re
from collections.abc import Iterable
from uuid import UUID

from protocol.types import uuid_from_text, uuid_text
from storage.checkpoints import (
    CLEAN_SHUTDOWN,
    CLEANER,
    HIGH_WATERMARK,
    LEADER_EPOCHS,
    LOG_START,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINT,
    decode_properties,
    encode_properties,
)
from storage.files import Files

OWNER_PROPERTIES = "understudy.properties"
RESTORING = ".understudy-restoring"
"""Folder of a state that is to replace the contents of the data directory, perhaps empty (storage.replacement)."""
REPLACING = ".understudy-replacing"
"""Its name while the old contents are removed."""
RESTORED = ".understudy-restored"
"""Its name while the new contents are moved into place."""
LOADING = ".understudy-loading"
"""Notes of a load that writes logs (pipeline.transfer.load_notes); a directory with them is incomplete."""
LOCK = ".lock"
"""File whose lock excludes other processes (`DiskFiles.lock`)."""

OFFSET_CHECKPOINTS = (CLEANER, HIGH_WATERMARK, LOG_START, RECOVERY_POINT)
"""Checkpoints of a data directory that have an offset for each partition."""
_ROOT_FILES = frozenset(
    {META_PROPERTIES, CLEAN_SHUTDOWN, *OFFSET_CHECKPOINTS, OWNER_PROPERTIES, "bootstrap.checkpoint", LOCK}
)
_PARTITION_FILES = frozenset({LEADER_EPOCHS, PARTITION_METADATA, "quorum-state"})
_SEGMENT_FILE = re.compile(
    r"\d{20}(\.[0-9a-f]+)?\.(log|index|timeindex|txnindex|snapshot)(\.cleaned|\.swap)*(\.deleted|\.tiered)?"
    r"|\d{20}-\d{10}\.checkpoint(\.part|\.deleted)?"
)
_SEGMENT_PART = re.compile(r"(\d{20})\.(log|index|timeindex|txnindex|snapshot)")
# Kafka's UnifiedLog.parseTopicPartitionName, with the legal characters of topic names (Topic.LEGAL_CHARS).
_PARTITION_DIRECTORY = re.compile(r"[a-zA-Z0-9._-]+-\d+(\.[0-9a-f]{32}-(delete|future|stray))?")
_RETIRED_DIRECTORY = re.compile(r"[a-zA-Z0-9._-]*-\d+\.[0-9a-f]{32}-(delete|stray)")
_OWN_DIRECTORIES = frozenset({RESTORING, REPLACING, RESTORED, LOADING, "remote-log-index-cache"})
# Written by operating systems into any directory. Never read, never removed, no reason to refuse.
SYSTEM_ENTRIES = frozenset({"lost+found", ".DS_Store", "Thumbs.db", "desktop.ini"})
_OFFSETS = range(2**63)
_NAMED_AFTER_AN_OFFSET = re.compile(r"([^.]*).*\.(log|index|timeindex|txnindex|snapshot|cleaned|swap)")
_RETIREMENT = re.compile(r"\.[^.]*-(delete|future|stray)$")
_MAX_NAMED = 5  # in an error message; what fits on a line


def segment_part(name: str) -> tuple[int, str] | None:
    """Return offset and suffix (`log`, `index`, `timeindex`, `txnindex`, `snapshot`) of a segment's file, else None."""
    name_match = _SEGMENT_PART.fullmatch(name)
    return None if name_match is None or int(name_match[1]) not in _OFFSETS else (int(name_match[1]), name_match[2])


def is_refused_folder(name: str) -> bool:
    """Return whether a broker does not start because of a folder in its data directory.

    Its name has no topic and number (UnifiedLog.parseTopicPartitionName). Folders of operating systems and of
    Understudy do not count, since Understudy starts with them.
    """
    topic, _, number = _RETIREMENT.sub("", name).rpartition("-")
    return not (topic and number.isdecimal()) and name not in _OWN_DIRECTORIES | SYSTEM_ENTRIES


def is_refused_file(name: str) -> bool:
    """Return whether a broker does not start because of a file in a partition's folder: its name begins with no offset.

    LogLoader and ProducerStateManager parse the names of all files with these suffixes (LogFileUtils.offsetFromFile).
    """
    parts = _NAMED_AFTER_AN_OFFSET.fullmatch(name)
    return parts is not None and not (parts[1].isdecimal() and int(parts[1]) in _OFFSETS)


def foreign_entries(files: Files) -> list[str]:
    """List entries of a data directory, and files in its partitions, that neither Kafka nor Understudy writes."""
    foreign = []
    for name in files.list():
        if name in SYSTEM_ENTRIES:
            continue
        if not files.is_directory(name):
            if not _is_root_file(name):
                foreign.append(name)
        elif _is_partition_directory(name):
            foreign += [f"{name}/{each}" for each in files.list(name) if not _belongs_to_partition(files, name, each)]
        elif name not in _OWN_DIRECTORIES:
            foreign.append(name)
    return foreign


def is_unused(files: Files) -> bool:
    """Whether the directory is empty, except for a lock and files of the operating system."""
    return all(name in SYSTEM_ENTRIES or name == LOCK for name in files.list())


def named(entries: Iterable[str]) -> str:
    """List a few of the entries, for a message."""
    known = list(entries)
    rest = len(known) - _MAX_NAMED
    return ", ".join(known[:_MAX_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def is_log(files: Files, directory: str) -> bool:
    """Whether a directory with a partition's name is a log: it is empty, or has a file that Kafka writes."""
    if not files.is_directory(directory):
        return False
    names = files.list(directory)
    return not names or any(_belongs_to_partition(files, directory, name) for name in names)


def remove_partition_directory(files: Files, path: str) -> list[str]:
    """Remove Kafka's files from a partition's directory, and the directory if that leaves it empty.

    Returns:
        The paths of the entries that were left because Kafka does not write such files.
    """
    if not files.is_directory(path):
        return []
    left = []
    for name in files.list(path):
        if _belongs_to_partition(files, path, name):
            files.remove(f"{path}/{name}")
        else:
            left.append(f"{path}/{name}")
    if not left:
        files.remove_directory(path)  # kept if a file has appeared meanwhile
    return left


def remove_contents(files: Files) -> list[str]:
    """Remove everything that Kafka or Understudy writes to a data directory, but neither the directory nor its lock.

    Returns:
        The paths of the entries that were left because neither of them writes such files.
    """
    left = []
    for name in files.list():
        if files.is_directory(name):
            if _is_partition_directory(name):
                left += remove_partition_directory(files, name)
            elif name not in SYSTEM_ENTRIES and name not in (RESTORING, REPLACING, RESTORED):
                left.append(name)
        elif name == LOCK:
            continue  # another process could lock a new one
        elif _is_root_file(name):
            files.remove(name)
        elif name not in SYSTEM_ENTRIES:
            left.append(name)
    return left


def write_owner(files: Files, directory_id: UUID, incarnation_id: UUID) -> None:
    """Record that Understudy formatted this directory, and the broker incarnation that serves it now."""
    properties = {
        "version": "1",
        "directory.id": uuid_text(directory_id),
        "incarnation.id": uuid_text(incarnation_id),
    }
    files.replace(OWNER_PROPERTIES, encode_properties(properties), durable=False)


def last_incarnation(files: Files, directory_id: UUID | None) -> UUID | None:
    """Return Understudy's last broker incarnation in this directory; None if Understudy did not format it."""
    if directory_id is None or not files.exists(OWNER_PROPERTIES):
        return None
    properties = decode_properties(files.read_file(OWNER_PROPERTIES))
    try:
        if uuid_from_text(properties["directory.id"]) != directory_id:
            return None
        return uuid_from_text(properties["incarnation.id"])
    except (KeyError, ValueError):
        return None


def _is_root_file(name: str) -> bool:
    return name.removesuffix(".tmp") in _ROOT_FILES


def _is_partition_directory(name: str) -> bool:
    return bool(_PARTITION_DIRECTORY.fullmatch(name) or _RETIRED_DIRECTORY.fullmatch(name))


def _belongs_to_partition(files: Files, directory: str, name: str) -> bool:
    known = name.removesuffix(".tmp") in _PARTITION_FILES or _SEGMENT_FILE.fullmatch(name.removesuffix(".tmp"))
    return bool(known) and not files.is_directory(f"{directory}/{name}")
