"""Kafka's wire protocol: decodes and encodes messages and records. Does no I/O of its own."""
