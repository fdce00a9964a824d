"""Random steps of groups and their members.

How numbers are chosen: `pieces`.
"""

from typing import Any

from comparison.histories.drawing.pieces import GROUPS, MEMBERS, Pieces
from protocol.apis import ApiKey


class Groups(Pieces):
    """Draws steps for members, offsets, and their descriptions."""

    def _who(self) -> dict[str, Any]:
        group = self._chance.choice((*GROUPS, GROUPS[0]))
        return {"group": group, "member": self._chance.choice(MEMBERS[group])}

    def _join(self) -> dict[str, Any]:
        who = self._who()
        protocols = [["range", f"{who['member']} {self._chance.choice(('one', 'two'))}", [self._topic()]]]
        if self._rarely(4):
            protocols.append(["sticky", "three", ["t0"]])
        if self._rarely(25):
            protocols = self._chance.choice(([], [["other", "", []]]))
        session_ms = self._chance.choice((5_999, 1_800_001)) if self._rarely(40) else None
        kind = self._chance.choice(("connect", "")) if self._rarely(30) else None
        instance = f"static-{who['member']}" if self._rarely(12) else None
        low = 5 if instance else 0  # static members (KIP-345)
        fields = {"protocols": protocols, "session_ms": session_ms, "type": kind, "instance": instance}
        return self._step("join", ApiKey.JOIN_GROUP, low, **who, **fields)

    def _sync(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"generation_shift": self._shift()}
        if self._rarely(2):
            fields |= {"type": "consumer", "protocol": "range"}
        # Both names since version 5 (KIP-559).
        return self._step("sync", ApiKey.SYNC_GROUP, 5 if "type" in fields else 0, **self._who(), **fields)

    def _heartbeat(self) -> dict[str, Any]:
        return self._step("heartbeat", ApiKey.HEARTBEAT, **self._who(), generation_shift=self._shift(8))

    def _leave(self) -> dict[str, Any]:
        return self._step("leave", ApiKey.LEAVE_GROUP, **self._who())

    def _commit(self) -> dict[str, Any]:
        who = self._who()
        if self._rarely(2):
            del who["member"]
        metadata = "x" * 5000 if self._rarely(30) else self._chance.choice(("", "m", None))
        fields = {"offset": self._offset(), "metadata": metadata, "generation_shift": self._shift()}
        return self._step("commit", ApiKey.OFFSET_COMMIT, **who, **self._place(), **fields)

    def _fetch_offsets(self) -> dict[str, Any]:
        places = [self._place() for _ in range(2)]
        partitions = None if self._rarely(3) else {place["topic"]: [place["partition"]] for place in places}
        stable = self._rarely(3) or None
        low = 2 if partitions is None else 1  # all partitions since version 2 (KIP-88)
        group = self._chance.choice((*GROUPS, "g9"))
        return self._step("fetch_offsets", ApiKey.OFFSET_FETCH, low, group=group, partitions=partitions, stable=stable)

    def _delete_offset(self) -> dict[str, Any]:
        return self._step("delete_offset", ApiKey.OFFSET_DELETE, group=self._chance.choice(GROUPS), **self._place())

    def _delete_group(self) -> dict[str, Any]:
        return self._step("delete_group", ApiKey.DELETE_GROUPS, group=self._chance.choice(GROUPS))

    def _describe_group(self) -> dict[str, Any]:
        return self._step("describe_group", ApiKey.DESCRIBE_GROUPS, group=self._chance.choice((*GROUPS, "g9")))

    def _find_coordinator(self) -> dict[str, Any]:
        kind = self._chance.choice((0, 1, 7))
        name = self._chance.choice(("g0", "x0", "="))
        return self._step("find_coordinator", ApiKey.FIND_COORDINATOR, 1, type=kind, name=name)
