"""The simulator: a cluster, its clients, disks and network in one process, on virtual time, repeatable by its seed."""
