"""Seeds that find mistakes of the other lists with clients that break further rules, and transactions that are held."""

SEEDS_OF_RULES: dict[str, int] = {
    "old generations may commit": 92000,
    "who did not join stays a member": 92000,
    "pending offsets are shown as old ones": 92000,
    "who is no member may commit": 92000,
    "a stranger may initialise": 92000,
    "a partition takes an older coordinator's marker": 92000,
    "a newer marker may have the data's epoch": 92000,
    "a fence bumps twice, as 4.0.0 did": 92000,
    "a retried bump bumps again": 92000,
    "epochs run into 32767": 92000,
    "a rotation is not recognised in a retry": 92000,
    "too few replicas are enough": 92014,
    "work extends the timeout": 93000,
    "blocks of producer ids overlap": 94000,
}
"""Mistake -> a seed whose run finds it with the kinds `rules` and `hold`."""
SEEDS_OF_ALL: dict[str, int] = {
    "a load does not send markers again": 91000,
    "a cut log keeps its producers": 92103,
    "who is silent stays a member": 92502,
    "a restart forgets open transactions": 92104,
}
"""Mistake -> a seed whose run finds it with all kinds."""
