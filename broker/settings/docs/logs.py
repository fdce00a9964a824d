"""Documentation of the settings of `broker.settings.tables.logs`."""

TEXTS = {
    "max.decompressed.message.bytes": (
        "Default of the topics' max.decompressed.message.bytes: the largest record in a compressed batch."
    ),
    "auto.create.topics.enable": (
        "Whether a topic that a client asks about, and that does not exist, is created with the broker's defaults."
    ),
    "compression.gzip.level": "gzip level for topics without their own; -1 is the library's choice.",
    "compression.lz4.level": "lz4 level for topics without their own.",
    "compression.type": (
        "Codec of stored batches for topics without their own. 'producer' keeps what the producer used."
    ),
    "compression.zstd.level": "zstd level for topics without their own.",
    "cordoned.log.dirs": (
        "Log directories that get no new partitions; * means all of them. What they hold already stays in use."
    ),
    "default.replication.factor": "Replicas of topics created automatically, or with a replication factor of -1.",
    "delete.topic.enable": "Whether topics can be deleted. Otherwise DeleteTopics answers TOPIC_DELETION_DISABLED.",
    "log.cleaner.backoff.ms": "How long a cleaner thread rests when no log needs compaction.",
    "log.cleaner.dedupe.buffer.size": (
        "Memory that all cleaner threads together may use to remember the last offset of each key."
    ),
    "log.cleaner.delete.retention.ms": (
        "How long tombstones survive in compacted topics without their own delete.retention.ms."
    ),
    "log.cleaner.enable": "Whether compacted topics are compacted at all. Leave it on: __consumer_offsets needs it.",
    "log.cleaner.io.buffer.load.factor": (
        "How full the cleaner's table of keys may become. Fuller tables clean more at a time, with more collisions."
    ),
    "log.cleaner.io.buffer.size": "Memory that all cleaner threads together use for reading and writing segments.",
    "log.cleaner.io.max.bytes.per.second": "Limit on the bytes that the cleaner reads and writes in a second.",
    "log.cleaner.max.compaction.lag.ms": "Default of max.compaction.lag.ms for topics.",
    "log.cleaner.min.cleanable.ratio": "Default of min.cleanable.dirty.ratio for topics.",
    "log.cleaner.min.compaction.lag.ms": "Default of min.compaction.lag.ms for topics.",
    "log.cleaner.threads": "Threads that compact logs.",
    "log.cleanup.policy": "Default of cleanup.policy for topics: delete, compact, both, or nothing.",
    "log.dir": "The directory that holds the logs, where log.dirs does not name several.",
    "log.dir.failure.timeout.ms": (
        "How long a broker tries to report a failed log directory to the controller before it gives up and stops."
    ),
    "log.dirs": "The directories that hold the logs. New partitions go where the fewest are.",
    "log.flush.interval.messages": "Default of flush.messages for topics.",
    "log.flush.interval.ms": "Default of flush.ms for topics; unset, log.flush.scheduler.interval.ms takes its place.",
    "log.flush.offset.checkpoint.interval.ms": (
        "How often the offset up to which each log is on disk is written down. Recovery after a crash starts there."
    ),
    "log.flush.scheduler.interval.ms": "How often logs are looked at for whether they are due to be flushed.",
    "log.flush.start.offset.checkpoint.interval.ms": (
        "How often the first valid offset of each log is written down, so that deleted records do not come back."
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
    "log.retention.bytes": "Default of retention.bytes for topics; it holds for each partition. -1 is no limit.",
    "log.retention.check.interval.ms": "How often logs are searched for segments that retention lets go.",
    "log.retention.hours": (
        "Default of retention.ms for topics, in hours. log.retention.minutes wins over it, log.retention.ms over both."
    ),
    "log.retention.minutes": "Default of retention.ms for topics, in minutes, unless log.retention.ms is set.",
    "log.retention.ms": "Default of retention.ms for topics. Any negative value keeps records forever.",
    "log.roll.hours": "Default of segment.ms for topics, in hours, unless log.roll.ms is set.",
    "log.roll.jitter.hours": "Default of segment.jitter.ms for topics, in hours, unless log.roll.jitter.ms is set.",
    "log.roll.jitter.ms": "Default of segment.jitter.ms for topics.",
    "log.roll.ms": "Default of segment.ms for topics.",
    "log.segment.bytes": "Default of segment.bytes for topics.",
    "log.segment.delete.delay.ms": "Default of file.delete.delay.ms for topics.",
    "message.max.bytes": "Default of max.message.bytes for topics: the largest record batch that is taken.",
    "min.insync.replicas": (
        "Default of min.insync.replicas for topics: how many replicas must have a write with acks=all."
    ),
    "num.partitions": "Partitions of topics created automatically, or with a partition count of -1.",
    "num.recovery.threads.per.data.dir": (
        "Threads per log directory that load and recover logs at the start and flush them at the end."
    ),
    "unclean.leader.election.enable": "Default of unclean.leader.election.enable for topics.",
    "unclean.leader.election.interval.ms": (
        "How often the controller looks for leaderless partitions whose topics allow unclean elections."
    ),
    "understudy.auto.create.topics.at.once": (
        "Whether the Metadata request that creates a topic is answered with the topic. Kafka answers "
        "UNKNOWN_TOPIC_OR_PARTITION, and clients ask again after a pause, librdkafka after 100 ms. --lazy-coordinators "
        "has precedence."
    ),
    "understudy.max.decompressed.batch.bytes": (
        "How many bytes the records of one compressed batch may take, decompressed. Kafka has no such limit; a small "
        "request can hold tens of gigabytes, which would keep the broker busy for minutes."
    ),
    "understudy.sync": (
        "When this stand-in forces what it appended to disk: after every append ('every'), when a segment is closed "
        "('roll'), or by itself never ('never'). Without a data directory there is nothing to force."
    ),
}
