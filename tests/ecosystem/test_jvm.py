"""Frameworks of the JVM."""

from pathlib import Path

import pytest

from tests.ecosystem.cluster import Cluster
from tests.ecosystem.programs import java, printed, quarkus, running, until

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


def test_flink_counts_exactly_once(kafka: Cluster, tmp_path: Path) -> None:
    """Its job fails between two checkpoints, and restarts from the last one; the answer to a commit is lost."""
    kafka.create({"orders": 3, "counts": 3})
    orders = [(number % 7, number) for number in range(600)]
    kafka.write("orders", [(str(customer), f"{customer} {number}") for customer, number in orders])
    kafka.lose_answer("EndTxn")
    assert printed(java("flink", kafka.bootstrap), tmp_path) == {"failed": True}

    expected = {
        f"{customer} {count} {sum(range(customer, customer + 7 * count, 7))}"
        for customer in range(7)
        for count in range(1, len([each for each, _ in orders if each == customer]) + 1)
    }
    counts = [record.value for record in kafka.read("counts")]
    assert sorted(counts) == sorted(expected)
    assert kafka.lag("flink") == {"orders": 0}


def test_quarkus_commits_offsets_and_invoices_in_one_transaction(kafka: Cluster, tmp_path: Path) -> None:
    """SmallRye Reactive Messaging: a batch that fails once comes again; the answer to a commit is lost."""
    kafka.create({"orders": 3, "invoices": 3})
    kafka.write("orders", ORDERS)
    kafka.lose_answer("EndTxn")
    with running(quarkus(kafka.bootstrap), tmp_path) as app:
        until(lambda: len(kafka.read("invoices")) >= len(ORDERS), app, tmp_path)
        until(lambda: kafka.lag("quarkus") == {"orders": 0}, app, tmp_path)

    invoices = sorted(record.value for record in kafka.read("invoices"))
    assert invoices == sorted(f"invoice {value}" for _, value in ORDERS)
    assert len(kafka.read("invoices", "read_uncommitted")) > len(invoices)
    assert kafka.groups() == {"quarkus": "EMPTY"}
