"""The fixture `kafka` in asynchronous tests, with aiokafka and pytest-asyncio."""

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

import understudy

pytestmark = [pytest.mark.asyncio, pytest.mark.kafka(topics=["payments:2"])]


async def test_a_group_reads_what_was_sent(kafka: understudy.Cluster) -> None:
    servers = kafka.bootstrap_servers
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        for number in range(10):
            await producer.send_and_wait("payments", f"payment {number}".encode())

    async with AIOKafkaConsumer(
        "payments", bootstrap_servers=servers, group_id="g", auto_offset_reset="earliest"
    ) as consumer:
        read = [(await consumer.getone()).value for _ in range(10)]
    assert sorted(read) == sorted(f"payment {number}".encode() for number in range(10))
