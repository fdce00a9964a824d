"""Documentation of the settings of `broker.settings.tables.logs`."""

TEXTS = {
    "max.decompressed.message.bytes": (
        "Default of the topics' max.decompressed.message.bytes: the largest record in a compressed batch."
    ),
    "auto.create.topics.enable": (
        "Whether an unknown topic that a client requests is created with the broker's defaults."
    ),
    "compression.gzip.level": "gzip level of topics without their own; -1 is the library's default.",
    "compression.lz4.level": "lz4 level of topics without their own.",
    "compression.type": "Codec of stored batches of topics without their own. 'producer' keeps the producer's codec.",
    "compression.zstd.level": "zstd level of topics without their own.",
    "cordoned.log.dirs": (
        "Log directories that get no new partitions; * means all of them. Existing partitions stay in use."
    ),
    "default.replication.factor": "Replicas of topics created automatically, or with a replication factor of -1.",
    "delete.topic.enable": "Whether topics can be deleted. Otherwise DeleteTopics answers TOPIC_DELETION_DISABLED.",
    "log.cleaner.backoff.ms": "How long a cleaner thread sleeps if no log needs compaction.",
    "log.cleaner.dedupe.buffer.size": "Memory of all cleaner threads together for the last offset of each key.",
    "log.cleaner.delete.retention.ms": (
        "How long tombstones are kept in compacted topics without their own delete.retention.ms."
    ),
    "log.cleaner.enable": (
        "Whether compacted topics are compacted at all. Keep it enabled: __consumer_offsets needs it."
    ),
    "log.cleaner.io.buffer.load.factor": (
        "Maximum load factor of the cleaner's offset map. A fuller map cleans more at a time, with more collisions."
    ),
    "log.cleaner.io.buffer.size": "Memory of all cleaner threads together for reading and writing segments.",
    "log.cleaner.io.max.bytes.per.second": "Maximum bytes per second that the cleaner reads and writes.",
    "log.cleaner.max.compaction.lag.ms": "Default of max.compaction.lag.ms for topics.",
    "log.cleaner.min.cleanable.ratio": "Default of min.cleanable.dirty.ratio for topics.",
    "log.cleaner.min.compaction.lag.ms": "Default of min.compaction.lag.ms for topics.",
    "log.cleaner.threads": "Threads that compact logs.",
    "log.cleanup.policy": "Default of cleanup.policy for topics: delete, compact, both, or nothing.",
    "log.dir": "Log directory, if log.dirs is not set.",
    "log.dir.failure.timeout.ms": (
        "How long a broker tries to report a failed log directory to the controller before it shuts down."
    ),
    "log.dirs": "Log directories. A new partition is created in the directory with the fewest partitions.",
    "log.flush.interval.messages": "Default of flush.messages for topics.",
    "log.flush.interval.ms": "Default of flush.ms for topics; if unset, log.flush.scheduler.interval.ms.",
    "log.flush.offset.checkpoint.interval.ms": (
        "How often the flushed offset of each log is checkpointed. Recovery after a crash starts there."
    ),
    "log.flush.scheduler.interval.ms": "How often logs are checked for whether they are due to be flushed.",
    "log.flush.start.offset.checkpoint.interval.ms": (
        "How often the log start offset of each log is checkpointed, so that deleted records do not reappear."
    ),
    "log.index.interval.bytes": "Default of index.interval.bytes for topics.",
    "log.index.size.max.bytes": "Default of segment.index.bytes for topics.",
    "log.initial.task.delay.ms": (
        "How long after the start the periodic work on logs (retention, flushing, checkpoints) first runs."
    ),
    "log.local.retention.bytes": "Default of local.retention.bytes for topics with tiered storage.",
    "log.local.retention.ms": "Default of local.retention.ms for topics with tiered storage.",
    "log.message.timestamp.after.max.ms": "Default of message.timestamp.after.max.ms for topics.",
    "log.message.timestamp.before.max.ms": "Default of message.timestamp.before.max.ms for topics.",
    "log.message.timestamp.type": "Default of message.timestamp.type for topics.",
    "log.preallocate": "Default of preallocate for topics.",
    "log.retention.bytes": "Default of retention.bytes for topics, per partition. -1 is no limit.",
    "log.retention.check.interval.ms": "How often logs are checked for segments that retention allows to delete.",
    "log.retention.hours": (
        "Default of retention.ms for topics, in hours. log.retention.minutes takes precedence over it, "
        "log.retention.ms over both."
    ),
    "log.retention.minutes": "Default of retention.ms for topics, in minutes, unless log.retention.ms is set.",
    "log.retention.ms": "Default of retention.ms for topics. Any negative value keeps records forever.",
    "log.roll.hours": "Default of segment.ms for topics, in hours, unless log.roll.ms is set.",
    "log.roll.jitter.hours": "Default of segment.jitter.ms for topics, in hours, unless log.roll.jitter.ms is set.",
    "log.roll.jitter.ms": "Default of segment.jitter.ms for topics.",
    "log.roll.ms": "Default of segment.ms for topics.",
    "log.segment.bytes": "Default of segment.bytes for topics.",
    "log.segment.delete.delay.ms": "Default of file.delete.delay.ms for topics.",
    "message.max.bytes": "Default of max.message.bytes for topics: the largest record batch that is accepted.",
    "min.insync.replicas": (
        "Default of min.insync.replicas for topics: how many replicas must have a write with acks=all."
    ),
    "num.partitions": "Partitions of topics created automatically, or with a partition count of -1.",
    "num.recovery.threads.per.data.dir": (
        "Threads per log directory that load and recover logs at the start and flush them at shutdown."
    ),
    "unclean.leader.election.enable": "Default of unclean.leader.election.enable for topics.",
    "unclean.leader.election.interval.ms": (
        "How often the controller checks for leaderless partitions whose topics allow unclean elections."
    ),
    "understudy.auto.create.topics.at.once": (
        "Whether the Metadata request that creates a topic is answered with the topic. Kafka answers "
        "UNKNOWN_TOPIC_OR_PARTITION, and clients retry after a pause, librdkafka after 100 ms. --lazy-coordinators "
        "takes precedence."
    ),
    "understudy.first.fetch.max.wait.ms": (
        "How long the first Fetch of a connection that has to wait for records waits at most; -1 is its max_wait_ms, "
        "as in Kafka. A client sends it with the partitions whose offsets it knows by then, and requests the others "
        "only after the response, which may come without records at any time."
    ),
    "understudy.max.decompressed.batch.bytes": (
        "Maximum decompressed size of the records in one compressed batch. Kafka has no such limit; a small request "
        "can hold tens of gigabytes, which would keep the broker busy for minutes."
    ),
    "understudy.sync": (
        "When appended records are flushed to disk (fsync): after every append ('every'), when a segment is closed "
        "('roll'), or never ('never'). Without a data directory it has no effect."
    ),
}
