"""The scenarios, area by area. Importing this package registers all of them, in this order.

Numbers that most of them share have names in `values`. Besides:

* Counts of records are explained at `values.numbered`.
* Faults with `times=2` or `3`: a library that repeats a request only once fails.
"""

from understudy.exam.scenarios import (  # noqa: I001 - the order of the report
    connection,
    tls,
    sasl,
    produce,
    idempotence,
    transactions,
    consumers,
    truncation,
    groups,
    consumer_protocol,
    share,
    admin,
    throttling,
    bootstrap,
    hostile,
    refusals,
    shapes,
    states,
)

__all__ = [
    "admin",
    "bootstrap",
    "connection",
    "consumer_protocol",
    "consumers",
    "groups",
    "hostile",
    "idempotence",
    "produce",
    "refusals",
    "sasl",
    "shapes",
    "share",
    "states",
    "throttling",
    "tls",
    "transactions",
    "truncation",
]
