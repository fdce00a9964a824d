"""The scenarios, area by area. Importing this package registers all of them, in this order."""

from understudy.exam.scenarios import connection, produce, idempotence, transactions, consumers, groups  # noqa: I001 - the order of the report

__all__ = ["connection", "consumers", "groups", "idempotence", "produce", "transactions"]
