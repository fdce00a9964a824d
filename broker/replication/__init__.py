"""Replicated partitions, and the logs of the coordinators and of the metadata."""
