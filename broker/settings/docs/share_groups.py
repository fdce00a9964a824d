"""Documentation of the settings of `broker.settings.tables.share_groups`."""

TEXTS = {
    "errors.deadletterqueue.auto.create.topics.enable": (
        "Whether the dead letter topic of a share group is created when first needed (KIP-1191)."
    ),
    "errors.deadletterqueue.topic.name.prefix": "Required prefix of the names of dead letter topics.",
    "group.share.assignment.interval.ms": "Minimum time between two computations of a share group's target assignment.",
    "group.share.assignor.offload.enable": "Whether assignments are computed outside the coordinator's thread.",
    "group.share.assignors": "The one server-side assignor that share groups use, by name or class.",
    "group.share.delivery.count.limit": (
        "Number of delivery attempts in a share group after which a record is archived as undeliverable."
    ),
    "group.share.heartbeat.interval.ms": "Heartbeat interval of the members of share groups.",
    "group.share.initialize.retry.interval.ms": (
        "Delay before the group coordinator retries to initialize the state of a share partition."
    ),
    "group.share.max.assignment.interval.ms": "Largest share.assignment.interval.ms that a group may have.",
    "group.share.max.delivery.count.limit": "Largest share.delivery.count.limit that a group may have.",
    "group.share.max.heartbeat.interval.ms": "Largest share.heartbeat.interval.ms that a group may have.",
    "group.share.max.partition.max.record.locks": "Largest share.partition.max.record.locks that a group may have.",
    "group.share.max.record.lock.duration.ms": "Largest share.record.lock.duration.ms that a group may have.",
    "group.share.max.session.timeout.ms": "Largest share.session.timeout.ms that a group may have.",
    "group.share.max.share.sessions": (
        "Maximum number of share sessions of a broker; a further one is refused with SHARE_SESSION_LIMIT_REACHED."
    ),
    "group.share.max.size": "Maximum number of members of a share group.",
    "group.share.min.assignment.interval.ms": "Smallest share.assignment.interval.ms that a group may have.",
    "group.share.min.delivery.count.limit": "Smallest share.delivery.count.limit that a group may have.",
    "group.share.min.heartbeat.interval.ms": "Smallest share.heartbeat.interval.ms that a group may have.",
    "group.share.min.partition.max.record.locks": "Smallest share.partition.max.record.locks that a group may have.",
    "group.share.min.record.lock.duration.ms": "Smallest share.record.lock.duration.ms that a group may have.",
    "group.share.min.session.timeout.ms": "Smallest share.session.timeout.ms that a group may have.",
    "group.share.partition.max.record.locks": (
        "Maximum number of records of one partition that are acquired and not yet acknowledged in a share group."
    ),
    "group.share.persister.class.name": "Class that stores the state of share partitions.",
    "group.share.record.lock.duration.ms": (
        "How long a member of a share group holds an acquired record. If it is not acknowledged by then, it becomes "
        "available again."
    ),
    "group.share.session.timeout.ms": "Time without a heartbeat after which a member of a share group is removed.",
    "share.coordinator.append.linger.ms": (
        "How long the share coordinator collects records before it writes a batch; 0 writes immediately, -1 adapts to "
        "the load."
    ),
    "share.coordinator.cached.buffer.max.bytes": (
        "Largest write buffer that the share coordinator keeps for reuse; a larger one is released after the write."
    ),
    "share.coordinator.cold.partition.snapshot.interval.ms": (
        "How often inactive share partitions get a new snapshot, so that old records can be pruned."
    ),
    "share.coordinator.load.buffer.size": (
        "Bytes read at a time from __share_group_state while a coordinator is loading; a larger batch is still read "
        "whole."
    ),
    "share.coordinator.snapshot.update.records.per.snapshot": (
        "Number of updates of a share partition's state after which a snapshot is written."
    ),
    "share.coordinator.state.topic.compression.codec": (
        "Codec of the batches that the share coordinator writes: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."
    ),
    "share.coordinator.state.topic.min.isr": "min.insync.replicas of __share_group_state, set at its creation.",
    "share.coordinator.state.topic.num.partitions": (
        "Number of partitions of __share_group_state. It decides which broker coordinates which share partition, so it "
        "must not change once the topic exists."
    ),
    "share.coordinator.state.topic.prune.interval.ms": (
        "How often records of __share_group_state that no snapshot needs are deleted."
    ),
    "share.coordinator.state.topic.replication.factor": (
        "Replicas of each partition of __share_group_state. Until that many brokers are alive the topic is not created."
    ),
    "share.coordinator.state.topic.segment.bytes": "segment.bytes of __share_group_state; small segments load faster.",
    "share.coordinator.threads": "Threads that run the share coordinator.",
    "share.coordinator.write.timeout.ms": "How long a write of the share coordinator may wait for its replicas.",
    "share.fetch.purgatory.purge.interval.requests": (
        "Number of completed share fetches in the purgatory at which they are purged."
    ),
}
