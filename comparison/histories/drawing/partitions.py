"""Random steps at the partitions.

How numbers are chosen: `pieces`.
"""

from typing import Any

from comparison.histories.drawing.pieces import TEXTS, Pieces
from protocol.apis import ApiKey


class Partitions(Pieces):
    """Draws steps for produce, fetch, offsets and producers."""

    def _records(self) -> list[list[Any]]:
        records = []
        for _ in range(self._chance.choice((1, 1, 1, 2, 3, 5, 9))):
            headers = [["h", "1"]] if self._rarely(6) else []
            key, value = self._chance.choice(TEXTS), self._chance.choice(TEXTS)
            records.append([key, value, self._chance.randrange(0, 50), *headers])
        return records

    def _produce(self) -> dict[str, Any]:
        transactional = bool(self._chance.randrange(2)) and any(self._known.producers.values())
        producer = self._producer(transactional=transactional) if transactional or not self._rarely(2) else None
        transactional = transactional and producer is not None
        fields: dict[str, Any] = {
            "records": self._records(),
            "codec": self._chance.choice((0, 0, 0, 1, 2, 3, 4)) or None,
        }
        if producer:
            fields |= {"producer": producer, "sequence_shift": self._shift(10), "epoch_shift": self._shift(25)}
        elif self._rarely(5):
            place = self._place()
            fields["also"] = [[place["topic"], place["partition"]]]
        if self._rarely(60):
            fields["spoil"] = [self._chance.randrange(16, 200), 1 << self._chance.randrange(8)]
        acks = -1 if producer else self._chance.choice((-1, -1, 1, 1, 0))
        if self._rarely(40):
            acks = self._chance.choice((0, 1, 2))
        fields |= {"transactional": transactional or None, "acks": acks}
        step = self._step("produce", ApiKey.PRODUCE, **self._place(), **fields)
        if step.get("codec") == 4:  # zstd needs Produce v7 (KIP-110); lower versions test the error
            step["v"] = max(step["v"], 3 if self._rarely(5) else 7)
        return step

    def _fetch(self) -> dict[str, Any]:
        isolation = self._chance.randrange(2)
        max_bytes = self._chance.choice((1, 100, 300)) if self._rarely(4) else None
        epoch = self._chance.choice((0, 1, 5)) if self._rarely(5) else None
        offset = self._offset()
        return self._step(
            "fetch", ApiKey.FETCH, **self._place(), offset=offset, isolation=isolation, max_bytes=max_bytes, epoch=epoch
        )

    def _fetch_session(self) -> dict[str, Any]:
        places = [self._place() for _ in range(self._chance.choice((0, 1, 1, 2)))]
        partitions = {place["topic"]: [[place["partition"], self._chance.randrange(6)]] for place in places}
        place = self._place()
        fields: dict[str, Any] = {"session": self._chance.choice(("s0", "s1")), "partitions": partitions}
        fields |= {"begin": self._rarely(3) or None, "epoch_shift": self._shift(15)}
        if self._rarely(4):
            fields["forget"] = {place["topic"]: [place["partition"]]}
        return self._step("fetch_session", ApiKey.FETCH, 7, **fields)  # the first version with sessions (KIP-227)

    def _list_offsets(self) -> dict[str, Any]:
        at = self._chance.choice((-1, -2, -3, -1, -2, -3, 0, 10, 25, 49, 5000, -4, -5, -6))
        epoch = self._chance.choice((0, 1, 5)) if self._rarely(6) else None
        isolation = self._chance.randrange(2)
        return self._step("list_offsets", ApiKey.LIST_OFFSETS, **self._place(), at=at, isolation=isolation, epoch=epoch)

    def _epoch_end(self) -> dict[str, Any]:
        epochs = (0, 0, 1, 7, -1)
        fields = {"epoch": self._chance.choice((-1, -1, 0, 3)), "leader_epoch": self._chance.choice(epochs)}
        return self._step("epoch_end", ApiKey.OFFSET_FOR_LEADER_EPOCH, **self._place(), **fields)

    def _describe_producers(self) -> dict[str, Any]:
        return self._step("describe_producers", ApiKey.DESCRIBE_PRODUCERS, **self._place())
