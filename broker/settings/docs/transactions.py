"""Documentation of the settings of `broker.settings.tables.transactions`."""

TEXTS = {
    "add.partitions.to.txn.retry.backoff.max.ms": (
        "How long the broker retries, for one produce request, to add a partition to a transaction while the "
        "coordinator answers CONCURRENT_TRANSACTIONS. After that the client gets the error."
    ),
    "add.partitions.to.txn.retry.backoff.ms": (
        "Delay between two attempts of the broker to add a partition to a transaction on a producer's behalf."
    ),
    "producer.id.expiration.check.interval.ms": (
        "How often partitions check for idempotent producers that were idle for producer.id.expiration.ms."
    ),
    "producer.id.expiration.ms": (
        "How long a partition keeps the sequence numbers of an idle producer. If they expire too early, a late retry "
        "can become a duplicate; they do not expire while a transaction is open."
    ),
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": (
        "How often the transaction coordinator checks for transactions that exceed their timeout, and aborts them."
    ),
    "transaction.max.timeout.ms": (
        "Maximum transaction timeout that a producer may request. InitProducerId with more is refused with "
        "INVALID_TRANSACTION_TIMEOUT."
    ),
    "transaction.partition.verification.enable": (
        "Whether the partition leader verifies with the coordinator, before the first record of a transaction, that "
        "the transaction is open on the partition. This keeps out late records of aborted transactions."
    ),
    "transaction.remove.expired.transaction.cleanup.interval.ms": (
        "How often the transaction coordinator checks for transactional ids that were not used for "
        "transactional.id.expiration.ms, and removes them."
    ),
    "transaction.state.log.load.buffer.size": (
        "Bytes read at a time from __transaction_state while a coordinator is loading; a larger batch is still read "
        "whole."
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
        "segment.bytes of __transaction_state. Small segments make compaction and loading faster."
    ),
    "transaction.two.phase.commit.enable": (
        "Whether producers may participate in an external two-phase commit (KIP-939): such transactions never time out."
    ),
    "transactional.id.expiration.ms": (
        "How long the coordinator keeps an unused transactional id, with its producer epoch."
    ),
}
