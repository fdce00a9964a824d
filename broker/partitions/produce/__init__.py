"""Produce: validation of a request's partitions, the append, and the wait for replication."""
