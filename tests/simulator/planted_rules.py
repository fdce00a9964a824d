"""Seeds that find mistakes of the other lists with clients that break further rules, and transactions that are held."""

SEEDS_OF_RULES: dict[str, int] = {
    "a member of an old generation may commit": 92000,
    "a member that did not rejoin stays in the group": 92000,
    "OffsetFetch ignores require_stable": 92000,
    "an unknown member may commit": 92000,
    "InitProducerId accepts a foreign producer id": 92000,
    "a partition accepts a marker of an older coordinator epoch": 92000,
    "with transaction.version 2, a marker may have its data's epoch": 92000,
    "fencing bumps the epoch twice, as in 4.0.0": 92000,
    "a retried InitProducerId bumps the epoch again": 92000,
    "a producer is assigned epoch 32767": 92000,
    "after the last epoch, a retried EndTxn is not recognised": 92000,
    "min.insync.replicas is not enforced": 92014,
    "adding partitions extends the transaction timeout": 93000,
    "blocks of producer ids overlap": 94000,
}
"""Mistake -> a seed whose run finds it with the kinds `rules` and `hold`."""
SEEDS_OF_ALL: dict[str, int] = {
    "a new coordinator does not send pending markers": 91000,
    "truncation keeps producer state": 92103,
    "a silent member of a consumer group stays in it": 92502,
    "a restart forgets open transactions": 92104,
}
"""Mistake -> a seed whose run finds it with all kinds."""
