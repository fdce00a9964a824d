"""AlterReplicaLogDirs: moves replicas between this broker's log directories (KIP-113).

Versions 1-2. Differs from Kafka: a broker has one directory, so a replica is already there, or cannot be moved.
"""

from broker.request.api import Api
from broker.request.context import AclOperation, RequestContext
from broker.request.log_dirs import is_offline, path_of
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
_FUTURE_NAME_EXTRA = len(".-future") + 32
"""What Kafka adds to ``topic-partition`` in the name of a directory that is being filled: a UUID and the suffix."""


async def handle(request: AlterReplicaLogDirsRequest, ctx: RequestContext) -> AlterReplicaLogDirsResponse:
    """Check each replica in the order of Kafka's map; a broker has one directory, so nothing moves (core B.12)."""
    if not may_on_cluster(ctx, AclOperation.ALTER):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    own = path_of(ctx.node)
    wanted = _last_directories(request)
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                name,
                [
                    AlterReplicaLogDirPartitionResult(
                        index, _move(name, index, own if wanted[name, index] == own else None, ctx)
                    )
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


def _move(topic: str, index: int, path: str | None, ctx: RequestContext) -> ErrorCode:
    if len(f"{topic}-{index}") + _FUTURE_NAME_EXTRA > _LONGEST_NAME:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if path is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if is_offline(ctx.node):
        return ErrorCode.KAFKA_STORAGE_ERROR
    partition = ctx.cluster.partitions.get((topic, index))
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    log = partition.logs.get(ctx.node.id)
    if log is None:
        return ErrorCode.REPLICA_NOT_AVAILABLE
    return ErrorCode.KAFKA_STORAGE_ERROR if log.offline else ErrorCode.NONE


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


API: Api[AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse] = Api(
    ApiKey.ALTER_REPLICA_LOG_DIRS, (1, 2), handle, refuse, removed=0
)
