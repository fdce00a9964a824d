"""Payloads: a thousand different lines of JSON of one size, as applications write them."""

import json
import random

_VALUES = (
    "created",
    "paid",
    "packed",
    "shipped",
    "returned",
    "Amsterdam",
    "Lagos",
    "Quito",
    "Osaka",
    "express",
    "gift",
)


def lines(size: int, count: int = 1000, seed: int = 7) -> list[bytes]:
    """Generate `count` values of exactly `size` bytes; lz4 compresses them to about a third."""
    chance = random.Random(seed)  # noqa: S311 - values, not secrets
    values = []
    for number in range(count):
        order = {"order": chance.randrange(10**9), "n": number, "state": chance.choice(_VALUES)}
        text = json.dumps(order)[:-1]
        while len(text) < size - 1:
            text += f', "{chance.choice(_VALUES)}": "{chance.choice(_VALUES)}-{chance.randrange(10**6)}"'
        values.append(text[: size - 1].encode() + b"}")
    return values
