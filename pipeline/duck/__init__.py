"""The same queries without Spark, on DuckDB: for what fits into memory."""
