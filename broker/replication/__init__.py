"""Partitions over all their replicas, and the logs of coordinators and of the metadata."""
