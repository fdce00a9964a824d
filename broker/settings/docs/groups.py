"""Documentation of the settings of `broker.settings.tables.groups`."""

TEXTS = {
    "group.streams.acceptable.recovery.lag": "Lag in records up to which a replica of a task counts as caught up.",
    "group.streams.max.warmup.replicas": "Largest streams.num.warmup.replicas that a group may have.",
    "group.streams.min.task.offset.interval.ms": "Smallest streams.task.offset.interval.ms that a group may have.",
    "group.streams.num.warmup.replicas": "Maximum number of warm-up tasks of a streams group at a time.",
    "group.streams.task.offset.interval.ms": "How often the members of streams groups report their tasks' offsets.",
    "group.consumer.assignor.offload.enable": "Whether assignments are computed outside the coordinator's thread.",
    "group.streams.assignor.offload.enable": "Whether assignments are computed outside the coordinator's thread.",
    "group.streams.assignors": "Names of the task assignors that streams groups may use; the first is the default.",
    "group.streams.rack.aware.assignment.tags": "Client tags over whose values standby tasks are spread.",
    "group.streams.topology.description.plugin.class": "Class that stores the topology descriptions of streams groups.",
    "group.consumer.assignment.interval.ms": (
        "Minimum time between two computations of a consumer group's target assignment, so that many joins in a row "
        "need only one."
    ),
    "group.consumer.assignors": (
        "Server-side assignors that consumer groups (KIP-848) may choose from, by name or class. The first is the "
        "default."
    ),
    "group.consumer.heartbeat.interval.ms": "Heartbeat interval of the members of consumer groups.",
    "group.consumer.max.assignment.interval.ms": "Largest consumer.assignment.interval.ms that a group may have.",
    "group.consumer.max.heartbeat.interval.ms": "Largest consumer.heartbeat.interval.ms that a group may have.",
    "group.consumer.max.session.timeout.ms": "Largest consumer.session.timeout.ms that a group may have.",
    "group.consumer.max.size": "Maximum number of members of a consumer group.",
    "group.consumer.migration.policy": (
        "Whether a group with members may be converted from the classic protocol to the consumer protocol (upgrade), "
        "back (downgrade), in both directions (bidirectional) or not at all (disabled)."
    ),
    "group.consumer.min.assignment.interval.ms": "Smallest consumer.assignment.interval.ms that a group may have.",
    "group.consumer.min.heartbeat.interval.ms": "Smallest consumer.heartbeat.interval.ms that a group may have.",
    "group.consumer.min.session.timeout.ms": "Smallest consumer.session.timeout.ms that a group may have.",
    "group.consumer.regex.refresh.interval.ms": (
        "How often the topics that match a consumer group's regular expressions are resolved again."
    ),
    "group.consumer.session.timeout.ms": (
        "Time without a heartbeat after which a member of a consumer group is removed."
    ),
    "group.coordinator.append.linger.ms": (
        "How long the group coordinator collects records before it writes a batch; 0 writes immediately, -1 adapts to "
        "the load."
    ),
    "group.coordinator.background.threads": (
        "Threads for slow work of the group coordinator, such as resolving regular expressions."
    ),
    "group.coordinator.cached.buffer.max.bytes": (
        "Largest write buffer that the group coordinator keeps for reuse; a larger one is released after the write."
    ),
    "group.coordinator.rebalance.protocols": (
        "Group protocols that the coordinator supports. The feature levels decide which of them are enabled."
    ),
    "group.coordinator.threads": "Threads that run the group coordinator.",
    "group.initial.rebalance.delay.ms": (
        "How long an empty classic group waits for further members after the first one has joined. 0 makes tests "
        "faster."
    ),
    "group.max.session.timeout.ms": "Largest session timeout that a member of a classic group may request.",
    "group.max.size": "Maximum number of members of a classic group.",
    "group.min.session.timeout.ms": "Smallest session timeout that a member of a classic group may request.",
    "group.streams.assignment.interval.ms": (
        "Minimum time between two computations of a streams group's target assignment."
    ),
    "group.streams.heartbeat.interval.ms": "Heartbeat interval of the members of streams groups.",
    "group.streams.initial.rebalance.delay.ms": (
        "How long an empty streams group waits for further members after the first one has joined."
    ),
    "group.streams.max.assignment.interval.ms": "Largest streams.assignment.interval.ms that a group may have.",
    "group.streams.max.heartbeat.interval.ms": "Largest streams.heartbeat.interval.ms that a group may have.",
    "group.streams.max.session.timeout.ms": "Largest streams.session.timeout.ms that a group may have.",
    "group.streams.max.size": "Maximum number of members of a streams group.",
    "group.streams.max.standby.replicas": "Largest streams.num.standby.replicas that a group may have.",
    "group.streams.min.assignment.interval.ms": "Smallest streams.assignment.interval.ms that a group may have.",
    "group.streams.min.heartbeat.interval.ms": "Smallest streams.heartbeat.interval.ms that a group may have.",
    "group.streams.min.session.timeout.ms": "Smallest streams.session.timeout.ms that a group may have.",
    "group.streams.num.standby.replicas": "Number of standby replicas of each stateful task in a streams group.",
    "group.streams.session.timeout.ms": "Time without a heartbeat after which a member of a streams group is removed.",
    "offset.metadata.max.bytes": "Maximum size of the metadata string that may be committed with an offset.",
    "offsets.commit.timeout.ms": (
        "How long a write of the group coordinator, such as an offset commit, may wait for its replicas."
    ),
    "offsets.load.buffer.size": (
        "Bytes read at a time from __consumer_offsets while a coordinator is loading; a larger batch is still read "
        "whole."
    ),
    "offsets.retention.check.interval.ms": "How often the group coordinator checks for expired committed offsets.",
    "offsets.retention.minutes": (
        "How long committed offsets are kept after their group's last member has left, or, without a group, after the "
        "commit."
    ),
    "offsets.topic.compression.codec": (
        "Codec of the batches that the group coordinator writes: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."
    ),
    "offsets.topic.num.partitions": (
        "Number of partitions of __consumer_offsets. It decides which broker coordinates which group, so it must not "
        "change once the topic exists."
    ),
    "offsets.topic.replication.factor": (
        "Replicas of each partition of __consumer_offsets. Until that many brokers are alive the topic is not created."
    ),
    "offsets.topic.segment.bytes": "segment.bytes of __consumer_offsets. Small segments make compaction faster.",
}
