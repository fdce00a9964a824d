"""Placement of a broker's new logs in its log directories (core F.1; Kafka: LogManager.nextLogDirs, KIP-858)."""

from collections.abc import Iterator

from broker.coordination.metadata.image import ClusterImage
from broker.request.log_dirs import cordoned_ids
from broker.request.node import Node
from protocol.errors import ErrorCode, KafkaError
from protocol.java import reserved_capacity, table_order
from protocol.scala import topic_partition_hash
from storage.log_dir import METADATA_TOPIC, Key, LogDir


def place_new_logs(image: ClusterImage, node: Node) -> None:
    """Decide the directories of all logs that a broker does not have yet, in ``Node.preferred_log_dirs``.

    AlterReplicaLogDirs may have decided before; else it is the directory that the controller knows, or the one with the
    fewest logs, the first one of several in log.dirs. Future logs count. Cordoned directories are left out, unless
    there is no other. The order is that of Kafka's tables of what a broker leads and follows from now on (TopicsDelta).

    Raises:
        KafkaError: KAFKA_STORAGE_ERROR: all directories are offline.
    """
    online = [each for each in node.log_dirs if not each.is_offline]
    if not online:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    cordoned = cordoned_ids(image, node.id)
    open_dirs = [each for each in online if each.directory_id not in cordoned] or online[:1]
    counts = {log_dir: _logs_in(log_dir) for log_dir in node.log_dirs}
    for key in _missing(image, node):
        log_dir = node.preferred_log_dirs.get(key)
        if log_dir is None:
            state = image.topics[key[0]].partitions[key[1]]
            assigned = state.directory_of(node.id)
            known = next((each for each in node.log_dirs if each.directory_id == assigned), None)
            log_dir = known or min(open_dirs, key=counts.__getitem__)
            node.preferred_log_dirs[key] = log_dir
        counts[log_dir] += 1


def _missing(image: ClusterImage, node: Node) -> Iterator[Key]:
    """Iterate over the replicas of a broker that have no log: those that it leads, then the others."""
    led: list[Key] = []
    followed: list[Key] = []
    for topic, index, state in image.all_partitions():
        if node.id in state.replicas and node.log_dir_of(topic.name, index) is None:
            (led if state.leader == node.id else followed).append((topic.name, index))
    for keys in (led, followed):
        yield from table_order(keys, topic_partition_hash, reserved_capacity(len(keys)))


def _logs_in(log_dir: LogDir) -> int:
    return sum(topic != METADATA_TOPIC for topic, _ in log_dir.logs) + len(log_dir.futures)
