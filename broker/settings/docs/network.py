"""Documentation of the settings of `broker.settings.tables.network`."""

TEXTS = {
    "advertised.listeners": (
        "Addresses for clients, if they differ from those of listeners: behind a proxy, or in a container."
    ),
    "background.threads": "Threads for the broker's own periodic work, such as deleting files.",
    "client.quota.callback.class": "Class that decides which quota applies to a client. No class is loaded here.",
    "config.providers": "Names of the providers that replace ${...} in values of the configuration file.",
    "connection.failed.authentication.delay.ms": (
        "How long the connection of a client that failed to authenticate is kept open before it is closed."
    ),
    "connections.max.idle.ms": "Idle time after which a connection is closed.",
    "connections.max.reauth.ms": (
        "Maximum lifetime of a SASL session. Clients that support it re-authenticate in time; others are disconnected. "
        "0: unlimited."
    ),
    "delete.records.purgatory.purge.interval.requests": (
        "Number of completed DeleteRecords requests in the purgatory at which they are purged."
    ),
    "fetch.max.bytes": "Maximum bytes in the response to one fetch, even if the client requests more.",
    "fetch.purgatory.purge.interval.requests": "Number of completed fetches in the purgatory at which they are purged.",
    "inter.broker.listener.name": (
        "Listener on which brokers communicate; if unset, the one with security.inter.broker.protocol."
    ),
    "kafka.metrics.polling.interval.secs": "How often the reporters of kafka.metrics.reporters read the metrics.",
    "kafka.metrics.reporters": "Classes that report the broker's older (Yammer) metrics.",
    "listener.security.protocol.map": (
        "Security protocol of each listener, as NAME:PROTOCOL, so that listeners can have any names."
    ),
    "listeners": (
        "Addresses on which the broker listens, as NAME://HOST:PORT. Without a host it listens on every address."
    ),
    "max.connection.creation.rate": (
        "Maximum connections per second that the broker, or with its prefix a listener, accepts."
    ),
    "max.connections": (
        "Maximum connections of the broker, or with its prefix of a listener. Beyond that the least recently used one "
        "of another listener is closed, or the new one waits."
    ),
    "max.connections.per.ip": "Maximum connections from one address. Further ones are closed immediately.",
    "max.connections.per.ip.overrides": "Other maximums for single addresses, as host:limit,host:limit.",
    "max.incremental.fetch.session.cache.slots": (
        "Maximum number of incremental fetch sessions. Without a free slot clients fetch without a session."
    ),
    "max.request.partition.size.limit": (
        "Maximum number of partitions in one DescribeTopicPartitions response; a cursor leads to the rest."
    ),
    "metric.reporters": "Classes that report the broker's metrics. Only built-in ones are supported here.",
    "metrics.num.samples": "Number of samples from which a rate is computed.",
    "metrics.recording.level": "Level of the metrics that are recorded: INFO, DEBUG or TRACE.",
    "metrics.sample.window.ms": "Time that one sample of a rate covers.",
    "num.io.threads": "Threads that handle requests.",
    "num.network.threads": "Threads per listener that read requests and write responses.",
    "producer.purgatory.purge.interval.requests": (
        "Number of completed produce requests in the purgatory at which they are purged."
    ),
    "queued.max.request.bytes": "Bytes of queued requests beyond which no more are read; -1: no limit.",
    "queued.max.requests": "Number of queued requests beyond which no more are read.",
    "quota.window.num": "Number of past windows over which the rates behind client quotas are measured.",
    "quota.window.size.seconds": "Length of one window in which the rates behind client quotas are measured.",
    "request.timeout.ms": "Timeout of the broker's own requests.",
    "socket.connection.setup.timeout.max.ms": (
        "Maximum timeout of connecting to another broker; the timeout grows with each failure."
    ),
    "socket.connection.setup.timeout.ms": "Initial timeout of connecting to another broker.",
    "socket.listen.backlog.size": "Maximum number of connections that wait to be accepted.",
    "socket.receive.buffer.bytes": "Receive buffer of client sockets; -1 is the operating system's default.",
    "socket.request.max.bytes": "Maximum size of a request. A client that announces a larger one is disconnected.",
    "socket.send.buffer.bytes": "Send buffer of client sockets; -1 is the operating system's default.",
    "telemetry.max.bytes": "Maximum compressed size of the metrics in one push of a client (KIP-714).",
    "understudy.journal.buffer.bytes": (
        "Memory for requests that wait to be written to the journal's files (--journal); beyond that, they are not "
        "recorded."
    ),
    "understudy.journal.file.max.bytes": "Size at which a file of the journal (--journal) is finished.",
    "understudy.journal.file.max.ms": (
        "Age, by the machine's time, at which a file of the journal (--journal) is finished."
    ),
    "understudy.journal.max.bytes": "Maximum memory of the journal of requests; the oldest ones are dropped.",
    "understudy.journal.max.entries": "Maximum number of requests in the journal; 0 disables it.",
    "understudy.partial.frame.timeout.ms": (
        "How long an incomplete request may take to arrive; each 64 KiB of it restart the timeout. Negative: "
        "unlimited. Kafka waits for connections.max.idle.ms."
    ),
}
