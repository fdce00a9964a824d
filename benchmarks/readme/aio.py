"""Client of `benchmarks.readme`: aiokafka."""

import asyncio
import sys
import time

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer


async def read_back(bootstrap: str, topic: str, group: str) -> None:
    """Produce one record to a new topic, and read it with a new group."""
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        await producer.send_and_wait(topic, b"one order")
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest")
    async with consumer:
        assert (await asyncio.wait_for(consumer.getone(), 20)).value == b"one order"


def main() -> None:
    """Run a test for each line of the standard input."""
    for line in sys.stdin:
        begun = time.perf_counter()
        asyncio.run(read_back(*line.split()))
        print((time.perf_counter() - begun) * 1e3, flush=True)


if __name__ == "__main__":
    main()
