"""Documentation of the settings of `broker.settings.tables.cluster`."""

TEXTS = {
    "alter.config.policy.class.name": (
        "Class that may refuse changes of configurations. Set on controllers; none is loaded here."
    ),
    "auto.leader.rebalance.enable": "Whether the controller moves leadership back to preferred replicas by itself.",
    "broker.heartbeat.interval.ms": "How often a broker sends a heartbeat to the controller.",
    "broker.id": "Older name of node.id. If both are set they must agree.",
    "broker.rack": "The rack of the broker. Replicas are spread over racks, and consumers can read from their own.",
    "broker.session.timeout.ms": (
        "How long the controller waits for a broker's heartbeat before it fences the broker and moves its leaderships."
    ),
    "controlled.shutdown.enable": "Whether a broker hands its leaderships over before it stops.",
    "controller.listener.names": (
        "Names of the listeners on which controllers talk to each other and to brokers. Clients never see them."
    ),
    "controller.performance.always.log.threshold.ms": (
        "Controller events slower than this are always logged, independent of sampling."
    ),
    "controller.performance.sample.period.ms": "How often the controller logs a summary of how long its events take.",
    "controller.quorum.append.linger.ms": (
        "How long the active controller gathers metadata records before it writes them to disk."
    ),
    "controller.quorum.auto.join.enable": "Whether a controller adds itself to the quorum's voters when it starts.",
    "controller.quorum.bootstrap.servers": (
        "Controllers to ask first for the quorum, as host:port, where the voters are not listed one by one."
    ),
    "controller.quorum.election.backoff.max.ms": (
        "Longest random wait before a controller starts another election, so that candidates do not collide."
    ),
    "controller.quorum.election.timeout.ms": "How long a candidate waits for votes before it begins a new election.",
    "controller.quorum.fetch.max.bytes": "Most bytes that one fetch of the metadata log brings.",
    "controller.quorum.fetch.snapshot.max.bytes": "Most bytes that one fetch of a metadata snapshot brings.",
    "controller.quorum.fetch.timeout.ms": (
        "How long a voter goes without an answer from the active controller before it starts an election."
    ),
    "controller.quorum.request.timeout.ms": "Time limit on requests among controllers.",
    "controller.quorum.retry.backoff.ms": "Pause before a failed request to a controller is sent again.",
    "controller.quorum.voters": "The voters of the metadata quorum, as id@host:port.",
    "controller.quota.window.num": "Number of past windows over which the rate of controller mutations is measured.",
    "controller.quota.window.size.seconds": "Length of one window in which controller mutations are counted.",
    "controller.socket.timeout.ms": "Socket timeout of the connections from brokers to the controller.",
    "create.topic.policy.class.name": (
        "Class that may refuse the creation of topics. Set on controllers; none is loaded here."
    ),
    "early.start.listeners": (
        "Listeners that open before the authorizer has finished starting; unset, those of the controllers."
    ),
    "initial.broker.registration.timeout.ms": (
        "How long a starting broker tries to register with the controller before it gives up."
    ),
    "internal.metadata.delete.delay.millis": "How long deleted files of the metadata log stay on disk.",
    "internal.metadata.log.segment.bytes": "Segment size of the metadata log without a lower limit, for tests.",
    "internal.metadata.max.batch.size.in.bytes": "Largest batch of records in the metadata log.",
    "metadata.log.dir": "Directory of the metadata log; unset, the first of the log directories.",
    "metadata.log.max.record.bytes.between.snapshots": (
        "Bytes of new metadata after which a snapshot is made and the log before it can go."
    ),
    "metadata.log.max.snapshot.interval.ms": "Longest time between two snapshots while new metadata arrives.",
    "metadata.log.segment.bytes": "Size at which a new segment of the metadata log is begun.",
    "metadata.log.segment.ms": "Time after which a new segment of the metadata log is begun.",
    "metadata.max.idle.interval.ms": (
        "How often the active controller writes an empty record, by which everyone sees that it is alive. 0: never."
    ),
    "metadata.max.retention.bytes": "Bytes of metadata log and snapshots beyond which old ones are deleted.",
    "metadata.max.retention.ms": "Age at which old segments and snapshots of the metadata log are deleted.",
    "node.id": "The number by which this process is known in the cluster.",
    "process.roles": "What this process is: broker, controller, or both.",
    "server.max.startup.time.ms": "How long a start may take before the process gives up.",
    "unstable.api.versions.enable": "Whether versions of APIs that are still in development are offered to clients.",
    "unstable.feature.versions.enable": (
        "Whether feature levels and metadata versions that are still in development may be used."
    ),
}
