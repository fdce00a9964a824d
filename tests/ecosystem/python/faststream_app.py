"""FastStream: takes orders and publishes invoices; one order's handler fails at first, and the order comes again.

faststream_app.py BOOTSTRAP COUNT: ends after that many invoices; prints how often each order was tried.
"""

import asyncio
import json
import sys
from collections import Counter

from faststream import AckPolicy, FastStream
from faststream.confluent import KafkaBroker
from pydantic import BaseModel

bootstrap, wanted = sys.argv[1], int(sys.argv[2])
broker = KafkaBroker(bootstrap, enable_idempotence=True, acks="all")
app = FastStream(broker)
tries = Counter[int]()
numbers: set[int] = set()


class Order(BaseModel):
    """What is ordered."""

    number: int
    price: float


class Invoice(BaseModel):
    """What it costs."""

    number: int
    gross: float


@broker.subscriber("orders", group_id="faststream", auto_offset_reset="earliest", ack_policy=AckPolicy.NACK_ON_ERROR)
@broker.publisher("invoices")
async def invoice(order: Order) -> Invoice:
    """Fail once for order 42; a refused record is fetched again from its offset."""
    tries[order.number] += 1
    if order.number == 42 and tries[42] == 1:
        raise ValueError("not yet")
    numbers.add(order.number)
    if len(numbers) == wanted:
        app.exit()
    return Invoice(number=order.number, gross=order.price * 1.5)


asyncio.run(app.run())
print(json.dumps(tries))  # noqa: T201
