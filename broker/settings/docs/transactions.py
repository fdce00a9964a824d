"""Documentation of the settings of `broker.settings.tables.transactions`."""

TEXTS = {
    "add.partitions.to.txn.retry.backoff.max.ms": (
        "How long the broker keeps retrying, for one produce request, to add a partition to a transaction while the "
        "coordinator answers CONCURRENT_TRANSACTIONS. After that the client gets the error."
    ),
    "add.partitions.to.txn.retry.backoff.ms": (
        "Pause between two attempts of the broker to add a partition to a transaction on a producer's behalf."
    ),
    "producer.id.expiration.check.interval.ms": (
        "How often partitions look for idempotent producers that have been silent for producer.id.expiration.ms."
    ),
    "producer.id.expiration.ms": (
        "How long a partition remembers the sequence numbers of a producer that writes nothing. Forgetting early "
        "can let a late retry through as a duplicate; while a transaction is open, nothing is forgotten."
    ),
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": (
        "How often the transaction coordinator looks for transactions that are older than their timeout and aborts "
        "them."
    ),
    "transaction.max.timeout.ms": (
        "The longest transaction timeout a producer may ask for. InitProducerId with more is refused with "
        "INVALID_TRANSACTION_TIMEOUT."
    ),
    "transaction.partition.verification.enable": (
        "Whether a partition asks the coordinator, before the first record of a transaction, that the transaction "
        "is really open there. It keeps late records of aborted transactions out."
    ),
    "transaction.remove.expired.transaction.cleanup.interval.ms": (
        "How often the transaction coordinator looks for transactional ids that were not used for "
        "transactional.id.expiration.ms and removes them."
    ),
    "transaction.state.log.load.buffer.size": (
        "Bytes read at a time from __transaction_state while a coordinator loads; a larger batch is still read whole."
    ),
    "transaction.state.log.min.isr": (
        "min.insync.replicas of __transaction_state, given to the topic when it is created."
    ),
    "transaction.state.log.num.partitions": (
        "Number of partitions of __transaction_state. It decides which broker coordinates which transactional id, "
        "so it must not change once the topic exists."
    ),
    "transaction.state.log.replication.factor": (
        "Replicas of each partition of __transaction_state. Until that many brokers are alive the topic is not "
        "created and transactions cannot start."
    ),
    "transaction.state.log.segment.bytes": (
        "segment.bytes of __transaction_state. Small segments make compaction and loading quicker."
    ),
    "transaction.two.phase.commit.enable": (
        "Whether producers may take part in an external two-phase commit (KIP-939): such transactions never time out."
    ),
    "transactional.id.expiration.ms": (
        "How long a transactional id without any activity is kept by the coordinator before it is forgotten "
        "together with its producer epoch."
    ),
}
