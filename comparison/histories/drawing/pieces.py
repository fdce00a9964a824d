"""Random parts of steps: names, partitions, offsets, versions, and a rough model of existing resources.

Weights, shares and values are ours, here and in all modules that draw. Most steps succeed, so that there is a state
which the others meet: those with the bounds of a field, one below and one above them, or a value of the wrong kind.
They decide how soon a difference is found, never what one is. `_rarely(8)` is one in eight: lower where the odd case
has more variants, higher where it ends what the following steps need.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from protocol.apis import ApiKey

Versions = Mapping[ApiKey, tuple[int, int]]
"""API -> lowest and highest version that both clusters serve."""
TOPICS = ("t0", "t1", "t2")
GROUPS = ("g0", "g1")
IDS = ("x0", "x1")
MEMBERS = {"g0": ("m0", "m1", "m2"), "g1": ("n0", "n1")}
CONNECTIONS = ("0", "1")
TEXTS = ("", "a", "bb", "c" * 40, "é" * 9, None)
SETTINGS = {
    "cleanup.policy": ("delete", "compact", "compact,delete", "nonsense"),
    "compression.type": ("producer", "gzip", "snappy", "lz4", "zstd", "uncompressed", "brotli"),
    "message.timestamp.type": ("CreateTime", "LogAppendTime", "Never"),
    "max.message.bytes": ("300", "100000", "-1", "many"),
    "min.insync.replicas": ("1", "2", "0"),
    "segment.bytes": ("1048576", "2097152", "13"),
    "retention.ms": ("-1", "604800000", "-2"),
    "retention.bytes": ("-1", "1000000", "x"),
    "message.timestamp.before.max.ms": ("9223372036854775807", "1800000"),
    "message.timestamp.after.max.ms": ("3600000", "0"),
    "index.interval.bytes": ("4096", "0"),
    "delete.retention.ms": ("86400000", "5"),
    "no.such.setting": ("1",),
}


@dataclass
class Known:
    """Resources that the history has probably created so far."""

    topics: dict[str, int] = field(default_factory=dict)
    producers: dict[str, str | None] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    members: set[str] = field(default_factory=set)


class Pieces:
    """Random source, versions to draw from, and resources created so far."""

    def __init__(self, versions: Versions, seed: object) -> None:
        self._versions, self._chance, self._known = versions, random.Random(str(seed)), Known()

    def _rarely(self, one_in: int = 12) -> bool:
        """Return true once in so many times: by default three times in a history of 40 steps."""
        return self._chance.randrange(one_in) == 0

    def _step(self, do: str, key: ApiKey, low: int = 0, /, **fields: Any) -> dict[str, Any]:
        least, most = self._versions[key]
        version = self._chance.randint(max(least, low), most)
        # The newest versions are those that clients use.
        if self._chance.randrange(2):
            version = most
        connection = self._chance.choice(CONNECTIONS)
        return {"do": do, "v": version, "c": connection, **{k: v for k, v in fields.items() if v is not None}}

    def _topic(self) -> str:
        if self._known.topics and not self._rarely(15):
            return self._chance.choice(sorted(self._known.topics))
        return self._chance.choice(TOPICS)

    def _place(self) -> dict[str, Any]:
        topic = self._topic()
        count = self._known.topics.get(topic, 1)
        return {"topic": topic, "partition": count + 1 if self._rarely(40) else self._chance.randrange(count)}

    def _offset(self) -> int:
        odd = (0, 0, 1, 2, 3, 5, 8, 13, 40, 1000, -1, -7)
        return self._chance.choice(odd) if self._rarely(3) else self._chance.randrange(12)

    def _producer(self, *, transactional: bool) -> str | None:
        fitting = [p for p, name in self._known.producers.items() if (name is not None) == transactional]
        if fitting and not self._rarely(20):
            return self._chance.choice(fitting)
        return "stranger" if self._rarely(10) else None

    def _shift(self, one_in: int = 14) -> int | None:
        return self._chance.choice((-1, 1, -2, 5)) if self._rarely(one_in) else None

    def _configs(self, most: int) -> dict[str, str]:
        names = self._chance.sample(sorted(SETTINGS), self._chance.randint(0, most))
        chosen = {name: SETTINGS[name][0] for name in names if name != "no.such.setting"}
        for name in names[:1]:  # of several wrong ones Kafka reports one, in the order of a hash map
            if not self._rarely(4):
                chosen[name] = self._chance.choice(SETTINGS[name])
        return chosen
