"""Random steps of share groups (KIP-932): heartbeats, fetches, acknowledgements of all kinds, offsets.

How numbers are chosen: `pieces`.
"""

from typing import Any

from comparison.histories.drawing.pieces import CONNECTIONS, TOPICS, Pieces
from protocol.apis import ApiKey

GROUP, OTHER = "h0", "h1"
SHARERS = ("S0", "S1", "S2", "S3")
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)  # AcknowledgeType
INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1  # of an int32 and an int64
TYPES: tuple[list[int], ...] = (
    [ACCEPT], [ACCEPT], [ACCEPT], [RELEASE], [RELEASE], [REJECT], [GAP],
    [ACCEPT, RELEASE], [RELEASE, REJECT, ACCEPT], [ACCEPT, GAP], [RENEW], [RENEW, ACCEPT],
    [5], [-1], [],
)  # fmt: skip
SETTINGS: dict[str, tuple[str | None, ...]] = {
    "share.auto.offset.reset": ("earliest", "latest", "by_duration:PT2H", "never"),
    "share.isolation.level": ("read_committed", "read_uncommitted", None),
    "share.delivery.count.limit": ("2", "3", "5", None, "1"),
    "share.partition.max.record.locks": ("100", "2000", "99"),
    "share.record.lock.duration.ms": ("30000", "60000", "1"),
    "share.renew.acknowledge.enable": ("false", "true", None),
    "share.session.timeout.ms": ("45000", "60000", "1", None),
    "share.heartbeat.interval.ms": ("5000", "15000", "0", None),
    "consumer.session.timeout.ms": ("45000", None),
    "share.no.such.setting": ("1",),
}
QUEUE = "d0"
QUEUES = (QUEUE, QUEUE, QUEUE, QUEUE, "t2", "=outside-the-prefix", "=__internal", "=", None)
ACQUIRE_MODE_SINCE = RENEW_SINCE = 2
USERS = ("alice", "bob")
TOPIC_RESOURCE, GROUP_RESOURCE, LITERAL, PREFIXED, DENY, ALLOW = 2, 3, 3, 4, 2, 3
"""Of ACLs (`protocol.acls`), below too."""
ALL, READ, DELETE, ALTER, DESCRIBE, CONFIGS = 2, 3, 6, 7, 8, (10, 11)


