"""Documentation of the settings of `broker.settings.tables.topic`."""

TEXTS = {
    "errors.deadletterqueue.group.enable": (
        "Whether share groups may write records that they give up on to this topic (KIP-1191)."
    ),
    "max.decompressed.message.bytes": (
        "Largest size of a single record in a compressed batch, after decompression. Larger ones are refused."
    ),
    "remote.copy.lag.bytes": "Bytes of closed segments that stay local before they are copied out to remote storage.",
    "remote.copy.lag.ms": "Age that a closed segment must have before it is copied out to remote storage.",
    "cleanup.policy": (
        "What happens to old segments: 'delete' drops them by age and size, 'compact' keeps the newest record of "
        "every key, both together do both. An empty list keeps everything until records are deleted by request."
    ),
    "compression.gzip.level": "Compression level when the broker compresses with gzip; -1 is the library's own choice.",
    "compression.lz4.level": "Compression level when the broker compresses with lz4.",
    "compression.type": (
        "The codec in which batches are stored. 'producer' keeps the producer's codec, 'uncompressed' stores "
        "without any, the others recompress where the producer chose differently."
    ),
    "compression.zstd.level": "Compression level when the broker compresses with zstd.",
    "delete.retention.ms": (
        "How long tombstones and transaction markers stay in a compacted log after cleaning. A consumer that reads "
        "the log from its start must finish within that time to be sure of seeing every deletion."
    ),
    "file.delete.delay.ms": "How long the files of a segment stay on disk, renamed, after the log has let go of it.",
    "flush.messages": "Number of records after which a log is forced to disk; with 1 that is after every append.",
    "flush.ms": "Time after which a log with unflushed records is forced to disk.",
    "follower.replication.throttled.replicas": (
        "Replicas whose fetching as a follower counts against follower.replication.throttled.rate: a list of "
        "partition:broker pairs, or * for all of the topic."
    ),
    "index.interval.bytes": (
        "Bytes of records between two entries of the offset index. Smaller values make lookups more exact and the "
        "index larger."
    ),
    "internal.segment.bytes": (
        "Segment size without a lower limit, for tests that want many small segments. Where it is set it wins over "
        "segment.bytes."
    ),
    "leader.replication.throttled.replicas": (
        "Replicas whose being fetched from as a leader counts against leader.replication.throttled.rate: a list of "
        "partition:broker pairs, or * for all of the topic."
    ),
    "local.retention.bytes": (
        "With tiered storage, how many bytes of a partition stay on the broker's own disk; -2 means as many as "
        "retention.bytes has."
    ),
    "local.retention.ms": (
        "With tiered storage, how long segments stay on the broker's own disk; -2 means as long as retention.ms."
    ),
    "max.compaction.lag.ms": (
        "The longest time that a record of a compacted topic may wait for the cleaner. Active segments are rolled "
        "so that it can be kept."
    ),
    "max.message.bytes": (
        "The largest record batch, compressed as it is sent, that the topic takes. Larger ones are refused with "
        "MESSAGE_TOO_LARGE."
    ),
    "message.timestamp.after.max.ms": (
        "How far a producer's timestamp may lie ahead of the broker's clock; beyond that the record is refused. Not "
        "looked at with LogAppendTime."
    ),
    "message.timestamp.before.max.ms": (
        "How far a producer's timestamp may lie behind the broker's clock; beyond that the record is refused. Not "
        "looked at with LogAppendTime."
    ),
    "message.timestamp.type": (
        "Whose time records carry: the producer's (CreateTime) or that of the broker at the moment of the append "
        "(LogAppendTime)."
    ),
    "min.cleanable.dirty.ratio": (
        "The share of a compacted log that must be uncleaned before the cleaner takes it up. Lower values compact "
        "more often and cost more work."
    ),
    "min.compaction.lag.ms": (
        "How long every record of a compacted topic is left alone before it may be compacted away."
    ),
    "min.insync.replicas": (
        "How many replicas must be in sync for a write with acks=all to be taken. Fewer, and the producer gets "
        "NOT_ENOUGH_REPLICAS."
    ),
    "preallocate": "Whether the file of a new segment is given its full size at once.",
    "remote.log.copy.disable": "With tiered storage, stops copying segments out and leaves the remote ones readable.",
    "remote.log.delete.on.disable": (
        "Whether switching tiered storage off for the topic also deletes what was already copied out."
    ),
    "remote.storage.enable": (
        "Turns tiered storage on for the topic. The broker needs remote.log.storage.system.enable, and compacted "
        "topics cannot have it."
    ),
    "retention.bytes": (
        "Size of a partition beyond which its oldest segments are deleted, for topics with the policy 'delete'. -1 "
        "is no limit."
    ),
    "retention.ms": (
        "Age after which segments are deleted, counted from the newest record in them, for topics with the policy "
        "'delete'. -1 keeps them forever."
    ),
    "segment.bytes": "Size at which a new segment is begun. Retention and compaction work on whole closed segments.",
    "segment.index.bytes": (
        "The most that the index files of a segment may hold. A full index also begins a new segment."
    ),
    "segment.jitter.ms": (
        "Random part, up to this much, that is taken off segment.ms, so that many partitions do not roll at once."
    ),
    "segment.ms": "Time after which a new segment is begun even if the current one is not full.",
    "unclean.leader.election.enable": (
        "Whether a replica that was not in sync may become leader when no other is left. Availability is bought "
        "with lost records."
    ),
}
