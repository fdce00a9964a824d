"""Streams groups (KIP-1071): the coordinator validates and configures a topology, and assigns its tasks to members."""
