"""Documentation of the settings of groups and of client metrics subscriptions."""

GROUP = {
    "errors.deadletterqueue.copy.record.enable": (
        "Whether a dead letter record has the original record's key and value."
    ),
    "errors.deadletterqueue.topic.name": "Topic for records that the share group could not deliver; empty for none.",
    "consumer.assignor.offload.enable": "Whether the assignment is computed outside the coordinator's thread.",
    "share.assignor.offload.enable": "Whether the assignment is computed outside the coordinator's thread.",
    "streams.acceptable.recovery.lag": "Lag in records up to which a replica of a task counts as caught up.",
    "streams.num.warmup.replicas": "Maximum number of warm-up tasks of the streams group at a time.",
    "streams.task.offset.interval.ms": "How often the members of the streams group report their tasks' offsets.",
    "streams.assignor.name": "Task assignor of the streams group.",
    "streams.assignor.offload.enable": "Whether the assignment is computed outside the coordinator's thread.",
    "streams.rack.aware.assignment.tags": "Client tags over whose values standby tasks are spread.",
    "consumer.assignment.interval.ms": (
        "Minimum time between two computations of this consumer group's target assignment."
    ),
    "consumer.heartbeat.interval.ms": ("Heartbeat interval of the members of this consumer group (KIP-848)."),
    "consumer.session.timeout.ms": (
        "Time without a heartbeat after which a member of this consumer group is removed and its partitions are "
        "reassigned."
    ),
    "share.assignment.interval.ms": "Minimum time between two computations of this share group's target assignment.",
    "share.auto.offset.reset": (
        "Where this share group begins on a partition without state: at the latest record, at the earliest, or at the "
        "first one younger than a duration (by_duration:PT1H)."
    ),
    "share.delivery.count.limit": (
        "Number of delivery attempts in this share group after which a record is archived as undeliverable."
    ),
    "share.heartbeat.interval.ms": "Heartbeat interval of the members of this share group.",
    "share.isolation.level": (
        "Whether this share group reads records of open and aborted transactions: read_uncommitted does, "
        "read_committed does not."
    ),
    "share.partition.max.record.locks": (
        "Maximum number of records of one partition that are acquired and not yet acknowledged in this share group."
    ),
    "share.record.lock.duration.ms": (
        "How long a member of this share group holds an acquired record. If it is not acknowledged by then, it becomes "
        "available again."
    ),
    "share.renew.acknowledge.enable": "Whether members of this share group may renew the lock on an acquired record.",
    "share.session.timeout.ms": "Time without a heartbeat after which a member of this share group is removed.",
    "streams.assignment.interval.ms": (
        "Minimum time between two computations of this streams group's target assignment."
    ),
    "streams.heartbeat.interval.ms": "Heartbeat interval of the members of this streams group.",
    "streams.initial.rebalance.delay.ms": (
        "How long this streams group waits for further members after the first one has joined, before it assigns tasks."
    ),
    "streams.num.standby.replicas": "Number of standby replicas of each stateful task in this streams group.",
    "streams.session.timeout.ms": "Time without a heartbeat after which a member of this streams group is removed.",
}

CLIENT_METRICS = {
    "interval.ms": "How often matching clients push the subscribed metrics, in milliseconds.",
    "match": (
        "The clients to which the subscription applies: a list of name=regex over client_id, client_instance_id, "
        "client_software_name, client_software_version, client_source_address and client_source_port. All must match; "
        "an empty list matches every client."
    ),
    "metrics": "Prefixes of the names of the subscribed metrics; an empty list subscribes to none, a single * to all.",
}
