"""Reads Kafka's log files and wire journals as tables, and decodes, audits, exports and loads them.

Reading needs no Spark: `pipeline.reading` turns paths into Arrow. Spark's data sources are in `understudy.spark`.
"""
