"""Random steps of streams groups (KIP-1071): heartbeats, task reports, offsets, and other kinds of members.

How numbers are chosen: `pieces`.
"""

from collections.abc import Sequence
from typing import Any

from comparison.histories.drawing.pieces import TOPICS, Pieces
from comparison.histories.drawing.topologies import ODD, SOUND
from protocol.apis import ApiKey

GROUP, OTHER = "s0", "s1"
MEMBERS = ("T0", "T1", "T2", "T3")
FURTHER_MEMBERS = tuple(f"T{n}" for n in range(4, 14))
"""Members of a large group: enough to make Kafka's hash tables grow."""
PROCESSES = ("p0", "p1", "p2")
INSTANCES = ("iA", "iB")
INT_MAX = 2**31 - 1
OWNED = ("all", "all", "all", "all", "none", "fewer", None)
ODD_OWNED: tuple[dict[str, list[list[Any]]], ...] = (
    {"active": [["0", [0]]]},
    {"active": [["9", [0]]], "standby": [], "warmup": []},
    {"active": [["0", [7]]], "standby": [], "warmup": []},
    {"active": [["0", [-1]]], "standby": [], "warmup": []},
    {"active": [["0", [0]], ["0", [1]]], "standby": [], "warmup": []},
    {"active": [], "standby": [["0", [0]]], "warmup": []},
    {"active": [], "standby": [], "warmup": [["0", [0]]]},
    {"active": [["0", [0, 1, 2]]], "standby": [["1", [0]]], "warmup": []},
)
ENDPOINTS = (["h1", 1000], ["h2", 65535], ["", 0])
TAGS: tuple[Any, ...] = ({"zone": "a", "rack": "1"}, {"zone": "b"}, {}, [["zone", "a"], ["zone", "b"]], [["", ""]])
SETTINGS: dict[str, tuple[str | None, ...]] = {
    "streams.num.standby.replicas": ("1", "1", "2", "0", "3", None),
    "streams.rack.aware.assignment.tags": ("zone", "zone,rack", "", None),
    "streams.heartbeat.interval.ms": ("5000", "6000", "1", None),
    "streams.session.timeout.ms": ("45000", "60000", "1"),
    "streams.no.such": ("1",),
}
COMMIT_OF_MEMBERS, FETCH_OF_MEMBERS = 9, 9  # versions of OffsetCommit and OffsetFetch with member epochs (KIP-848)


