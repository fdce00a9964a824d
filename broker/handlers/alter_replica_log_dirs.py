"""AlterReplicaLogDirs: moves replicas between this broker's log directories (KIP-113).

Versions 1-2. Not done: nothing.
"""

from broker.request.api import Api
from broker.request.context import AclOperation, RequestContext
from broker.request.log_dirs import cordoned_ids
from broker.request.topology import may_on_cluster
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from protocol.scala import grouped_by_topic

_LONGEST_NAME = 255
"""The longest name of a directory in characters; Kafka checks it before anything else of a partition (core B.12)."""
_FUTURE_NAME_EXTRA = len(".-future") + 32
"""What Kafka adds to ``topic-partition`` in the name of a directory that is being filled: a UUID and the suffix."""


async def handle(request: AlterReplicaLogDirsRequest, ctx: RequestContext) -> AlterReplicaLogDirsResponse:
    """Begin to move each replica, in the order of Kafka's map (core B.12); the moves go on after the response."""
    if not may_on_cluster(ctx, AclOperation.ALTER):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    wanted = _last_directories(request)
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                name,
                [
                    AlterReplicaLogDirPartitionResult(index, _move(name, index, wanted[name, index], ctx))
                    for index in indexes
                ],
            )
            for name, indexes in grouped_by_topic(wanted).items()
        ]
    )


def _last_directories(request: AlterReplicaLogDirsRequest) -> dict[tuple[str, int], str]:
    """Return each replica's directory, of several the last one (AlterReplicaLogDirsRequest.partitionDirs)."""
    return {
        (topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }


def _move(topic: str, index: int, path: str, ctx: RequestContext) -> ErrorCode:
    """Begin to move one replica, after the checks of ``ReplicaManager.alterReplicaLogDirs``."""
    node = ctx.node
    if len(f"{topic}-{index}") + _FUTURE_NAME_EXTRA > _LONGEST_NAME:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if path not in node.log_dir_paths:
        return ErrorCode.LOG_DIR_NOT_FOUND
    target = node.log_dirs[node.log_dir_paths.index(path)]
    if target.is_offline:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if target.directory_id in cordoned_ids(ctx.cluster.image, node.id):
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT
    partition = ctx.cluster.partitions.get((topic, index))
    log = None if partition is None else partition.logs.get(node.id)
    if partition is None or log is None:
        node.preferred_log_dirs[topic, index] = target  # for a log that is created later
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if partition is None else ErrorCode.REPLICA_NOT_AVAILABLE
    if log.offline:
        return ErrorCode.KAFKA_STORAGE_ERROR
    try:
        ctx.cluster.moves.begin(node, partition, target)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def refuse(
    request: AlterReplicaLogDirsRequest,
    error: KafkaError,
    version: int,  # noqa: ARG001
) -> AlterReplicaLogDirsResponse:
    """Put the error on every partition."""
    topics: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            results = [AlterReplicaLogDirPartitionResult(index, error.code) for index in topic.partitions]
            topics.setdefault(topic.name, []).extend(results)
    return AlterReplicaLogDirsResponse(
        results=[AlterReplicaLogDirTopicResult(name, partitions) for name, partitions in topics.items()]
    )


API: Api[AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse] = Api(ApiKey.ALTER_REPLICA_LOG_DIRS, handle, refuse)
