"""A service of three topics with FastStream: each order is charged, and shipped once it is paid, at least once.

Offsets are committed after a handler's message has been written, so a record may come again: payments and shipments
have the number of their order, by which their readers notice.
"""

import random

from faststream import AckPolicy, FastStream
from faststream.kafka import KafkaBroker
from pydantic import BaseModel


class Order(BaseModel):
    number: int
    price: float


class Payment(BaseModel):
    number: int
    amount: float


def create_app(servers):
    """Create the application; `await create_app(servers).run()` serves until it is cancelled."""
    broker = KafkaBroker(servers, enable_idempotence=True, acks="all", request_timeout_ms=5_000)
    reads = {
        "group_id": "shop", "auto_offset_reset": "earliest", "ack_policy": AckPolicy.NACK_ON_ERROR,
        "session_timeout_ms": 6_000,
    }  # fmt: skip

    @broker.subscriber("orders", **reads)
    @broker.publisher("payments")
    async def charge(order: Order) -> Payment:
        if random.random() < 0.02:
            raise ConnectionError("the bank is not available")
        return Payment(number=order.number, amount=order.price * 1.5)

    @broker.subscriber("payments", **reads)
    @broker.publisher("shipments")
    async def ship(payment: Payment) -> int:
        return payment.number

    return FastStream(broker)
