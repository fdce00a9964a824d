"""Documentation of the settings of `broker.settings.tables.replication`."""

TEXTS = {
    "alter.log.dirs.replication.quota.window.num": (
        "Number of past windows over which the rate of moves between log directories is measured."
    ),
    "alter.log.dirs.replication.quota.window.size.seconds": (
        "Length of one window in which the rate of moves between log directories is measured."
    ),
    "follower.replication.throttled.rate": (
        "Bytes per second that a follower may fetch for throttled replicas; unset is no limit."
    ),
    "leader.imbalance.check.interval.seconds": (
        "How often the controller checks for partitions that are not led by their preferred replica."
    ),
    "leader.replication.throttled.rate": (
        "Bytes per second that a leader may send to throttled replicas; unset is no limit."
    ),
    "num.replica.alter.log.dirs.threads": (
        "Threads that move replicas between log directories; unset, as many as there are directories."
    ),
    "num.replica.fetchers": "Threads per source broker that fetch records for replicas of this broker.",
    "replica.alter.log.dirs.io.max.bytes.per.second": (
        "Bytes per second that moves between log directories of one broker may use; unset is no limit."
    ),
    "replica.fetch.backoff.ms": "Delay before a follower retries a failed fetch.",
    "replica.fetch.max.bytes": "Bytes that a follower requests per partition; a larger first batch is returned anyway.",
    "replica.fetch.min.bytes": "Minimum bytes in the response to a follower's fetch, unless the wait time is over.",
    "replica.fetch.response.max.bytes": "Bytes that a follower requests in one fetch, over all partitions.",
    "replica.fetch.wait.max.ms": (
        "How long a follower's fetch may wait for records. Keep it below replica.lag.time.max.ms, or idle followers "
        "leave the ISR."
    ),
    "replica.high.watermark.checkpoint.interval.ms": "How often the high watermark of each partition is checkpointed.",
    "replica.lag.time.max.ms": "How long a follower may not have caught up with its leader before it leaves the ISR.",
    "replica.selector.class": (
        "Class that chooses the replica from which a consumer reads; unset, consumers read from the leader."
    ),
    "replica.socket.receive.buffer.bytes": "Socket receive buffer of the connections on which replicas fetch.",
    "replica.socket.timeout.ms": "Timeout of the requests of followers. At least replica.fetch.wait.max.ms.",
    "replication.quota.window.num": "Number of past windows over which the rate of replication is measured.",
    "replication.quota.window.size.seconds": "Length of one window in which the rate of replication is measured.",
}
