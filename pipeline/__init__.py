"""Logs and wire journals as tables: what Kafka's files hold, decoded, audited, exported and loaded.

Reading needs no Spark: `pipeline.reading` turns paths into Arrow. Spark's data sources are in
`understudy.spark`.
"""