class Streams(Pieces):
    """Draws steps of members and of administrators of streams groups."""

    _sound = SOUND[0]
    """The topology of the history's members."""
    _members: Sequence[str] = MEMBERS

    def _streams_group(self) -> str:
        return OTHER if self._rarely(12) else GROUP

    def _streamer(self) -> dict[str, Any]:
        member = self._chance.choice(self._members)
        if self._rarely(60):
            member = self._chance.choice(("", " ", "stranger"))
        group = "" if self._rarely(150) else self._streams_group()
        return {"group": group, "member": member}

    # --- membership --------------------------------------------------------------------------------------------------

    def _streams_beat(self, **fields: Any) -> dict[str, Any]:
        step = self._step("streams_beat", ApiKey.STREAMS_GROUP_HEARTBEAT, **self._streamer(), **fields)
        if "owned" in step and step["owned"] is None:
            del step["owned"]
        return step

    def _of_the_instance(self) -> dict[str, Any]:
        """Draw what a member reports of its process, mostly when it joins."""
        fields: dict[str, Any] = {}
        if self._rarely(4):
            fields["endpoint"] = self._chance.choice(ENDPOINTS)
        if self._rarely(5):
            fields["tags"] = self._chance.choice(TAGS)
        if self._rarely(8):
            fields["rack"] = self._chance.choice(("r1", "r2", ""))
        if self._rarely(5):
            fields["offsets"] = self._task_offsets()
        if self._rarely(8):
            fields["end_offsets"] = self._task_offsets()
        return fields

    def _task_offsets(self) -> list[list[Any]]:
        return [
            [
                self._chance.choice(("0", "0", "1", "9")),
                self._chance.randrange(3),
                self._chance.choice((0, 5, 1000, -1)),
            ]
            for _ in range(self._chance.randint(0, 3))
        ]

    def _streams_joins(self) -> dict[str, Any]:
        fields = {"topology": self._sound, "process": self._chance.choice(PROCESSES), **self._of_the_instance()}
        if self._rarely(3):
            fields["instance"] = self._chance.choice(INSTANCES)
        if self._rarely(8):
            fields["topology"] = self._chance.choice((*SOUND, *ODD, *ODD))
        if self._rarely(30):
            fields["topology"] = None
        if self._rarely(30):
            fields["timeout_ms"] = self._chance.choice((-1, 0, INT_MAX))
        owned = self._chance.choice((None, "all", *ODD_OWNED)) if self._rarely(15) else "none"
        return self._streams_beat(epoch=0, owned=owned, **fields)

    def _streams_beats(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"owned": self._chance.choice(OWNED)}
        if self._rarely(12):
            fields["owned"] = self._chance.choice(ODD_OWNED)
        if self._rarely(8):
            fields["epoch_shift"] = self._chance.choice((-1, -1, 1, 5))
        if self._rarely(6):
            fields |= self._of_the_instance()
        if self._rarely(12):
            fields["process"] = self._chance.choice(PROCESSES)
        if self._rarely(8):
            fields["instance"] = self._chance.choice((*INSTANCES, "iC", ""))
        if self._rarely(20):
            fields["endpoints"] = self._chance.choice((0, 1, 7, -1))
        if self._rarely(40):
            fields["topology"] = self._sound
        if self._rarely(40):
            fields["shutdown"] = True
        epoch = "own" if not self._rarely(25) else self._chance.choice((-3, INT_MAX, 1))
        return self._streams_beat(epoch=epoch, **fields)

    def _streams_leaves(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"epoch": self._chance.choice((-1, -1, -2))}
        if self._rarely(2):
            fields["instance"] = self._chance.choice(INSTANCES)
        if self._rarely(10):
            fields["shutdown"] = True
        return self._streams_beat(**fields)

    def _describe_streams(self) -> dict[str, Any]:
        groups = [GROUP] if not self._rarely(6) else [GROUP, OTHER, "s9", GROUP, "", "g0"]
        fields = {"operations": self._rarely(3) or None, "description": self._rarely(4) or None}
        return self._step("describe_streams_group", ApiKey.STREAMS_GROUP_DESCRIBE, groups=groups, **fields)

    def _describe_topology(self) -> dict[str, Any]:
        key = ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE
        if key not in self._versions:  # before 4.4
            return self._describe_streams()
        return self._step("describe_topology", key, group=self._streams_group())

    # --- offsets -----------------------------------------------------------------------------------------------------

    def _own_epoch(self) -> dict[str, Any]:
        """Draw the epoch of an offset request: mostly the member's."""
        if self._rarely(10):
            return {"epoch": self._chance.choice((-1, 0, INT_MAX))}
        return {"epoch": "own", "epoch_shift": self._chance.choice((-1, -1, -2, 1)) if self._rarely(3) else None}

    def _streams_commits(self) -> dict[str, Any]:
        low = 0 if self._rarely(12) else COMMIT_OF_MEMBERS
        fields = {**self._streamer(), **self._own_epoch(), **self._place(), "offset": self._offset()}
        if self._rarely(6):
            fields["topic"], fields["partition"] = self._chance.choice(("r0", "c0", "r1")), self._chance.randrange(2)
        fields["group"] = fields["group"] or GROUP
        if self._rarely(12) and low == COMMIT_OF_MEMBERS:
            fields["instance"] = self._chance.choice(INSTANCES)
        return self._step("streams_commit", ApiKey.OFFSET_COMMIT, low, **fields)

    def _streams_fetches(self) -> dict[str, Any]:
        fields = {**self._streamer(), **self._own_epoch(), "stable": self._rarely(3) or None}
        fields["group"] = fields["group"] or GROUP
        return self._step("streams_fetch_offsets", ApiKey.OFFSET_FETCH, FETCH_OF_MEMBERS, **fields)

    def _streams_offset_deleted(self) -> dict[str, Any]:
        fields = {"group": self._streams_group(), **self._place()}
        return self._step("delete_offset", ApiKey.OFFSET_DELETE, **fields)

    # --- administration, and members of other kinds -------------------------------------------------------------------

    def _streams_config(self) -> dict[str, Any]:
        name = self._chance.choice(("streams.num.standby.replicas", *sorted(SETTINGS)))
        step = self._step("group_config", ApiKey.INCREMENTAL_ALTER_CONFIGS, group=self._streams_group(), name=name)
        return {**step, "value": self._chance.choice(SETTINGS[name])}

    def _delete_streams_group(self) -> dict[str, Any]:
        return self._step("delete_group", ApiKey.DELETE_GROUPS, group=self._streams_group())

    def _streams_group_described(self) -> dict[str, Any]:
        """Describe the group as one of another type."""
        if self._rarely(2):
            return self._step("describe_consumer_group", ApiKey.CONSUMER_GROUP_DESCRIBE, groups=[GROUP, OTHER])
        return self._step("describe_group", ApiKey.DESCRIBE_GROUPS, group=self._streams_group())

    def _other_kind(self) -> dict[str, Any]:
        """Draw a heartbeat of another group type's member, or a request of a classic member."""
        group = self._streams_group()
        if self._rarely(2):
            fields = {"group": group, "member": "C0", "epoch": self._chance.choice((0, "own", -1)), "topics": ["t0"]}
            return self._step("beat", ApiKey.CONSUMER_GROUP_HEARTBEAT, **fields)
        return self._step("heartbeat", ApiKey.HEARTBEAT, group=group, member=self._chance.choice(("m0", "m1")))

    def _streams_topic(self) -> dict[str, Any]:
        """Delete a topic of the group, perhaps an internal one."""
        topic = self._chance.choice((*TOPICS[:2], "r0", "c0", "c1"))
        self._known.topics.pop(topic, None)
        return self._step("delete_topic", ApiKey.DELETE_TOPICS, topic=topic)
