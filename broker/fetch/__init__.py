"""Fetch: sessions (KIP-227), reading of many partitions within one response's limits, long polls."""
