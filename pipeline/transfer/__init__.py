"""Logs -> Parquet -> logs, without loss: `export` and `load`, the manifest that makes a copy verifiable, the wire."""
