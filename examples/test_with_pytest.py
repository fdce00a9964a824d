"""The fixture `kafka`, with librdkafka's Python client. Needs understudy-kafka[pytest] and confluent-kafka."""

import pytest
from confluent_kafka import Consumer, Producer

import understudy


@pytest.mark.kafka(brokers=3, topics={"orders": 3})
def test_what_was_sent_is_read(kafka: understudy.Cluster) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce("orders", key="k", value="one order")
    assert producer.flush(10) == 0

    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    record = consumer.poll(10)
    consumer.close()
    assert record is not None
    assert record.value() == b"one order"
