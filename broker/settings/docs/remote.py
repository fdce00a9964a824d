"""Documentation of the settings of `broker.settings.tables.remote`."""

TEXTS = {
    "log.remote.copy.lag.bytes": "Default of the topics' remote.copy.lag.bytes.",
    "log.remote.copy.lag.ms": "Default of the topics' remote.copy.lag.ms.",
    "follower.fetch.last.tiered.offset.enable": (
        "Whether a new follower of a tiered topic begins where the copied part ends, rather than at the log's start."
    ),
    "remote.fetch.max.wait.ms": "How long a fetch that has to read remote storage may wait for it.",
    "remote.list.offsets.request.timeout.ms": (
        "How long ListOffsets may wait when the answer has to be looked up in remote storage."
    ),
    "remote.log.index.file.cache.total.size.bytes": "Space for indexes of remote segments kept on the broker's disk.",
    "remote.log.index.file.cache.ttl.ms": "How long unused indexes of remote segments are kept; -1: forever.",
    "remote.log.manager.copier.thread.pool.size": "Threads that copy segments to remote storage.",
    "remote.log.manager.copy.max.bytes.per.second": "Bytes per second that copying to remote storage may use.",
    "remote.log.manager.copy.quota.window.num": "Number of past windows over which the copying rate is measured.",
    "remote.log.manager.copy.quota.window.size.seconds": "Length of one window in which the copying rate is measured.",
    "remote.log.manager.expiration.thread.pool.size": "Threads that delete expired segments from remote storage.",
    "remote.log.manager.fetch.max.bytes.per.second": "Bytes per second that reading from remote storage may use.",
    "remote.log.manager.fetch.quota.window.num": "Number of past windows over which the reading rate is measured.",
    "remote.log.manager.fetch.quota.window.size.seconds": "Length of one window in which the reading rate is measured.",
    "remote.log.manager.follower.thread.pool.size": "Threads that do what followers of tiered partitions have to do.",
    "remote.log.manager.task.interval.ms": "How often segments are looked for that can be copied out or deleted.",
    "remote.log.manager.task.retry.backoff.max.ms": "Longest wait before a failed task of tiered storage is repeated.",
    "remote.log.manager.task.retry.backoff.ms": "First wait before a failed task of tiered storage is repeated.",
    "remote.log.manager.task.retry.jitter": "Random share by which those waits are stretched or shortened.",
    "remote.log.manager.thread.pool.size": "Older common size of the pools that now have sizes of their own.",
    "remote.log.metadata.custom.metadata.max.bytes": (
        "Largest custom metadata that a storage plugin may attach to a segment."
    ),
    "remote.log.metadata.manager.class.name": "Class that keeps the catalogue of remote segments.",
    "remote.log.metadata.manager.class.path": "Where that class and what it needs are loaded from.",
    "remote.log.metadata.manager.impl.prefix": "Prefix of the settings that are handed to that class.",
    "remote.log.metadata.manager.listener.name": "Listener by which that class reaches the brokers, if it needs one.",
    "remote.log.reader.max.pending.tasks": "Reads from remote storage that may wait; beyond that fetches fail.",
    "remote.log.reader.threads": "Threads that read from remote storage.",
    "remote.log.storage.manager.class.name": "Class that stores and reads remote segments.",
    "remote.log.storage.manager.class.path": "Where that class and what it needs are loaded from.",
    "remote.log.storage.manager.impl.prefix": "Prefix of the settings that are handed to that class.",
    "remote.log.storage.system.enable": (
        "Whether the broker offers tiered storage to topics. Here it only lets the topics' settings be made."
    ),
}
