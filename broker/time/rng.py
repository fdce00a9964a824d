"""The seeded generator from which everything random in a cluster comes."""

import random
from uuid import UUID

Random = random.Random


def new_seed() -> int:
    """Return a seed for a cluster that got none; it has 53 bits, so that no JSON parser rounds it."""
    return random.SystemRandom().getrandbits(53)


def unguessable(bits: int) -> int:
    """Return a random number from the operating system: for nonces, which keep a captured login from being replayed."""
    return random.SystemRandom().getrandbits(bits)


def seeded(seed: int | str) -> Random:
    """Return a generator that yields the same numbers for the same seed."""
    return random.Random(seed)


def uuid_from(chance: Random) -> UUID:
    """Return a random UUID (version 4) whose base64 text does not begin with a dash, like Kafka's."""
    while True:
        uuid = UUID(int=chance.getrandbits(128), version=4)
        if uuid.bytes[0] >> 2 != 62:  # base64url writes 62 as "-"
            return uuid
