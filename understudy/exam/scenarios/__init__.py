"""The scenarios, area by area. Importing this package registers all of them, in this order.

Numbers that most of them share, and why:

* 3, 5 or 10 records: several batches or reads, and still few enough to print when they differ.
* Polls of 200 ms: longer than a response takes, and short beside the time after which a scenario gives up.
* `versions=[7, 99]`: since the version that has the field or the code; 99 is above all versions, and above all brokers.
* Faults with `times=2` or `3`: a library that repeats a request only once fails.
* `delivery_timeout_ms` of 3 or 4 s: time for several attempts of 1 s. `flush(8_000)` is that and `EXPIRY_MS` after it.
* Offset 1,000: beyond every log of the exam. `leader % 3 + 1`: the next of the three brokers.
* A look every 50 ms for what happens soon after a client has closed, for at most 5 s: half of the session timeout.
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
