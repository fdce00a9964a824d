"""Random steps of consumer groups (KIP-848), with members of the classic protocol among them.

How numbers are chosen: `pieces`.
"""

from typing import Any

from comparison.histories.drawing.pieces import TOPICS, Pieces
from protocol.apis import ApiKey

GROUP, OTHER = "k0", "k1"
CONSUMERS = ("C0", "C1", "C2")
INSTANCES = ("iA", "iB")
REGEXES = ("^t.*", "^t(0|1)", "^t1", "", "[", "^none")
REGEX_SINCE, STATIC_SINCE = 1, 5  # versions of ConsumerGroupHeartbeat (KIP-848) and JoinGroup (KIP-345)
OWNED = (None, None, "all", "all", "none", "more")


class Consumers(Pieces):
    """Draws heartbeats, descriptions, and requests of classic members of the same group."""

    def _group(self) -> str:
        return OTHER if self._rarely(12) else GROUP

    def _consumer(self) -> str:
        return self._chance.choice(CONSUMERS)

    def _subscription(self) -> dict[str, Any]:
        """Draw topics, a regular expression, both or neither."""
        fields: dict[str, Any] = {}
        if not self._rarely(6):
            fields["topics"] = sorted({self._chance.choice(TOPICS[:2]) for _ in range(self._chance.choice((1, 1, 2)))})
            if self._rarely(8):
                fields["topics"] = []
        if self._rarely(4) or not fields:
            fields["regex"] = self._chance.choice(REGEXES)
        if self._rarely(2):
            fields["assignor"] = "none" if self._rarely(12) else self._chance.choice(("range", "uniform"))
        if self._rarely(3):
            fields["rack"] = self._chance.choice(("r1", "r2", ""))
        return fields

    def _beat_step(self, **fields: Any) -> dict[str, Any]:
        low = REGEX_SINCE if "regex" in fields else 0
        return self._step("beat", ApiKey.CONSUMER_GROUP_HEARTBEAT, low, group=self._group(), **fields)

    def _consumer_joins(self) -> dict[str, Any]:
        instance = self._chance.choice(INSTANCES) if self._rarely(3) else None
        return self._beat_step(member=self._consumer(), epoch=0, instance=instance, **self._subscription())

    def _consumer_beats(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"owned": self._chance.choice(OWNED)}
        if self._rarely(12):
            fields["epoch_shift"] = self._chance.choice((-1, 1, 5))
        return self._beat_step(member=self._consumer(), epoch="own", **fields)

    def _consumer_changes(self) -> dict[str, Any]:
        subscription = {key: value for key, value in self._subscription().items() if not self._rarely(3)}
        owned = self._chance.choice(OWNED)
        return self._beat_step(member=self._consumer(), epoch="own", owned=owned, **subscription)

    def _consumer_leaves(self) -> dict[str, Any]:
        instance = self._chance.choice(INSTANCES) if self._rarely(2) else None
        epoch = self._chance.choice((-1, -1, -2))
        return self._beat_step(member=self._consumer(), epoch=epoch, instance=instance)

    def _describe_consumers(self) -> dict[str, Any]:
        groups = [GROUP] if not self._rarely(8) else [GROUP, OTHER, "k9", GROUP]
        return self._step("describe_consumer_group", ApiKey.CONSUMER_GROUP_DESCRIBE, groups=groups)

    # --- members of the classic protocol ------------------------------------------------------------------------------

    def _classic(self) -> dict[str, Any]:
        return {"group": GROUP, "member": self._chance.choice(("m0", "m1"))}

    def _classic_joins(self) -> dict[str, Any]:
        instance = self._chance.choice(INSTANCES) if self._rarely(3) else None
        topics = sorted({self._chance.choice(TOPICS[:2]) for _ in range(2)})
        names = self._chance.choice((("range",), ("range",), ("range", "sticky"), ("sticky", "range"), ("sticky",)))
        protocols = [[name, "", topics] for name in names]
        low = STATIC_SINCE if instance else 0
        return self._step("join", ApiKey.JOIN_GROUP, low, **self._classic(), protocols=protocols, instance=instance)

    def _classic_syncs(self) -> dict[str, Any]:
        return self._step("sync", ApiKey.SYNC_GROUP, **self._classic())

    def _classic_beats(self) -> dict[str, Any]:
        return self._step("heartbeat", ApiKey.HEARTBEAT, **self._classic(), generation_shift=self._shift(8))

    def _classic_leaves(self) -> dict[str, Any]:
        return self._step("leave", ApiKey.LEAVE_GROUP, **self._classic())

    def _describe_classic(self) -> dict[str, Any]:
        return self._step("describe_group", ApiKey.DESCRIBE_GROUPS, group=GROUP)
