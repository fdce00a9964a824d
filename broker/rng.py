"""Chance: the one seeded generator that everything random in a cluster comes from."""

import random
from uuid import UUID

Random = random.Random


def new_seed() -> int:
    """A seed for a cluster that was given none; as JSON it is a number that no parser rounds."""
    return random.SystemRandom().getrandbits(53)


def unguessable(bits: int) -> int:
    """An unpredictable number, from the system: for what keeps a captured login from being replayed."""
    return random.SystemRandom().getrandbits(bits)


def seeded(seed: int | str) -> Random:
    """A generator that repeats itself for the same seed."""
    return random.Random(seed)


def uuid_from(chance: Random) -> UUID:
    """A random UUID (version 4) whose text does not begin with a dash, as Kafka picks them."""
    while True:
        found = UUID(int=chance.getrandbits(128), version=4)
        if found.bytes[0] >> 2 != 62:  # base64url writes 62 as "-"
            return found
