"""DescribeLogDirs: the log directories of this broker, and the sizes of its logs (KIP-113, KIP-827).

Versions 1-5. Not done: nothing.
"""

from collections.abc import Container

from broker.request.api import Api
from broker.request.context import AclOperation, RequestContext
from broker.request.log_dirs import cordoned_ids, space_of
from broker.request.topology import may_on_cluster
from protocol import features
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.java import concurrent_capacity, string_hash, table_order
from protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from protocol.scala import immutable_order, topic_partition_hash
from storage.log.partition_log import PartitionLog
from storage.log_dir import METADATA_TOPIC, Key, LogDir

_SMALL_SET = 4
"""A Scala set of so many elements keeps their order."""


async def handle(request: DescribeLogDirsRequest, ctx: RequestContext) -> DescribeLogDirsResponse:
    """Return size and lag of each replica, current or future, in each log directory (core B.12)."""
    if not may_on_cluster(ctx, AclOperation.DESCRIBE):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    node = ctx.node
    results = {
        path: _result(path, log_dir, wanted, ctx)
        for path, log_dir in zip(node.log_dir_paths, node.log_dirs, strict=True)
    }
    order = immutable_order(results, string_hash) if len(results) > _SMALL_SET else list(results)
    return DescribeLogDirsResponse(results=[results[path] for path in order])


def _result(path: str, log_dir: LogDir, wanted: Container[Key] | None, ctx: RequestContext) -> DescribeLogDirsResult:
    if log_dir.is_offline:
        return DescribeLogDirsResult(ErrorCode.KAFKA_STORAGE_ERROR, path)
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for log, is_future in _in_order(log_dir, ctx):
        if wanted is None or (log.topic, log.partition) in wanted:
            lag = _lag(log, ctx) if is_future else max(log.high_watermark - log.log_end_offset, 0)
            described = DescribeLogDirsPartition(log.partition, log.segments.size, lag, is_future)
            topics.setdefault(log.topic, []).append(described)
    total, usable = space_of(log_dir.context.files)
    return DescribeLogDirsResult(
        log_dir=path,
        topics=[DescribeLogDirsTopic(name, topics[name]) for name in immutable_order(topics, string_hash)],
        total_bytes=total,
        usable_bytes=usable,
        is_cordoned=log_dir.directory_id in cordoned_ids(ctx.cluster.image, ctx.node.id),
    )


def _lag(future: PartitionLog, ctx: RequestContext) -> int:
    """Return how far a future log is behind the log that it will replace; -1 without one (INVALID_OFFSET_LAG)."""
    partition = ctx.cluster.partitions.get((future.topic, future.partition))
    current = None if partition is None else partition.logs.get(ctx.node.id)
    return -1 if current is None else current.log_end_offset - future.log_end_offset


def _in_order(log_dir: LogDir, ctx: RequestContext) -> list[tuple[PartitionLog, bool]]:
    """Return the logs in the order of Kafka's map of the broker's logs (LogManager.currentLogs), then the future ones.

    The second item is whether it is a future one.
    """
    logs = {key: log for key, log in log_dir.logs.items() if key[0] != METADATA_TOPIC}
    on_broker = sum(topic != METADATA_TOPIC for each in ctx.node.log_dirs for topic, _ in each.logs)
    order = table_order(list(logs), topic_partition_hash, concurrent_capacity(on_broker))
    return [*((logs[key], False) for key in order), *((log, True) for log in log_dir.futures.values())]


def refuse(request: DescribeLogDirsRequest, error: KafkaError, version: int) -> DescribeLogDirsResponse:  # noqa: ARG001
    """Put the error at the top level; before v3 the response can only be empty."""
    if not features.describe_log_dirs_has_error(version):
        return DescribeLogDirsResponse()
    return DescribeLogDirsResponse(error_code=error.code)


API: Api[DescribeLogDirsRequest, DescribeLogDirsResponse] = Api(ApiKey.DESCRIBE_LOG_DIRS, handle, refuse)
