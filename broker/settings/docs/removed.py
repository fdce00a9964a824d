"""Documentation of settings that releases before the newest one had."""

BROKER = {
    "advertised.host.name": "The host that clients connected to, before advertised.listeners.",
    "advertised.port": "The port that clients connected to, before advertised.listeners.",
    "auto.include.jmx.reporter": "Whether metrics are reported by JMX although metric.reporters does not name it.",
    "broker.id.generation.enable": (
        "Whether a broker without an id gets one from ZooKeeper, above reserved.broker.max.id."
    ),
    "control.plane.listener.name": (
        "The listener by which the controller reaches the brokers, apart from all other requests."
    ),
    "controlled.shutdown.max.retries": "How often a broker that stops asks the controller to move its leaders.",
    "controlled.shutdown.retry.backoff.ms": "How long a broker that stops waits before it asks the controller again.",
    "delegation.token.master.key": (
        "The older name of delegation.token.secret.key, the key that signs delegation tokens."
    ),
    "eligible.leader.replicas.enable": "Whether the controller keeps eligible leader replicas (KIP-966).",
    "group.coordinator.new.enable": "Whether groups are kept by the coordinator of KIP-848.",
    "group.share.max.groups": "How many share groups there may be.",
    "host.name": "The host that the broker listens on, before listeners.",
    "inter.broker.protocol.version": (
        "The release whose protocol brokers speak with each other, so that a cluster can be upgraded broker by broker."
    ),
    "leader.imbalance.per.broker.percentage": (
        "The share of a broker's partitions led by others from which on leaders are moved back."
    ),
    "log.message.downconversion.enable": "Default of message.downconversion.enable for topics.",
    "log.message.format.version": (
        "Default of message.format.version for topics. Releases before 3.0 obey it, 3.x ignore it, 4.0 took it away."
    ),
    "log.message.timestamp.difference.max.ms": "Default of message.timestamp.difference.max.ms for topics.",
    "offsets.commit.required.acks": "The acks with which the group coordinator writes offsets; only -1 makes sense.",
    "port": "The port that the broker listens on, before listeners.",
    "quota.consumer.default": "Bytes per second that a client id without a quota of its own may fetch from the broker.",
    "quota.producer.default": "Bytes per second that a client id without a quota of its own may produce to the broker.",
    "group.share.enable": "Whether share groups are served, while they were in development.",
    "internal.metadata.max.fetch.size.in.bytes": "How much of the metadata log a fetch returns at most.",
    "metadata.log.segment.min.bytes": "The least size that a segment of the metadata log may be given.",
    "password.encoder.cipher.algorithm": "The cipher of passwords that dynamic settings keep in ZooKeeper.",
    "password.encoder.iterations": "The rounds of the key derivation for passwords in ZooKeeper.",
    "password.encoder.key.length": "The length in bits of the key for passwords in ZooKeeper.",
    "password.encoder.keyfactory.algorithm": "How the key for passwords in ZooKeeper is derived from the secret.",
    "password.encoder.old.secret": "The former secret of passwords in ZooKeeper, while the secret changes.",
    "password.encoder.secret": "The secret that passwords in ZooKeeper are encrypted with.",
    "reserved.broker.max.id": "The highest id that an administrator may give a broker; generated ids lie above it.",
    "share.fetch.max.fetch.records": "How many records a share fetch acquires at most.",
    "unstable.metadata.versions.enable": "Whether levels of metadata.version in development may be used.",
    "zookeeper.clientCnxnSocket": "The class of the connection to ZooKeeper; TLS needs the one of Netty.",
    "zookeeper.connect": "The addresses of ZooKeeper, HOST:PORT separated by commas, with an optional path at the end.",
    "zookeeper.connection.timeout.ms": "How long a broker waits for its connection to ZooKeeper.",
    "zookeeper.max.in.flight.requests": "How many requests a broker sends to ZooKeeper before it waits for an answer.",
    "zookeeper.metadata.migration.enable": (
        "Whether the metadata moves from ZooKeeper to KRaft's controllers (KIP-866)."
    ),
    "zookeeper.metadata.migration.min.batch.size": (
        "How many records of metadata move together in the migration from ZooKeeper."
    ),
    "zookeeper.session.timeout.ms": "How long ZooKeeper keeps a broker's session without hearing from it.",
    "zookeeper.set.acl": "Whether what brokers write into ZooKeeper is protected by its ACLs.",
    "zookeeper.ssl.cipher.suites": "The TLS cipher suites for the connection to ZooKeeper.",
    "zookeeper.ssl.client.enable": "Whether the connection to ZooKeeper uses TLS.",
    "zookeeper.ssl.crl.enable": "Whether ZooKeeper's certificate is looked up in lists of revoked ones.",
    "zookeeper.ssl.enabled.protocols": "The TLS versions for the connection to ZooKeeper.",
    "zookeeper.ssl.endpoint.identification.algorithm": (
        "Whether the name in ZooKeeper's certificate has to be its host's."
    ),
    "zookeeper.ssl.keystore.location": "The file with the broker's own certificate for ZooKeeper.",
    "zookeeper.ssl.keystore.password": "The password of the keystore for ZooKeeper.",
    "zookeeper.ssl.keystore.type": "The type of the keystore for ZooKeeper.",
    "zookeeper.ssl.ocsp.enable": "Whether a server of OCSP is asked about ZooKeeper's certificate.",
    "zookeeper.ssl.protocol": "The TLS version that the connection to ZooKeeper starts with.",
    "zookeeper.ssl.truststore.location": "The file with the certificates that ZooKeeper's is trusted by.",
    "zookeeper.ssl.truststore.password": "The password of the truststore for ZooKeeper.",
    "zookeeper.ssl.truststore.type": "The type of the truststore for ZooKeeper.",
    "zookeeper.sync.time.ms": "How far a follower of ZooKeeper may be behind its leader.",
}
TOPIC = {
    "message.downconversion.enable": (
        "Whether records are sent in the formats before 0.11 to clients that ask in old versions. Gone with 4.0."
    ),
    "message.format.version": (
        "The release whose record format the topic has. Releases before 3.0 obey it, 3.x ignore it, 4.0 took it away."
    ),
    "message.timestamp.difference.max.ms": (
        "How far a producer's timestamp may lie behind or ahead of the broker's clock; beyond that it is refused."
    ),
}
