"""A limit on the size of one response, for requests that list the same items a hundred thousand times."""

from protocol.errors import ErrorCode, KafkaError

MOST_PARTS = 250_000
"""The maximum of configs, members, producers or offsets in one response. Kafka has no limit, and runs out of memory.

Ours, as each is an object in memory.
"""


class Allowance:
    """The number of parts that a response may still have."""

    __slots__ = ("left",)

    def __init__(self, parts: int = MOST_PARTS) -> None:
        self.left = parts

    def take(self, parts: int) -> None:
        """Note that this many more parts are in the response.

        Raises:
            KafkaError: INVALID_REQUEST for the whole request, once the limit is exceeded.
        """
        self.left -= parts
        if self.left < 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"The answer would have more than {MOST_PARTS} parts.")
