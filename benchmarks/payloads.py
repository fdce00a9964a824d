"""What is sent: lines of JSON as applications write them, all of one size, a thousand different ones."""

import json
import random

_WORDS = ("created", "paid", "packed", "shipped", "returned", "Amsterdam", "Lagos", "Quito", "Osaka", "express", "gift")


def lines(size: int, count: int = 1000, seed: int = 7) -> list[bytes]:
    """So many values of exactly that many bytes; lz4 makes about a third of them."""
    chance = random.Random(seed)  # noqa: S311 - values, not secrets
    made = []
    for number in range(count):
        order = {"order": chance.randrange(10**9), "n": number, "state": chance.choice(_WORDS)}
        text = json.dumps(order)[:-1]
        while len(text) < size - 1:
            text += f', "{chance.choice(_WORDS)}": "{chance.choice(_WORDS)}-{chance.randrange(10**6)}"'
        made.append(text[: size - 1].encode() + b"}")
    return made
