"""Compares the responses of two clusters to the same requests: a real Apache Kafka and Understudy.

Connects to both by their addresses and imports `protocol` only. `exchange` sends the requests, `values` and `rules`
make the responses comparable, `known_differences` lists the differences that have a reason, and `histories` generates
the requests.
"""
