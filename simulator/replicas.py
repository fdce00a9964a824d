"""Checks of the brokers' own state: replicas must be equal, and a restart must not change anything."""

from broker.cluster.cluster import Cluster
from broker.coordination.metadata.image import METADATA_TOPIC
from protocol.records.records import read_records
from simulator.clients.prober import NEVER
from simulator.log_states import producers_of
from storage.log.partition_log import PartitionLog


def contents(log: PartitionLog, end: int) -> list[tuple[object, ...]]:
    """Return the batches of a log below an offset, with the properties that must be equal on all replicas."""
    return [
        (
            batch.base_offset,
            batch.last_offset,
            batch.partition_leader_epoch,
            batch.producer_id,
            batch.producer_epoch,
            batch.is_control,
            batch.is_transactional,
            [(each.key, each.value) for each in read_records(batch)] if not batch.is_control else bytes(batch.view),
        )
        for batch in log.reader.replay_from(log.log_start_offset)
        if batch.base_offset < end
    ]


def compare_replicas(cluster: Cluster) -> list[str]:
    """List the differences between replicas below the high watermark, and the replicas that are not in sync."""
    differences = []
    for partition in cluster.partitions.values():
        leader = partition.logs.get(partition.state.leader)
        if leader is None:
            differences.append(f"{partition.name} has no leader although no fault is under way")
            continue
        if missing := sorted({*partition.state.replicas} - {*partition.state.isr}):
            differences.append(f"{partition.name}: brokers {missing} are not in sync although no fault is under way")
        expected = contents(leader, leader.high_watermark)
        for broker, log in sorted(partition.logs.items()):
            if log is leader:
                continue
            own = contents(log, leader.high_watermark)
            if own != expected:
                other = next((pair for pair in zip(expected, own, strict=False) if pair[0] != pair[1]), None)
                what = other or f"{len(expected)} and {len(own)} batches"
                differences.append(f"{partition.name} differs at brokers {partition.state.leader} and {broker}: {what}")
            if producers_of(log) != producers_of(leader):
                differences.append(
                    f"{partition.name}: broker {broker} has the producers {producers_of(log)}, "
                    f"its leader {producers_of(leader)}"
                )
    return differences


def find_duplicates(cluster: Cluster) -> list[str]:
    """List the values that are in a client's topic more than once, committed or not."""
    duplicates = []
    for partition in cluster.partitions.values():
        leader = partition.logs.get(partition.state.leader)
        if leader is None or partition.topic.startswith("__"):
            continue
        places: dict[bytes, list[int]] = {}
        for batch in leader.reader.replay_from(leader.log_start_offset):
            for each in () if batch.is_control else read_records(batch):
                places.setdefault(bytes(each.value or b""), []).append(each.offset)
        twice = ((value, offsets) for value, offsets in places.items() if len(offsets) > 1 or value == NEVER)
        duplicates += [f"{partition.name} has {value!r} at {offsets}" for value, offsets in twice]
    return duplicates


def fingerprint(cluster: Cluster) -> dict[str, str]:
    """Return the state that must survive a restart from disk: logs, producers, transactions, group offsets, topics."""
    ends: dict[str, str] = {}
    for (topic, index), partition in sorted(cluster.partitions.items()):
        leader = partition.logs.get(partition.state.leader)
        if leader is None or topic == METADATA_TOPIC:
            continue
        ends[f"the end of {topic}-{index}"] = str(leader.log_end_offset)
        ends[f"the producers of {topic}-{index}"] = producers_of(leader)
    for node in cluster.nodes.values():
        for transactions in node.coordinators.transactions.values():
            for name, record in transactions.machine.transactions.items():
                own = sorted(record.partitions or ())
                ends[f"transactional id {name}"] = (
                    f"{record.state.name} {record.producer_id} {record.producer_epoch} {own}"
                )
        for groups in node.coordinators.groups.values():
            for group_id in groups.machine.groups:
                for topic, partitions in groups.machine.offsets.topics(group_id).items():
                    for index, kept in partitions.items():
                        ends[f"the offset of {group_id} in {topic}-{index}"] = str(kept.commit.offset)
    return ends
