"""Answers of the control plane. Times are milliseconds of the cluster's clock since 1970; ids are Kafka's.

The Python client returns the dataclasses (``understudy.results`` has all of them). It drops unknown fields and sets
missing ones to their defaults, so it works with older and newer servers. The TypedDicts wrap
lists, or are acknowledgements. The server sends every field, always.

There is one module for each subject, since creating a dataclass takes about a millisecond, and a program that reads
topics should not pay for transactions.
"""
