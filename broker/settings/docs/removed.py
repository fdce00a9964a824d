"""Documentation of settings that releases before the newest one had."""

BROKER = {
    "advertised.host.name": "Host for clients, before advertised.listeners.",
    "advertised.port": "Port for clients, before advertised.listeners.",
    "auto.include.jmx.reporter": "Whether metrics are reported by JMX even if metric.reporters does not list it.",
    "broker.id.generation.enable": (
        "Whether a broker without an id gets one from ZooKeeper, above reserved.broker.max.id."
    ),
    "control.plane.listener.name": (
        "Listener for the controller's requests to brokers, separate from all other requests."
    ),
    "controlled.shutdown.max.retries": (
        "How often a broker that shuts down retries to have its leaders moved by the controller."
    ),
    "controlled.shutdown.retry.backoff.ms": (
        "Delay before a broker that shuts down asks the controller again to move its leaders."
    ),
    "delegation.token.master.key": "Older name of delegation.token.secret.key, the key that signs delegation tokens.",
    "eligible.leader.replicas.enable": "Whether the controller maintains eligible leader replicas (KIP-966).",
    "group.coordinator.new.enable": "Whether the group coordinator of KIP-848 is used.",
    "group.share.max.groups": "Maximum number of share groups.",
    "host.name": "Host on which the broker listens, before listeners.",
    "inter.broker.protocol.version": (
        "Release whose protocol brokers use between each other, so that a cluster can be upgraded broker by broker."
    ),
    "leader.imbalance.per.broker.percentage": (
        "Share of a broker's partitions led by others above which leaders are moved back."
    ),
    "log.message.downconversion.enable": "Default of message.downconversion.enable for topics.",
    "log.message.format.version": (
        "Default of message.format.version for topics. Releases before 3.0 use it, 3.x ignore it, 4.0 removed it."
    ),
    "log.message.timestamp.difference.max.ms": "Default of message.timestamp.difference.max.ms for topics.",
    "offsets.commit.required.acks": "acks with which the group coordinator writes offsets; only -1 makes sense.",
    "port": "Port on which the broker listens, before listeners.",
    "quota.consumer.default": "Bytes per second that a client id without its own quota may fetch from the broker.",
    "quota.producer.default": "Bytes per second that a client id without its own quota may produce to the broker.",
    "group.share.enable": "Whether share groups are enabled, while they were in development.",
    "internal.metadata.max.fetch.size.in.bytes": "Maximum bytes that a fetch of the metadata log returns.",
    "metadata.log.segment.min.bytes": "Smallest metadata.log.segment.bytes that may be configured.",
    "password.encoder.cipher.algorithm": "Cipher of the passwords in dynamic configs in ZooKeeper.",
    "password.encoder.iterations": "Iterations of the key derivation for passwords in ZooKeeper.",
    "password.encoder.key.length": "Length in bits of the key for passwords in ZooKeeper.",
    "password.encoder.keyfactory.algorithm": (
        "Algorithm that derives the key for passwords in ZooKeeper from the secret."
    ),
    "password.encoder.old.secret": "Previous secret of passwords in ZooKeeper, while the secret is being changed.",
    "password.encoder.secret": "Secret with which passwords in ZooKeeper are encrypted.",
    "reserved.broker.max.id": "Highest broker id that can be configured; generated ids are above it.",
    "share.fetch.max.fetch.records": "Maximum number of records that a share fetch acquires.",
    "unstable.metadata.versions.enable": "Whether levels of metadata.version in development may be used.",
    "zookeeper.clientCnxnSocket": "Class of the connection to ZooKeeper; TLS requires the Netty one.",
    "zookeeper.connect": "Addresses of ZooKeeper, HOST:PORT separated by commas, with an optional path at the end.",
    "zookeeper.connection.timeout.ms": "How long a broker waits for its connection to ZooKeeper.",
    "zookeeper.max.in.flight.requests": "Maximum number of a broker's unanswered requests to ZooKeeper.",
    "zookeeper.metadata.migration.enable": (
        "Whether the metadata is migrated from ZooKeeper to KRaft controllers (KIP-866)."
    ),
    "zookeeper.metadata.migration.min.batch.size": (
        "Number of metadata records per batch in the migration from ZooKeeper."
    ),
    "zookeeper.session.timeout.ms": "Time without a heartbeat after which ZooKeeper expires a broker's session.",
    "zookeeper.set.acl": "Whether brokers protect their nodes in ZooKeeper by ACLs.",
    "zookeeper.ssl.cipher.suites": "The TLS cipher suites for the connection to ZooKeeper.",
    "zookeeper.ssl.client.enable": "Whether the connection to ZooKeeper uses TLS.",
    "zookeeper.ssl.crl.enable": "Whether ZooKeeper's certificate is checked against certificate revocation lists.",
    "zookeeper.ssl.enabled.protocols": "The TLS versions for the connection to ZooKeeper.",
    "zookeeper.ssl.endpoint.identification.algorithm": (
        "Whether the name in ZooKeeper's certificate must be that of its host."
    ),
    "zookeeper.ssl.keystore.location": "File with the broker's own certificate for ZooKeeper.",
    "zookeeper.ssl.keystore.password": "The password of the keystore for ZooKeeper.",
    "zookeeper.ssl.keystore.type": "The type of the keystore for ZooKeeper.",
    "zookeeper.ssl.ocsp.enable": "Whether ZooKeeper's certificate is checked by OCSP.",
    "zookeeper.ssl.protocol": "TLS version with which the connection to ZooKeeper begins.",
    "zookeeper.ssl.truststore.location": "File with the certificates that are trusted to sign ZooKeeper's.",
    "zookeeper.ssl.truststore.password": "The password of the truststore for ZooKeeper.",
    "zookeeper.ssl.truststore.type": "The type of the truststore for ZooKeeper.",
    "zookeeper.sync.time.ms": "How far a ZooKeeper follower may be behind its leader.",
}
TOPIC = {
    "message.downconversion.enable": (
        "Whether records are sent in the formats before 0.11 to clients that use old versions. Removed in 4.0."
    ),
    "message.format.version": (
        "Release whose message format the topic has. Releases before 3.0 use it, 3.x ignore it, 4.0 removed it."
    ),
    "message.timestamp.difference.max.ms": (
        "Maximum difference between a producer's timestamp and the broker's clock, in both directions; beyond that the "
        "record is refused."
    ),
}
