"""Random steps of transactional producers.

How numbers are chosen: `pieces`.
"""

from typing import Any

from comparison.histories.drawing.pieces import GROUPS, IDS, MEMBERS, Pieces
from protocol.apis import ApiKey


class Transactions(Pieces):
    """Draws steps for transactional ids, partitions, offsets and ends of transactions."""

    def _init_producer(self) -> dict[str, Any]:
        name = None if self._rarely(3) else self._chance.choice(IDS)
        producer = f"p-{name}" if name and not self._rarely(8) else f"q{self._chance.randrange(2)}"
        self._known.producers.setdefault(producer, name)
        timeout_ms = self._chance.choice((0, -1, 900_001, 1)) if self._rarely(20) else None
        if timeout_ms == 1 and name:
            timeout_ms = 60_001
        again = (self._rarely(3) and self._known.producers[producer] == name) or None
        fields = {"transactional_id": name, "again": again, "epoch_shift": self._shift() if again else None}
        low = 3 if again else 0  # with the former id and epoch (KIP-360)
        fields |= {"producer": producer, "timeout_ms": timeout_ms}
        return self._step("init_producer", ApiKey.INIT_PRODUCER_ID, low, **fields)

    def _actor(self) -> dict[str, Any]:
        producer = self._producer(transactional=True) or "stranger"
        name = self._chance.choice((*IDS, "other")) if self._rarely(20) else None
        return {"producer": producer, "transactional_id": name, "epoch_shift": self._shift(16)}

    def _add_partitions(self) -> dict[str, Any]:
        places = [self._place() for _ in range(self._chance.choice((1, 1, 2)))]
        partitions = {place["topic"]: [place["partition"]] for place in places}
        verify = self._rarely(3) or None
        step = self._step("add_partitions", ApiKey.ADD_PARTITIONS_TO_TXN, **self._actor(), partitions=partitions)
        # Brokers verify since version 4 (KIP-890).
        return step if step["v"] <= 3 or not verify else {**step, "verify": True}

    def _add_offsets(self) -> dict[str, Any]:
        return self._step("add_offsets", ApiKey.ADD_OFFSETS_TO_TXN, **self._actor(), group=self._chance.choice(GROUPS))

    def _commit_in_transaction(self) -> dict[str, Any]:
        group = self._chance.choice(GROUPS)
        member = self._chance.choice(MEMBERS[group]) if self._rarely(3) else None
        fields = {"group": group, "offset": self._offset(), "metadata": self._chance.choice(("", "m", None))}
        fields |= {"member": member, "generation_shift": self._shift() if member else None}
        low = 3 if member else 0  # with the member (KIP-447)
        fields |= {**self._actor(), **self._place()}
        return self._step("commit_in_transaction", ApiKey.TXN_OFFSET_COMMIT, low, **fields)

    def _end_transaction(self) -> dict[str, Any]:
        return self._step("end_transaction", ApiKey.END_TXN, **self._actor(), commit=bool(self._chance.randrange(3)))

    def _write_marker(self) -> dict[str, Any]:
        fields = {"commit": False, "coordinator_epoch": self._chance.choice((0, 0, 1, -1))}
        actor = {"producer": self._producer(transactional=True) or "stranger", "epoch_shift": self._shift(6)}
        return self._step("write_marker", ApiKey.WRITE_TXN_MARKERS, **actor, **self._place(), **fields)

    def _describe_transaction(self) -> dict[str, Any]:
        name = self._chance.choice(IDS)
        return self._step("describe_transaction", ApiKey.DESCRIBE_TRANSACTIONS, transactional_id=name)

    def _list_transactions(self) -> dict[str, Any]:
        states = self._chance.choice(([], [], ["Ongoing"], ["Empty", "CompleteCommit"], ["Wondering"]))
        return self._step("list_transactions", ApiKey.LIST_TRANSACTIONS, 2, states=states)
