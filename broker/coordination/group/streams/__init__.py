"""Streams groups (KIP-1071): members own tasks of a topology that the coordinator checks, completes and assigns."""
