"""Fetch: sessions (KIP-227), reading many partitions within one response's limits, waiting for data."""
