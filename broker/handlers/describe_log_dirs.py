"""DescribeLogDirs: the log directory of this broker, and the sizes of its logs (KIP-113, KIP-827).

Versions 1-5. Differs from Kafka: a broker has one directory, so no log is ever being moved to another one.
"""

from collections.abc import Iterable

from broker.replication.partition import ReplicatedPartition
from broker.request.api import Api
from broker.request.context import AclOperation, RequestContext
from broker.request.log_dirs import is_offline, path_of, space_of
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


async def handle(request: DescribeLogDirsRequest, ctx: RequestContext) -> DescribeLogDirsResponse:
    """Return size and lag of each replica in the log directory (core B.12)."""
    if not may_on_cluster(ctx, AclOperation.DESCRIBE):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    path = path_of(ctx.node)
    if is_offline(ctx.node):
        return DescribeLogDirsResponse(results=[DescribeLogDirsResult(ErrorCode.KAFKA_STORAGE_ERROR, path)])
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for partition in _in_order(_requested(request, ctx), ctx):
        log = partition.logs[ctx.node.id]
        lag = max(log.high_watermark - log.log_end_offset, 0)
        described = DescribeLogDirsPartition(partition.index, log.segments.size, lag)
        topics.setdefault(partition.topic, []).append(described)
    total, usable = space_of(ctx.node)
    result = DescribeLogDirsResult(
        log_dir=path,
        topics=[DescribeLogDirsTopic(name, topics[name]) for name in immutable_order(topics, string_hash)],
        total_bytes=total,
        usable_bytes=usable,
    )
    return DescribeLogDirsResponse(results=[result])


def _requested(request: DescribeLogDirsRequest, ctx: RequestContext) -> Iterable[ReplicatedPartition]:
    partitions = ctx.cluster.partitions
    if request.topics is None:
        return partitions.values()
    names = dict.fromkeys((topic.topic, index) for topic in request.topics for index in topic.partitions)
    return [partitions[name] for name in names if name in partitions]


def _in_order(partitions: Iterable[ReplicatedPartition], ctx: RequestContext) -> list[ReplicatedPartition]:
    """Return those with a log on this broker, in the order of Kafka's map of logs (LogManager.currentLogs)."""
    here = [(each.topic, each.index) for each in ctx.cluster.partitions.values() if ctx.node.id in each.logs]
    capacity = concurrent_capacity(len(here))
    local = {(each.topic, each.index): each for each in partitions if ctx.node.id in each.logs}
    return [local[place] for place in table_order(list(local), topic_partition_hash, capacity)]


def refuse(request: DescribeLogDirsRequest, error: KafkaError, version: int) -> DescribeLogDirsResponse:  # noqa: ARG001
    """Put the error at the top level; before v3 the response can only be empty."""
    if not features.describe_log_dirs_has_error(version):
        return DescribeLogDirsResponse()
    return DescribeLogDirsResponse(error_code=error.code)


API: Api[DescribeLogDirsRequest, DescribeLogDirsResponse] = Api(
    ApiKey.DESCRIBE_LOG_DIRS, (1, 5), handle, refuse, removed=0
)
