"""Copies logs to Parquet and back, without loss: `export`, `load`, the manifest to verify a copy, a Kafka client."""
