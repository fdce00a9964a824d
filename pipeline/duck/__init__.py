"""Runs the same queries without Spark, on DuckDB, for data that fit into memory."""
