"""Stream processors and frameworks in Python."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.ecosystem.cluster import Cluster, Read
from tests.ecosystem.programs import printed, python, run, running, until

pytestmark = [pytest.mark.nightly, pytest.mark.interop, pytest.mark.timeout(600)]

ORDERS = [(f"customer {number % 7}", str(number)) for number in range(300)]


def counted() -> dict[str, list[str]]:
    """Key -> the counts and sums that follow from ORDERS, record by record."""
    lines: dict[str, list[str]] = {}
    numbers, sums = Counter[str](), Counter[str]()
    for key, value in ORDERS:
        numbers[key] += 1
        sums[key] += int(value)
        lines.setdefault(key, []).append(f"{numbers[key]} {sums[key]}")
    return lines


def by_key(records: list[Read]) -> dict[str, list[str]]:
    """Key -> its values in the order of the log."""
    values: dict[str, list[str]] = {}
    for record in records:
        values.setdefault(record.key or "", []).append(record.value)
    return values


def test_quix_streams_counts_exactly_once(kafka: Cluster, tmp_path: Path) -> None:
    """It is killed, and goes on without its disk from the changelog; the answer to a commit is lost."""
    kafka.create({"orders": 3, "counts": 3})
    kafka.write("orders", ORDERS)
    run(python("quix", kafka.bootstrap, tmp_path / "first", 110, libraries="quixstreams"), tmp_path, expected=9)
    kafka.lose_answer("EndTxn")
    run(python("quix", kafka.bootstrap, tmp_path / "second", 0, libraries="quixstreams"), tmp_path)

    assert by_key(kafka.read("counts")) == counted()
    assert kafka.lag("quix")["orders"] == 0
    assert kafka.groups()["quix"] == "EMPTY"
    (changelog,) = [name for name in kafka.topics() if name.startswith("changelog__")]
    assert kafka.settings(changelog)["cleanup.policy"] == "compact"


def test_faust_counts_in_a_table_exactly_once(kafka: Cluster, tmp_path: Path) -> None:
    """It is killed, and goes on from its changelog; the answer to a commit is lost.

    What an agent sends by itself is outside of Faust's transactions, on Kafka too: it may be there twice.
    """
    kafka.create({"orders": 3, "counts": 3})
    kafka.write("orders", ORDERS)
    arguments = (kafka.bootstrap, tmp_path / "data")
    run(python("faust_table", *arguments, 110, libraries="faust"), tmp_path, expected=9)
    kafka.lose_answer("EndTxn")
    with running(python("faust_table", *arguments, 0, libraries="faust"), tmp_path) as faust:
        until(lambda: kafka.lag("faust").get("orders") == 0, faust, tmp_path)

    changelog = "faust-by_customer-changelog"
    table = [
        replace(each, key=json.loads(each.key or ""), value=json.loads(each.value)) for each in kafka.read(changelog)
    ]
    assert by_key(table) == counted()
    sent = by_key(kafka.read("counts"))
    assert {key: sorted(set(values), key=values.index) for key, values in sent.items()} == counted()
    assert kafka.settings(changelog)["cleanup.policy"] == "compact"


def test_faststream_acknowledges_what_was_handled(kafka: Cluster, tmp_path: Path) -> None:
    """A record whose handler failed comes again; each has its invoice, and is committed."""
    kafka.create({"orders": 3, "invoices": 3})
    orders = [(None, json.dumps({"number": number, "price": number})) for number in range(100)]
    kafka.write("orders", orders)
    tries = printed(python("faststream_app", kafka.bootstrap, 100, libraries="faststream"), tmp_path)

    assert tries == {str(number): 2 if number == 42 else 1 for number in range(100)}
    invoices = [json.loads(record.value) for record in kafka.read("invoices")]
    assert sorted(invoices, key=lambda each: each["number"]) == [
        {"number": number, "gross": number * 1.5} for number in range(100)
    ]
    assert kafka.lag("faststream") == {"orders": 0}
    assert kafka.groups() == {"faststream": "EMPTY"}


def test_bytewax_resumes_from_its_recovery_store(kafka: Cluster, tmp_path: Path) -> None:
    """It keeps offsets and counts there and joins no group; what it wrote goes on where it ended."""
    kafka.create({"orders": 3, "counts": 3})
    flow = python("bytewax_flow", kafka.bootstrap, tmp_path / "recovery", libraries="bytewax")
    kafka.write("orders", ORDERS[:150])
    run(flow, tmp_path)
    assert len(kafka.read("counts")) == 150
    kafka.write("orders", ORDERS[150:])
    run(flow, tmp_path)

    assert by_key(kafka.read("counts")) == counted()
    assert kafka.groups() == {}
