"""Seeds that find mistakes of the other lists with further kinds of runs, and mistakes that break no promise."""

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
    "failed markers are not sent again": 92011,
}
"""Mistake -> a seed whose run finds it with the kinds `rules` and `hold`."""
SEEDS_OF_ALL: dict[str, int] = {
    "a new coordinator does not send pending markers": 91000,
    "truncation keeps producer state": 92103,
    "a silent member of a consumer group stays in it": 92524,
    "a restart forgets open transactions": 92104,
}
"""Mistake -> a seed whose run finds it with all kinds."""
SEEDS_OF_COORDINATORS: dict[str, int] = {
    "the next producer id is not logged": 100,
    "a verification guard outlives the marker": 300,
    "a marker counts as written although its broker did not answer": 3005,
    "a transaction completes before its markers are written": 3005,
    "a new transaction may begin before the markers are written": 2031,
}
"""Mistake -> a seed whose run finds it with coordinators that wait, answer late, or move while an id changes."""
SEEDS_OF_LAGGING_COORDINATORS: dict[str, int] = {
    "truncation keeps leader epochs": 1118,
}
"""The same, with followers that stop fetching from other leaders, too."""
SEEDS_OF_SHARE_COORDINATORS: dict[str, int] = {
    "a failed write of share state counts": 308,
    "SyncGroup returns assignments that are not replicated": 4,
}
"""The same, with members of a share group."""
EQUIVALENT = [
    "a coordinator's records ignore min.insync.replicas",
    "a failed fence bumps the epoch again",
    "a transaction is aborted at its deadline, not after it",
    "a transaction waits for partitions without a leader",
    "followers copy one batch too few",
]
"""Mistakes that break no promise to a client; docs/inside/simulator-notebook.md has the proofs."""
