"""Logs and wire journals as tables: what Kafka's files hold, decoded, audited, exported and loaded.

Reading needs no Spark: `pipeline.reading` turns paths into Arrow. Spark's side of it, the data sources, stands in
`understudy.spark`.
"""
