"""The scenarios, area by area. Importing this package registers all of them, in this order."""

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
    "sasl",
    "share",
    "throttling",
    "tls",
    "transactions",
    "truncation",
]
