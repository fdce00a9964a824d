"""Prepares a running cluster for a load: creates or empties topics, or finds the start of the same records in them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow.compute as pc

from pipeline.transfer.targets import LoadError, Target, counts, tables
from pipeline.transfer.wire import EARLIEST, LATEST, Cluster
from protocol.records.batch import batches
from protocol.records.records import read_records

_TIMESTAMP_TYPE: Final = "message.timestamp.type"


def prepare(cluster: Cluster, wanted: Sequence[Target], *, resume: bool, overwrite: bool) -> list[Target]:
    """Create missing topics, wait for leaders, and find the offset at which each partition continues.

    Args:
        cluster: the cluster.
        wanted: the targets of the load.
        resume: whether topics may already hold the first records of the load, and nothing else.
        overwrite: whether to delete and recreate topics that hold records.

    Raises:
        LoadError: a topic holds records, or has fewer partitions than the export.
        WireError: the cluster refused.
    """
    new_topics = counts(wanted)
    there = [name for name in new_topics if name in cluster.topics]
    partitions = [(name, number) for name in there for number in cluster.topics[name].leaders]
    cluster.wait_for_leaders(partitions)
    filled = sorted({name for name, number in partitions if _end(cluster, name, number)})
    if filled and overwrite:
        cluster.delete(filled)
    elif filled and not resume:
        raise LoadError(
            f"{filled[0]} holds records already; a load goes into empty topics: use --resume to continue an "
            "interrupted load, --overwrite to delete the topic first, or --topic-map"
        )
    cluster.create(new_topics)
    cluster.wait_for_leaders([(each.topic, each.partition) for each in wanted])
    for name, (count, _) in new_topics.items():
        if len(cluster.topics[name].leaders) < count:
            raise LoadError(f"{name} has {len(cluster.topics[name].leaders)} partitions in the cluster, not {count}")
    return [_goes_on(cluster, each) for each in wanted]


def replaced_times(cluster: Cluster, wanted: Sequence[Target]) -> list[str]:
    """Return the topics whose records get new timestamps (LogAppendTime)."""
    names = sorted({each.topic for each in wanted})
    configs: Mapping[str, Mapping[str, str]] = cluster.configs(names) if names else {}
    return [name for name in names if configs.get(name, {}).get(_TIMESTAMP_TYPE) == "LogAppendTime"]


def _end(cluster: Cluster, topic: str, partition: int) -> int:
    """Return the number of offsets of a partition."""
    return cluster.offset(topic, partition, LATEST) - cluster.offset(topic, partition, EARLIEST)


def _goes_on(cluster: Cluster, target: Target) -> Target:
    """Return the target with the offset of its first record; existing records must be the first ones of the load."""
    start, end = (cluster.offset(target.topic, target.partition, at) for at in (EARLIEST, LATEST))
    if end > start:
        last = _record(cluster, target, end - 1)
        expected = _row(target, end - start - 1)
        if last is None or expected is None or last != expected:
            raise LoadError(
                f"{target.topic}-{target.partition} holds other records than the beginning of this load; use "
                "--overwrite to delete the topic first, or --topic-map"
            )
    return replace(target, base_offset=start)


def _record(cluster: Cluster, target: Target, offset: int) -> tuple[Any, Any] | None:
    piece, _ = cluster.fetch(target.topic, target.partition, offset)
    for batch in batches(piece):
        if batch.is_control or batch.next_offset <= offset:
            continue
        for record in read_records(batch):
            if record.offset == offset:
                return _bytes(record.key), _bytes(record.value)
    return None


def _row(target: Target, number: int) -> tuple[Any, Any] | None:
    """Return key and value of the n-th record that a load produces."""
    for table_of_target in tables(target):
        table = (
            table_of_target.filter(pc.invert(table_of_target.column("is_control")))
            if target.producers
            else table_of_target
        )
        if number < table.num_rows:
            return table.column("key")[number].as_py(), table.column("value")[number].as_py()
        number -= table.num_rows
    return None


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)
