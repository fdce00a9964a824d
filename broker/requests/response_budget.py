"""A bound on what one request brings about: a question that is asked a hundred thousand times over is none."""

from protocol.errors import ErrorCode, KafkaError

MOST_PARTS = 250_000
"""Settings, members, producers, offsets in one answer. Kafka has no such bound, and runs out of memory."""


class Allowance:
    """The number of parts that a response may still have."""

    __slots__ = ("left",)

    def __init__(self, parts: int = MOST_PARTS) -> None:
        self.left = parts

    def take(self, parts: int) -> None:
        """Note that so many more parts are in the response.

        Raises:
            KafkaError: INVALID_REQUEST for the whole request, once it is too much.
        """
        self.left -= parts
        if self.left < 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"The answer would have more than {MOST_PARTS} parts.")
