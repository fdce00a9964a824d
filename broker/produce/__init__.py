"""Produce: what a request's partitions must pass before the log sees them, and the wait for replication."""
