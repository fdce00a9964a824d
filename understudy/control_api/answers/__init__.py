"""Answers of the control plane. Times are milliseconds of the cluster's clock since 1970; ids are Kafka's.

The dataclasses are what the Python client returns (``understudy.results`` has all of them). It drops fields that it
does not know and gives missing ones their defaults, so it understands older and newer servers. The TypedDicts wrap
lists, or are acknowledgements. The server sends every field, always.

One module for each subject: making a dataclass takes about a millisecond, and a program that asks about topics should
not pay for transactions.
"""
