"""Documentation of the settings of `broker.settings.tables.cluster`."""

TEXTS = {
    "alter.config.policy.class.name": (
        "Class that may refuse changes of configs. Set on controllers; no class is loaded here."
    ),
    "auto.leader.rebalance.enable": "Whether the controller automatically moves leadership back to preferred replicas.",
    "broker.heartbeat.interval.ms": "How often a broker sends a heartbeat to the controller.",
    "broker.id": "Older name of node.id. If both are set, they must be equal.",
    "broker.rack": (
        "Rack of the broker. Replicas are spread over racks, and consumers can fetch from replicas in their own rack."
    ),
    "broker.session.timeout.ms": (
        "Time without a heartbeat after which the controller fences a broker and moves its leaders."
    ),
    "controlled.shutdown.enable": "Whether a broker moves its leaders to other brokers before it stops.",
    "controller.listener.names": (
        "Names of the listeners on which controllers communicate with each other and with brokers. Clients never see "
        "them."
    ),
    "controller.performance.always.log.threshold.ms": (
        "Controller events slower than this are always logged, regardless of sampling."
    ),
    "controller.performance.sample.period.ms": (
        "How often the controller logs a summary of the durations of its events."
    ),
    "controller.quorum.append.linger.ms": (
        "How long the active controller collects metadata records before it writes them to disk."
    ),
    "controller.quorum.auto.join.enable": "Whether a controller adds itself to the quorum's voters when it starts.",
    "controller.quorum.bootstrap.servers": (
        "Controllers, as host:port, from which the quorum is discovered if the voters are not configured."
    ),
    "controller.quorum.election.backoff.max.ms": (
        "Longest random delay before a controller starts another election, so that candidates do not collide."
    ),
    "controller.quorum.election.timeout.ms": "How long a candidate waits for votes before it begins a new election.",
    "controller.quorum.fetch.max.bytes": "Maximum bytes that one fetch of the metadata log returns.",
    "controller.quorum.fetch.snapshot.max.bytes": "Maximum bytes that one fetch of a metadata snapshot returns.",
    "controller.quorum.fetch.timeout.ms": (
        "Time without a response from the active controller after which a voter starts an election."
    ),
    "controller.quorum.request.timeout.ms": "Timeout of requests between controllers.",
    "controller.quorum.retry.backoff.ms": "Delay before a failed request to a controller is retried.",
    "controller.quorum.voters": "The voters of the metadata quorum, as id@host:port.",
    "controller.quota.window.num": "Number of past windows over which the rate of controller mutations is measured.",
    "controller.quota.window.size.seconds": "Length of one window in which controller mutations are counted.",
    "controller.socket.timeout.ms": "Socket timeout of the connections from brokers to the controller.",
    "create.topic.policy.class.name": (
        "Class that may refuse the creation of topics. Set on controllers; no class is loaded here."
    ),
    "early.start.listeners": (
        "Listeners that are opened before the authorizer has started; if unset, those of the controllers."
    ),
    "initial.broker.registration.timeout.ms": (
        "How long a starting broker tries to register with the controller before it exits."
    ),
    "internal.metadata.delete.delay.millis": "How long deleted files of the metadata log remain on disk.",
    "internal.metadata.log.segment.bytes": "Segment size of the metadata log without a lower limit, for tests.",
    "internal.metadata.max.batch.size.in.bytes": "Largest batch of records in the metadata log.",
    "metadata.log.dir": "Directory of the metadata log; if unset, the first log directory.",
    "metadata.log.max.record.bytes.between.snapshots": (
        "Bytes of new metadata records after which a snapshot is written, and the log before it can be deleted."
    ),
    "metadata.log.max.snapshot.interval.ms": "Longest time between two snapshots while new metadata arrives.",
    "metadata.log.segment.bytes": "Size at which a new segment of the metadata log is rolled.",
    "metadata.log.segment.ms": "Time after which a new segment of the metadata log is rolled.",
    "metadata.max.idle.interval.ms": (
        "How often the active controller writes a no-op record, which shows that it is alive. 0: never."
    ),
    "metadata.max.retention.bytes": "Bytes of metadata log and snapshots beyond which old ones are deleted.",
    "metadata.max.retention.ms": "Age at which old segments and snapshots of the metadata log are deleted.",
    "node.id": "Id of this process in the cluster.",
    "process.roles": "Roles of this process: broker, controller, or both.",
    "server.max.startup.time.ms": "How long the start may take before the process exits.",
    "unstable.api.versions.enable": "Whether versions of APIs that are still in development are offered to clients.",
    "unstable.feature.versions.enable": (
        "Whether feature levels and metadata versions that are still in development may be used."
    ),
}
