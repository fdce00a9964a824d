"""Documentation of the settings of `broker.settings.tables.remote`."""

TEXTS = {
    "log.remote.copy.lag.bytes": "Default of the topics' remote.copy.lag.bytes.",
    "log.remote.copy.lag.ms": "Default of the topics' remote.copy.lag.ms.",
    "follower.fetch.last.tiered.offset.enable": (
        "Whether a new follower of a tiered topic begins at the last tiered offset instead of the log start offset."
    ),
    "remote.fetch.max.wait.ms": "How long a fetch may wait for data from remote storage.",
    "remote.list.offsets.request.timeout.ms": (
        "How long ListOffsets may wait if the offset has to be looked up in remote storage."
    ),
    "remote.log.index.file.cache.total.size.bytes": "Disk space for cached indexes of remote segments.",
    "remote.log.index.file.cache.ttl.ms": "How long unused indexes of remote segments are cached; -1: forever.",
    "remote.log.manager.copier.thread.pool.size": "Threads that copy segments to remote storage.",
    "remote.log.manager.copy.max.bytes.per.second": "Maximum bytes per second copied to remote storage.",
    "remote.log.manager.copy.quota.window.num": "Number of past windows over which the copy rate is measured.",
    "remote.log.manager.copy.quota.window.size.seconds": "Length of one window in which the copy rate is measured.",
    "remote.log.manager.expiration.thread.pool.size": "Threads that delete expired segments from remote storage.",
    "remote.log.manager.fetch.max.bytes.per.second": "Maximum bytes per second read from remote storage.",
    "remote.log.manager.fetch.quota.window.num": "Number of past windows over which the read rate is measured.",
    "remote.log.manager.fetch.quota.window.size.seconds": "Length of one window in which the read rate is measured.",
    "remote.log.manager.follower.thread.pool.size": "Threads for the tasks of followers of tiered partitions.",
    "remote.log.manager.task.interval.ms": "How often segments are checked for whether they can be copied or deleted.",
    "remote.log.manager.task.retry.backoff.max.ms": "Maximum delay before a failed task of tiered storage is retried.",
    "remote.log.manager.task.retry.backoff.ms": "Initial delay before a failed task of tiered storage is retried.",
    "remote.log.manager.task.retry.jitter": (
        "Random share by which the delays before retries of tiered storage tasks vary."
    ),
    "remote.log.manager.thread.pool.size": "Older common size of the thread pools that now have their own settings.",
    "remote.log.metadata.custom.metadata.max.bytes": (
        "Maximum size of the custom metadata that a storage plugin attaches to a segment."
    ),
    "remote.log.metadata.manager.class.name": "Class that manages the metadata of remote segments.",
    "remote.log.metadata.manager.class.path": (
        "Class path of remote.log.metadata.manager.class.name and its dependencies."
    ),
    "remote.log.metadata.manager.impl.prefix": (
        "Prefix of the settings that are passed to remote.log.metadata.manager.class.name."
    ),
    "remote.log.metadata.manager.listener.name": (
        "Listener through which the metadata manager of tiered storage connects to brokers, if it needs one."
    ),
    "remote.log.reader.max.pending.tasks": (
        "Maximum number of pending reads from remote storage; beyond that fetches fail."
    ),
    "remote.log.reader.threads": "Threads that read from remote storage.",
    "remote.log.storage.manager.class.name": "Class that stores and reads remote segments.",
    "remote.log.storage.manager.class.path": (
        "Class path of remote.log.storage.manager.class.name and its dependencies."
    ),
    "remote.log.storage.manager.impl.prefix": (
        "Prefix of the settings that are passed to remote.log.storage.manager.class.name."
    ),
    "remote.log.storage.system.enable": (
        "Whether topics can use tiered storage. Here it only allows the topics' settings; nothing is tiered."
    ),
}
