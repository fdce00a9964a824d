"""An application as started by compose.yaml: produces ten orders, consumes them, and prints their number."""

import os

from kafka import KafkaConsumer, KafkaProducer

servers = os.environ.get("BOOTSTRAP_SERVERS", "localhost:9092")

producer = KafkaProducer(bootstrap_servers=servers)
for number in range(10):
    producer.send("orders", key=str(number % 3).encode(), value=f"order {number}".encode())
producer.flush()
producer.close()

consumer = KafkaConsumer(
    "orders", bootstrap_servers=servers, group_id="app", auto_offset_reset="earliest", consumer_timeout_ms=10_000
)
seen = set()
for record in consumer:
    seen.add(record.value.decode())
    if len(seen) == 10:
        break
consumer.close()
print(f"read {len(seen)} orders")