class Shares(Pieces):
    """Draws steps of members and of administrators of share groups."""

    def _share_group(self) -> str:
        return OTHER if self._rarely(12) else GROUP

    def _sharer(self) -> dict[str, Any]:
        member = self._chance.choice(SHARERS)
        if self._rarely(60):
            member = self._chance.choice(("", "x" * 37, "stranger"))
        return {"group": self._share_group(), "member": member}

    # --- membership --------------------------------------------------------------------------------------------------

    def _share_beat(self, **fields: Any) -> dict[str, Any]:
        return self._step("share_beat", ApiKey.SHARE_GROUP_HEARTBEAT, **self._sharer(), **fields)

    def _share_joins(self) -> dict[str, Any]:
        topics = [self._chance.choice(TOPICS[:2])]
        if self._rarely(6):  # the assignment of several topics' partitions depends on the topics' ids
            topics = list(TOPICS[:2])
        if self._rarely(15):
            topics = self._chance.choice(([], ["t9"], ["t0", "t0"]))
        rack = self._chance.choice((None, None, "r1", ""))
        return self._share_beat(epoch=0, topics=None if self._rarely(25) else topics, rack=rack)

    def _share_beats(self) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        if self._rarely(8):
            fields["epoch_shift"] = self._chance.choice((-1, 1, 5))
        if self._rarely(4):
            fields["topics"] = [self._chance.choice(TOPICS[:2])]
        epoch = "own" if not self._rarely(25) else self._chance.choice((-2, -3, INT_MAX))
        return self._share_beat(epoch=epoch, **fields)

    def _share_leaves(self) -> dict[str, Any]:
        return self._share_beat(epoch=-1)

    def _describe_shares(self) -> dict[str, Any]:
        groups = [GROUP] if not self._rarely(5) else [GROUP, OTHER, "h9", GROUP, ""]
        operations = self._rarely(3) or None
        return self._step("describe_share_group", ApiKey.SHARE_GROUP_DESCRIBE, groups=groups, operations=operations)

    # --- records -----------------------------------------------------------------------------------------------------

    def _share_places(self, most: int = 2) -> list[list[Any]]:
        places = [self._place() for _ in range(self._chance.randint(1, most))]
        return [[place["topic"], place["partition"]] for place in places]

    def _acks(self, version: int) -> tuple[list[list[Any]], bool]:
        """Draw acknowledgements, ``[topic, partition, part, types]``, and whether some renew locks."""
        acks: list[list[Any]] = []
        renews = False
        for topic, partition in self._share_places():
            types = self._chance.choice(TYPES)
            if RENEW in types and version < RENEW_SINCE and not self._rarely(5):
                types = [ACCEPT]
            renews = renews or RENEW in types
            part: Any = self._chance.choice(("all", "all", "all", "each", "each", "first", "last"))
            if self._rarely(6):
                first = self._chance.choice((0, 1, 2, 3, 7, 30, -1, LONG_MAX))
                part = [first, self._chance.choice((first, first, first + 1, first + 2, 0)) if first != LONG_MAX else 0]
            acks.append([topic, partition, part, types])
        return acks, renews != self._rarely(12)

    def _session(self) -> dict[str, Any]:
        """Draw the session's epoch: mostly the next one."""
        if self._rarely(10):
            return {"epoch": self._chance.choice((0, 0, -1, -1, 5, INT_MAX, -2))}
        return {"epoch": "own", "epoch_shift": self._chance.choice((-1, 1)) if self._rarely(20) else None}

    def _share_fetch(self) -> dict[str, Any]:
        fields: dict[str, Any] = {**self._sharer(), **self._session(), "topics": self._share_places(3)}
        if self._rarely(8):
            fields["topics"] = []
        if self._rarely(8):
            fields["forget"] = self._share_places()
        fields["max_records"] = self._chance.choice((500, 500, 500, 1, 2, 3, 5, 0))
        fields["batch_size"] = self._chance.choice((500, 500, 1, 2, 3))
        if self._rarely(6):
            fields["max_bytes"] = self._chance.choice((1, 100, 300, 0))
        step = self._step("share_fetch", ApiKey.SHARE_FETCH, **fields)
        if step["v"] >= ACQUIRE_MODE_SINCE and self._rarely(3):
            step["mode"] = self._chance.choice((1, 1, 1, 0, 2))
        if self._rarely(3):
            step["acks"], step["renews"] = self._acks(step["v"])
        return step

    def _share_ack(self) -> dict[str, Any]:
        step = self._step("share_ack", ApiKey.SHARE_ACKNOWLEDGE, **self._sharer(), **self._session())
        step["acks"], step["renews"] = self._acks(step["v"])
        return step

    def _locks_end(self) -> dict[str, Any]:
        """Draw a fetch of records whose locks expire before the next step."""
        step = self._step(
            "share_fetch", ApiKey.SHARE_FETCH, **self._sharer(), epoch="own", topics=self._share_places(2)
        )
        step |= {"group": GROUP, "max_records": 500, "batch_size": 500, "locks_end": True}
        return step

    # --- administration ----------------------------------------------------------------------------------------------

    def _share_config(self, name: str | None = None) -> dict[str, Any]:
        chosen = name or self._chance.choice(sorted(SETTINGS))
        values = SETTINGS[chosen]
        value = values[0] if name else self._chance.choice(values)
        group = GROUP if name else self._share_group()
        step = self._step("group_config", ApiKey.INCREMENTAL_ALTER_CONFIGS, group=group, name=chosen)
        return {**step, "value": value}

    def _share_offsets(self) -> dict[str, Any]:
        places = None if self._rarely(2) else self._share_places(3)
        if places is not None:  # for others, Kafka retries at its share coordinator for 15 s
            places = [place for place in places if place[1] < self._known.topics.get(place[0], 1)]
        return self._step(
            "share_offsets", ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, group=self._share_group(), places=places
        )

    def _alter_share_offsets(self) -> dict[str, Any]:
        odd = (0, 0, 1, 2, 3, 8, 1000, -1, LONG_MAX)
        places = [[topic, partition, self._chance.choice(odd)] for topic, partition in self._share_places(3)]
        fields = {"group": self._share_group(), "places": places}
        return self._step("alter_share_offsets", ApiKey.ALTER_SHARE_GROUP_OFFSETS, **fields)

    def _delete_share_offsets(self) -> dict[str, Any]:
        topics = sorted({topic for topic, _ in self._share_places()})
        fields = {"group": self._share_group(), "topics": topics}
        return self._step("delete_share_offsets", ApiKey.DELETE_SHARE_GROUP_OFFSETS, **fields)

    def _delete_share_group(self) -> dict[str, Any]:
        return self._step("delete_share_group", ApiKey.DELETE_GROUPS, group=self._share_group())

    def _other_kind(self) -> dict[str, Any]:
        """Draw a request of another group type's member for the share group, or for a group of that name."""
        group = self._share_group() if not self._rarely(4) else "h8"
        if self._rarely(2):
            fields = {"group": group, "member": "C0", "epoch": self._chance.choice((0, "own", -1)), "topics": ["t0"]}
            return self._step("beat", ApiKey.CONSUMER_GROUP_HEARTBEAT, **fields)
        return self._step("heartbeat", ApiKey.HEARTBEAT, group=group, member=self._chance.choice(("m0", "m1")))

    # --- ends --------------------------------------------------------------------------------------------------------

    def _queue_named(self, queue: str | None = None) -> dict[str, Any]:
        """Draw a dead-letter queue of the group: mostly one that may exist."""
        name, value = "errors.deadletterqueue.topic.name", queue or self._chance.choice(QUEUES)
        if queue is None and self._rarely(3):
            name, value = "errors.deadletterqueue.copy.record.enable", self._chance.choice(("=true", "=true", "=false"))
        step = self._step("group_config", ApiKey.INCREMENTAL_ALTER_CONFIGS, group=GROUP, name=name)
        return {**step, "value": None} if value is None else {**step, "queue": value}

    def _queue_created(self) -> dict[str, Any]:
        allowed = "errors.deadletterqueue.group.enable"
        configs = (
            {} if self._rarely(4) else {allowed: "true", "max.message.bytes": self._chance.choice(("100000", "400"))}
        )
        fields = {"topic": QUEUE, "partitions": self._chance.choice((1, 1, 2)), "configs": configs}
        return self._step("create_topic", ApiKey.CREATE_TOPICS, **fields)

    def _queue_deleted(self) -> dict[str, Any]:
        return self._step("delete_topic", ApiKey.DELETE_TOPICS, topic=QUEUE)

    def _share_reject(self) -> dict[str, Any]:
        """Draw a rejection of some or all of a member's acquired records."""
        step = self._step("share_ack", ApiKey.SHARE_ACKNOWLEDGE, **self._sharer(), epoch="own")
        part, types = self._chance.choice((("all", [REJECT]), ("first", [REJECT]), ("each", [REJECT, ACCEPT, RELEASE])))
        return {**step, "acks": [[topic, partition, part, types] for topic, partition in self._share_places()]}

    def _disconnect(self) -> dict[str, Any]:
        return {"do": "disconnect", "c": self._chance.choice(CONNECTIONS)}

    def _member_ends(self) -> dict[str, Any]:
        return {**self._share_beat(epoch="own"), "do": "share_member_ends"}

    # --- ACLs --------------------------------------------------------------------------------------------------------

    def _allow_shares(self, permission: int | None = None) -> dict[str, Any]:
        """Draw an ACL on the group or on a topic."""
        on_group = self._rarely(2)
        name = self._share_group() if on_group else self._chance.choice(TOPICS)
        kind, pattern = (GROUP_RESOURCE, LITERAL) if on_group else (TOPIC_RESOURCE, LITERAL)
        if self._rarely(5):
            name, pattern = name[:1], PREFIXED
        operation = self._chance.choice((ALL, READ, READ, READ, DESCRIBE, DESCRIBE, ALTER, DELETE, *CONFIGS))
        permission = permission or (DENY if self._rarely(4) else ALLOW)
        acl = [kind, name, pattern, f"User:{self._chance.choice(USERS)}", "*", operation, permission]
        return {**self._step("create_acls", ApiKey.CREATE_ACLS, acls=[acl]), "c": "0"}

    def _by_someone(self, step: dict[str, Any]) -> dict[str, Any]:
        """Let a step be sent mostly by a user who needs ACLs, else by one who may do everything."""
        of_shares = "share" in step["do"] or step["do"] in ("group_config", "list_groups")
        if not of_shares or step.get("locks_end") or self._rarely(3):
            return step
        return {**step, "c": f"as:{self._chance.choice(USERS)}"}
