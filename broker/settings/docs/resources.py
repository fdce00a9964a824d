"""Documentation of the settings of groups and of client metrics subscriptions."""

GROUP = {
    "errors.deadletterqueue.copy.record.enable": "Whether a dead letter record carries the record's key and value.",
    "errors.deadletterqueue.topic.name": "Topic for records that the share group gives up on; empty for none.",
    "consumer.assignor.offload.enable": "Whether the assignment is computed outside of the coordinator's thread.",
    "share.assignor.offload.enable": "Whether the assignment is computed outside of the coordinator's thread.",
    "streams.acceptable.recovery.lag": "Lag in records up to which a copy of a task counts as caught up.",
    "streams.num.warmup.replicas": "Most warm-up tasks that the streams group has at a time.",
    "streams.task.offset.interval.ms": "How often the members of the streams group report their tasks' offsets.",
    "streams.assignor.name": "Task assignor of the streams group.",
    "streams.assignor.offload.enable": "Whether the assignment is computed outside of the coordinator's thread.",
    "streams.rack.aware.assignment.tags": "Client tags whose values standby tasks are spread over.",
    "consumer.assignment.interval.ms": (
        "Least time between two computations of this consumer group's target assignment."
    ),
    "consumer.heartbeat.interval.ms": ("Heartbeat interval of the members of this consumer group (KIP-848)."),
    "consumer.session.timeout.ms": (
        "How long a member of this consumer group may stay silent before it is removed and its partitions move."
    ),
    "share.assignment.interval.ms": "Least time between two computations of this share group's target assignment.",
    "share.auto.offset.reset": (
        "Where this share group begins on a partition that it has not read yet: at the latest record, at the "
        "earliest, or at the first one younger than a duration (by_duration:PT1H)."
    ),
    "share.delivery.count.limit": (
        "How often a record is handed out in this share group before it counts as undeliverable and is archived."
    ),
    "share.heartbeat.interval.ms": "Heartbeat interval of the members of this share group.",
    "share.isolation.level": (
        "Whether this share group sees records of open and aborted transactions: read_uncommitted shows them, "
        "read_committed does not."
    ),
    "share.partition.max.record.locks": (
        "How many records of one partition may be acquired and not yet acknowledged in this share group at a time."
    ),
    "share.record.lock.duration.ms": (
        "How long a member of this share group holds a record that it acquired. Unacknowledged by then, the record "
        "is offered again."
    ),
    "share.renew.acknowledge.enable": "Whether members of this share group may renew the lock on an acquired record.",
    "share.session.timeout.ms": "How long a member of this share group may stay silent before it is removed.",
    "streams.assignment.interval.ms": "Least time between two computations of this streams group's target assignment.",
    "streams.heartbeat.interval.ms": "Heartbeat interval of the members of this streams group.",
    "streams.initial.rebalance.delay.ms": (
        "How long this streams group waits for further members after the first one before it assigns tasks."
    ),
    "streams.num.standby.replicas": "How many standby copies of each stateful task this streams group keeps.",
    "streams.session.timeout.ms": "How long a member of this streams group may stay silent before it is removed.",
}

CLIENT_METRICS = {
    "interval.ms": "How often matching clients push the subscribed metrics, in milliseconds.",
    "match": (
        "Which clients the subscription is for: a list of name=regex over client_id, client_instance_id, "
        "client_software_name, client_software_version, client_source_address and client_source_port. All must "
        "match; an empty list matches every client."
    ),
    "metrics": "Prefixes of the names of the metrics asked for; an empty list asks for none, a single * for all.",
}
