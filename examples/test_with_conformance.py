"""A producer keeps the rules of the protocol, also when a response is lost."""

import pytest
from confluent_kafka import Producer

import understudy


@pytest.mark.kafka(topics={"orders": 1})
def test_a_lost_response_breaks_no_rule(kafka: understudy.Cluster) -> None:
    kafka.faults.add(api="Produce", apply_then=understudy.Disconnect("reset"))
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    for number in range(5):
        producer.produce("orders", f"order {number}")
        assert producer.flush(20) == 0

    report = kafka.conformance()
    assert not report.errors, str(report)
    assert "i03-sequence" in report.kept  # it had an occasion to be broken, and was not
