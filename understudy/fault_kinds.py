"""The kinds of faults that a simulation of a user's program can have (`simulator.plan.OF_PROGRAMS`)."""

FAULTS = ("network", "brokers", "processes", "disks", "coordinators", "followers", "changes", "clock")
