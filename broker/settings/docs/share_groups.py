"""Documentation of the settings of `broker.settings.tables.share_groups`."""

TEXTS = {
    "errors.deadletterqueue.auto.create.topics.enable": (
        "Whether a dead letter topic of a share group is created when it is first needed (KIP-1191)."
    ),
    "errors.deadletterqueue.topic.name.prefix": "Beginning of the names that dead letter topics must have.",
    "group.share.assignment.interval.ms": "Least time between two computations of a share group's target assignment.",
    "group.share.assignor.offload.enable": "Whether assignments are computed outside of the coordinator's thread.",
    "group.share.assignors": "The one server-side assignor that share groups use, by name or class.",
    "group.share.delivery.count.limit": (
        "How often a record is handed out in a share group before it counts as undeliverable and is archived."
    ),
    "group.share.heartbeat.interval.ms": "Heartbeat interval of the members of share groups.",
    "group.share.initialize.retry.interval.ms": (
        "How long the group coordinator waits before it tries again to initialise the state of a share partition."
    ),
    "group.share.max.assignment.interval.ms": "Largest share.assignment.interval.ms that a group may have.",
    "group.share.max.delivery.count.limit": "Largest share.delivery.count.limit that a group may have.",
    "group.share.max.heartbeat.interval.ms": "Largest share.heartbeat.interval.ms that a group may have.",
    "group.share.max.partition.max.record.locks": "Largest share.partition.max.record.locks that a group may have.",
    "group.share.max.record.lock.duration.ms": "Largest share.record.lock.duration.ms that a group may have.",
    "group.share.max.session.timeout.ms": "Largest share.session.timeout.ms that a group may have.",
    "group.share.max.share.sessions": (
        "Most share sessions that one broker keeps; a further one is refused with SHARE_SESSION_LIMIT_REACHED."
    ),
    "group.share.max.size": "Most members that one share group takes.",
    "group.share.min.assignment.interval.ms": "Smallest share.assignment.interval.ms that a group may have.",
    "group.share.min.delivery.count.limit": "Smallest share.delivery.count.limit that a group may have.",
    "group.share.min.heartbeat.interval.ms": "Smallest share.heartbeat.interval.ms that a group may have.",
    "group.share.min.partition.max.record.locks": "Smallest share.partition.max.record.locks that a group may have.",
    "group.share.min.record.lock.duration.ms": "Smallest share.record.lock.duration.ms that a group may have.",
    "group.share.min.session.timeout.ms": "Smallest share.session.timeout.ms that a group may have.",
    "group.share.partition.max.record.locks": (
        "How many records of one partition may be acquired and not yet acknowledged in a share group at a time."
    ),
    "group.share.persister.class.name": "The class that stores the state of share partitions.",
    "group.share.record.lock.duration.ms": (
        "How long a member of a share group holds a record that it acquired. Unacknowledged by then, the record is "
        "offered again."
    ),
    "group.share.session.timeout.ms": "How long a member of a share group may stay silent before it is removed.",
    "share.coordinator.append.linger.ms": (
        "How long the share coordinator gathers records before it writes a batch; 0 writes at once, -1 adapts to "
        "the load."
    ),
    "share.coordinator.cached.buffer.max.bytes": (
        "Largest write buffer that the share coordinator keeps for reuse; a larger one is given back after the write."
    ),
    "share.coordinator.cold.partition.snapshot.interval.ms": (
        "How often share partitions without activity get a new snapshot, so that old records can be pruned."
    ),
    "share.coordinator.load.buffer.size": (
        "Bytes read at a time from __share_group_state while a coordinator loads; a larger batch is still read whole."
    ),
    "share.coordinator.snapshot.update.records.per.snapshot": (
        "How many updates of a share partition's state are written before the next one is a whole snapshot."
    ),
    "share.coordinator.state.topic.compression.codec": (
        "Codec of the batches that the share coordinator writes: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."
    ),
    "share.coordinator.state.topic.min.isr": "min.insync.replicas of __share_group_state, given at its creation.",
    "share.coordinator.state.topic.num.partitions": (
        "Number of partitions of __share_group_state. It decides who coordinates what, so it must not change once "
        "the topic exists."
    ),
    "share.coordinator.state.topic.prune.interval.ms": (
        "How often records of __share_group_state that no snapshot needs any more are deleted."
    ),
    "share.coordinator.state.topic.replication.factor": (
        "Replicas of each partition of __share_group_state. Until that many brokers are alive the topic is not created."
    ),
    "share.coordinator.state.topic.segment.bytes": "segment.bytes of __share_group_state; small segments load quicker.",
    "share.coordinator.threads": "Threads that run the share coordinator.",
    "share.coordinator.write.timeout.ms": "How long a write of the share coordinator may wait for its replicas.",
    "share.fetch.purgatory.purge.interval.requests": (
        "How many finished waiting share fetches gather before the broker clears them away."
    ),
}
