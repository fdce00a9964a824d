"""The kinds of faults that a simulation of a user's program can have (`simulator.plan.OF_PROGRAMS`)."""

FAULTS = (
    "network",
    "brokers",
    "processes",
    "groups",
    "disks",
    "coordinators",
    "followers",
    "changes",
    "quotas",
    "clock",
)
