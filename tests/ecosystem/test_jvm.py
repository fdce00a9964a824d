"""Frameworks of the JVM."""

from pathlib import Path

import pytest

from tests.ecosystem.cluster import Cluster
from tests.ecosystem.programs import java, printed

pytestmark = [pytest.mark.nightly, pytest.mark.interop, pytest.mark.timeout(900)]

ORDERS = [(str(number % 10), str(number)) for number in range(200)]


def test_spring_kafka_aborts_what_its_listener_refuses(kafka: Cluster, tmp_path: Path) -> None:
    """What failed is done again, or goes to the dead letters; no invoice is there twice."""
    kafka.create({"orders": 3, "invoices": 3, "orders.dead": 1})
    kafka.write("orders", ORDERS)
    kafka.lose_answer("EndTxn")
    tries = printed(java("spring", kafka.bootstrap), tmp_path)

    assert tries == {"thirteen": 3, "forty_two": 2}
    invoices = sorted(record.value for record in kafka.read("invoices"))
    assert invoices == sorted(f"invoice {value}" for _, value in ORDERS if value != "13")
    assert [record.value for record in kafka.read("orders.dead")] == ["13"]
    assert len(kafka.read("invoices", "read_uncommitted")) > len(invoices)
    assert kafka.lag("spring") == {"orders": 0}
    assert kafka.groups() == {"spring": "EMPTY"}
