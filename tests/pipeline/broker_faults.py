"""Faults between the directories of two brokers, and in files of which a directory has one."""

import shutil
from pathlib import Path
from uuid import UUID

from protocol.log_records import group, share_state
from protocol.log_records.share_state import ShareRecord, ShareSnapshot
from protocol.records.records import Record, build_batch
from protocol.types import uuid_text
from storage.checkpoints import (
    CLEANER,
    LOG_START,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINT,
    encode_properties,
)
from tests.pipeline.fault_files import T0_MS, Planting, topic_id_of

Expected = set[tuple[str, str | None]]
"""Name of a check, and the topic or file that it points at."""


def planted(root: Path) -> Expected:
    """Two brokers that disagree; what has to be found."""
    one, two = Planting(root / "broker-1"), Planting(root / "broker-2", node_id=2)
    for where in (one, two):
        for topic in ("same", "differs-in-bytes", "differs-in-count", "differs-in-times"):
            where.shelf(topic).data(3, at_ms=T0_MS)
    _batch(one, "differs-in-bytes", b"v1")
    _batch(two, "differs-in-bytes", b"v2")
    one.shelf("differs-in-count").data(3, at_ms=T0_MS)
    two.shelf("differs-in-count").data(2, at_ms=T0_MS)
    two.shelf("differs-in-count").data(1, at_ms=T0_MS)
    one.shelf("differs-in-times").data(3, at_ms=T0_MS)
    two.shelf("differs-in-times").data(3, at_ms=T0_MS + 7)
    for number in (0, 1):  # `g` belongs into one of the two
        one.shelf("__consumer_offsets", number, cleanup_policy="compact").records(
            [group.encode(group.OffsetCommit("g", "same", 0, 1, commit_timestamp_ms=T0_MS))]
        )
        share = ShareRecord("g", topic_id_of("elsewhere"), 0, ShareSnapshot())
        one.shelf("__share_group_state", number).records([share_state.encode(share)])
    one.written_last |= {CLEANER: b"0\n", RECOVERY_POINT: b"7\n0\n"}
    two.written_last |= {RECOVERY_POINT: b"0\n2\nsame 0 3\nsame 0 3\n", LOG_START: b"0\n1\nsame zero 3\n"}
    properties = {"version": "3", "cluster.id": "another", "directory.id": uuid_text(UUID(int=109))}
    two.written_last[META_PROPERTIES] = encode_properties(properties)
    one.close()
    two.close()
    return {
        ("replica-differs", "differs-in-bytes"),
        ("replica-differs", "differs-in-count"),
        ("replica-differs", "differs-in-times"),
        ("coordinator-partition", "__consumer_offsets"),
        ("coordinator-partition", "__share_group_state"),
        *(("file-unreadable", name) for name in (CLEANER, RECOVERY_POINT, LOG_START)),
        *(("meta-properties", what) for what in ("version", "cluster.id", "node.id", "directory.id")),
    }


def planted_disks(root: Path) -> Expected:
    """Two log directories of one broker, without a metadata log; what has to be found."""
    one, two = Planting(root / "disk-a"), Planting(root / "disk-b")
    one.shelf("orders", 0).data(3)
    one.shelf("orders", 1).data(3)
    two.shelf("orders", 1).data(3)
    two.shelf("orders", 2).data(3)
    metadata = b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAZg"
    two.properties["directory.id"] = uuid_text(UUID(int=177))
    two.written_last[f"orders-2/{PARTITION_METADATA}"] = metadata
    for where in (one, two):
        where.close()
        shutil.rmtree(where.root / "__cluster_metadata-0")
    shutil.copytree(one.root / "orders-0", two.root / f"orders-0.{7:032x}-future")
    return {("partition-twice", "orders"), ("topic-id", "orders"), ("partition-future", "orders")}


def clean_disks(root: Path) -> None:
    """Two log directories of one broker, in order: one of them has the metadata log."""
    one, two = Planting(root / "disk-a"), Planting(root / "disk-b")
    two.properties["directory.id"] = uuid_text(UUID(int=177))
    for number, where in ((0, one), (1, two)):
        where.shelf("orders", number).data(3)
    one.lost.append(("orders", 1))
    one.close()
    two.close()
    shutil.rmtree(two.root / "__cluster_metadata-0")


def clean_cluster_with_disks(root: Path) -> None:
    """Two brokers with two log directories each; every partition has a replica on each broker."""
    for node_id in (1, 2):
        disks = [Planting(root / f"broker-{node_id}" / name, node_id=node_id) for name in ("disk-a", "disk-b")]
        for number, where in enumerate(disks):
            where.properties["directory.id"] = uuid_text(UUID(int=100 * node_id + number))
            where.shelf("orders", (number + node_id) % 2).data(3, at_ms=T0_MS)
            disks[1 - number].lost.append(("orders", (number + node_id) % 2))
        for where in disks:
            where.close()
        shutil.rmtree(disks[1].root / "__cluster_metadata-0")


def _batch(where: Planting, topic: str, value: bytes) -> None:
    log = where.shelf(topic)
    log.raw(build_batch([Record(log.next_offset, T0_MS, b"k", value)], partition_leader_epoch=0))
