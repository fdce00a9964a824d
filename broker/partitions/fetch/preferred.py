"""The preferred read replica of a consumer: one in its own rack (KIP-392, core E.7; ``ReplicaManager``).

Only Kafka's own ``RackAwareReplicaSelector`` is supported; with any other class, or none, consumers read from the
leader.
"""

from typing import Final

from broker.replication.partition import ReplicatedPartition
from broker.request.context import RequestContext
from protocol import features
from storage.log.partition_log import PartitionLog

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
NO_REPLICA: Final = -1


def preferred_replica(
    ctx: RequestContext, rack_id: str, partition: ReplicatedPartition, leader: PartitionLog, offset: int
) -> int:
    """Return the broker from which a consumer in this rack should read this offset; -1: from the leader.

    A candidate is in sync, has the offset, and has the listener of the request. Of several in the rack, the one with
    the highest end offset is chosen, then the one with the highest id.
    """
    if not features.fetch_may_ask_any_replica(ctx.version):
        return NO_REPLICA
    if ctx.node.settings.optional_string("replica.selector.class") != RACK_AWARE or ctx.node.rack == rack_id:
        return NO_REPLICA
    brokers, found = ctx.cluster.image.brokers, []
    for broker_id in partition.state.isr:
        log, broker = partition.logs.get(broker_id), brokers.get(broker_id)
        if log is None or log is leader or broker is None or broker.fenced or ctx.listener not in broker.listeners:
            continue
        if broker.rack == rack_id and log.log_start_offset <= offset <= log.log_end_offset:
            found.append((log.log_end_offset, broker_id))
    return max(found)[1] if found else NO_REPLICA
