"""Documentation of the settings of `broker.settings.tables.network`."""

TEXTS = {
    "advertised.listeners": (
        "Addresses for clients, where they differ from those listened on: behind a proxy, or in a container."
    ),
    "background.threads": "Threads for the broker's own periodic work, such as deleting files.",
    "client.quota.callback.class": "Class that decides which quota holds for a client. None is loaded here.",
    "config.providers": "Names of the providers that replace ${...} in values of the configuration file.",
    "connection.failed.authentication.delay.ms": (
        "How long the connection of a client that failed to authenticate is held before it is closed."
    ),
    "connections.max.idle.ms": "How long a connection may be silent before it is closed.",
    "connections.max.reauth.ms": (
        "How long a SASL session lives. Clients that can, authenticate again in time; others are disconnected. 0: "
        "forever."
    ),
    "delete.records.purgatory.purge.interval.requests": (
        "How many finished waiting DeleteRecords requests gather before the broker clears them away."
    ),
    "fetch.max.bytes": "Most bytes in the response to one fetch, even if the client asks for more.",
    "fetch.purgatory.purge.interval.requests": (
        "How many finished waiting fetches gather before the broker clears them away."
    ),
    "inter.broker.listener.name": (
        "The listener on which brokers talk to each other; unset, the one with security.inter.broker.protocol."
    ),
    "kafka.metrics.polling.interval.secs": "How often the reporters of kafka.metrics.reporters read the metrics.",
    "kafka.metrics.reporters": "Classes that report the broker's older (Yammer) metrics.",
    "listener.security.protocol.map": (
        "Security protocol of each listener, as NAME:PROTOCOL. Listeners may then have any names."
    ),
    "listeners": "Where the broker listens, as NAME://HOST:PORT. Without a host it listens on every address.",
    "max.connection.creation.rate": "Connections per second that the broker, or with its prefix a listener, accepts.",
    "max.connections": (
        "Connections that the broker, or with its prefix a listener, holds at a time. Beyond that the oldest idle "
        "one of another listener is closed, or the new one waits."
    ),
    "max.connections.per.ip": "Connections from one address at a time. Further ones are closed at once.",
    "max.connections.per.ip.overrides": "Other limits for single addresses, as host:limit,host:limit.",
    "max.incremental.fetch.session.cache.slots": (
        "How many incremental fetch sessions the broker keeps. Without a free slot clients fetch without a session."
    ),
    "max.request.partition.size.limit": (
        "How many partitions one answer of DescribeTopicPartitions holds; the rest follows a cursor."
    ),
    "metric.reporters": "Classes that report the broker's metrics. None but the built-in ones are loaded here.",
    "metrics.num.samples": "How many samples a rate is computed from.",
    "metrics.recording.level": "How much is measured: INFO, DEBUG or TRACE.",
    "metrics.sample.window.ms": "Time that one sample of a rate covers.",
    "num.io.threads": "Threads that handle requests.",
    "num.network.threads": "Threads per listener that read requests and write answers.",
    "producer.purgatory.purge.interval.requests": (
        "How many finished waiting produce requests gather before the broker clears them away."
    ),
    "queued.max.request.bytes": (
        "Bytes of requests that may wait to be handled before nothing more is read; -1: no limit."
    ),
    "queued.max.requests": "Requests that may wait to be handled before nothing more is read from the network.",
    "quota.window.num": "Number of past windows over which the rates behind client quotas are measured.",
    "quota.window.size.seconds": "Length of one window in which the rates behind client quotas are measured.",
    "request.timeout.ms": "How long the broker waits for the answers to its own requests.",
    "socket.connection.setup.timeout.max.ms": (
        "Longest time the broker allows for connecting to another one, after the allowance has grown with each failure."
    ),
    "socket.connection.setup.timeout.ms": "Time the broker first allows for connecting to another one.",
    "socket.listen.backlog.size": "How many connections may wait to be accepted.",
    "socket.receive.buffer.bytes": "Receive buffer of clients' sockets; -1 leaves it to the operating system.",
    "socket.request.max.bytes": "Largest request that is read. A client that announces more is disconnected.",
    "socket.send.buffer.bytes": "Send buffer of clients' sockets; -1 leaves it to the operating system.",
    "telemetry.max.bytes": "Largest compressed set of metrics that a client may push at a time (KIP-714).",
    "understudy.journal.buffer.bytes": (
        "Memory for requests that wait to be written to the journal's files (--journal); beyond, they go unrecorded."
    ),
    "understudy.journal.file.max.bytes": "Size at which a file of the journal (--journal) is finished.",
    "understudy.journal.file.max.ms": "Age, by the machine's time, at which a file of the journal is finished.",
    "understudy.journal.max.bytes": "Memory that the journal of requests may take; the oldest ones are dropped.",
    "understudy.journal.max.entries": "How many requests the journal remembers; 0: it is off.",
    "understudy.partial.frame.timeout.ms": (
        "How long a request that was begun may take to arrive; each 64 KiB of it renew the time. Negative: forever. "
        "Kafka waits as long as connections.max.idle.ms."
    ),
}
