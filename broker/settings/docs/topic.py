"""Documentation of the settings of `broker.settings.tables.topic`."""

TEXTS = {
    "errors.deadletterqueue.group.enable": (
        "Whether share groups may write undeliverable records to this topic (KIP-1191)."
    ),
    "max.decompressed.message.bytes": (
        "Maximum size of a single record in a compressed batch, after decompression. Larger ones are refused."
    ),
    "remote.copy.lag.bytes": "Bytes of closed segments that stay local before they are copied to remote storage.",
    "remote.copy.lag.ms": "Age of a closed segment at which it is copied to remote storage.",
    "cleanup.policy": (
        "How old segments are cleaned: 'delete' deletes them by age and size, 'compact' keeps the newest record of "
        "every key, both together do both. An empty list keeps everything until records are deleted by request."
    ),
    "compression.gzip.level": "Compression level if the broker compresses with gzip; -1 is the library's default.",
    "compression.lz4.level": "Compression level if the broker compresses with lz4.",
    "compression.type": (
        "Codec of stored batches. 'producer' keeps the producer's codec, 'uncompressed' stores without compression, "
        "the others recompress batches of another codec."
    ),
    "compression.zstd.level": "Compression level if the broker compresses with zstd.",
    "delete.retention.ms": (
        "How long tombstones and transaction markers are kept in a compacted log after cleaning. A consumer that reads "
        "the log from its start must finish within that time to see every deletion."
    ),
    "file.delete.delay.ms": "How long the files of a deleted segment remain on disk, renamed.",
    "flush.messages": "Number of records after which a log is flushed to disk; 1 flushes after every append.",
    "flush.ms": "Time after which a log with unflushed records is flushed to disk.",
    "follower.replication.throttled.replicas": (
        "Replicas whose fetches as followers count against follower.replication.throttled.rate: a list of "
        "partition:broker pairs, or * for all of the topic."
    ),
    "index.interval.bytes": (
        "Bytes of records between two entries of the offset index. Smaller values make lookups more exact and the "
        "index larger."
    ),
    "internal.segment.bytes": (
        "Segment size without a lower limit, for tests that need many small segments. If set, it takes precedence over "
        "segment.bytes."
    ),
    "leader.replication.throttled.replicas": (
        "Replicas from which fetches of followers count against leader.replication.throttled.rate: a list of "
        "partition:broker pairs, or * for all of the topic."
    ),
    "local.retention.bytes": (
        "With tiered storage, how many bytes of a partition are kept on the broker's own disk; -2 means "
        "retention.bytes."
    ),
    "local.retention.ms": (
        "With tiered storage, how long segments are kept on the broker's own disk; -2 means retention.ms."
    ),
    "max.compaction.lag.ms": (
        "Maximum time before a record of a compacted topic is compacted. Active segments are rolled in time for it."
    ),
    "max.message.bytes": (
        "Maximum size of a record batch, compressed as sent. Larger ones are refused with MESSAGE_TOO_LARGE."
    ),
    "message.timestamp.after.max.ms": (
        "How far a producer's timestamp may be ahead of the broker's clock; beyond that the record is refused. Ignored "
        "with LogAppendTime."
    ),
    "message.timestamp.before.max.ms": (
        "How far a producer's timestamp may be behind the broker's clock; beyond that the record is refused. Ignored "
        "with LogAppendTime."
    ),
    "message.timestamp.type": (
        "Timestamps of records: the producer's (CreateTime) or the broker's time of the append (LogAppendTime)."
    ),
    "min.cleanable.dirty.ratio": (
        "Share of a compacted log that must be dirty before the cleaner compacts it. Lower values compact more often "
        "and cost more work."
    ),
    "min.compaction.lag.ms": "Minimum time before a record of a compacted topic may be compacted.",
    "min.insync.replicas": (
        "Minimum size of the ISR for a write with acks=all. With fewer, the producer gets NOT_ENOUGH_REPLICAS."
    ),
    "preallocate": "Whether the file of a new segment is allocated at its full size.",
    "remote.log.copy.disable": (
        "With tiered storage, stops copying segments to remote storage; those already copied stay readable."
    ),
    "remote.log.delete.on.disable": "Whether disabling tiered storage for the topic also deletes its remote segments.",
    "remote.storage.enable": (
        "Enables tiered storage for the topic. The broker needs remote.log.storage.system.enable; compacted topics "
        "cannot be tiered."
    ),
    "retention.bytes": (
        "Size of a partition beyond which its oldest segments are deleted, for topics with the policy 'delete'. -1 "
        "is no limit."
    ),
    "retention.ms": (
        "Age after which segments are deleted, counted from the newest record in them, for topics with the policy "
        "'delete'. -1 keeps them forever."
    ),
    "segment.bytes": "Size at which a new segment is rolled. Retention and compaction work on whole closed segments.",
    "segment.index.bytes": "Maximum size of a segment's index files. A full index also rolls a new segment.",
    "segment.jitter.ms": (
        "Maximum random time that is subtracted from segment.ms, so that many partitions do not roll at the same time."
    ),
    "segment.ms": "Time after which a new segment is rolled even if the current one is not full.",
    "unclean.leader.election.enable": (
        "Whether a replica outside the ISR may become leader if no other is available. Availability then costs records."
    ),
}
