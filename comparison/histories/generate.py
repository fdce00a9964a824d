"""Histories made up by chance: mostly what clients do, now and then what they should not. A seed makes the same again.

What is drawn follows a rough idea of what exists, so that most requests get somewhere; it is no model, and nothing is
judged by it.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from comparison.histories.asked import Step
from protocol.apis import ApiKey

Versions = Mapping[ApiKey, tuple[int, int]]
"""API -> the versions that both clusters serve."""
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
    """What the history has made so far, as far as it can tell."""

    topics: dict[str, int] = field(default_factory=dict)
    producers: dict[str, str | None] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    members: set[str] = field(default_factory=set)


class Generator:
    """Draws histories."""

    def __init__(self, versions: Versions, seed: object) -> None:
        self._versions, self._chance, self._known = versions, random.Random(str(seed)), Known()
        self._draws: dict[Callable[[], dict[str, Any]], int] = {
            self._produce: 22,
            self._fetch: 8,
            self._list_offsets: 4,
            self._epoch_end: 1,
            self._describe_producers: 2,
            self._init_producer: 5,
            self._add_partitions: 4,
            self._add_offsets: 2,
            self._commit_in_transaction: 3,
            self._end_transaction: 6,
            self._write_marker: 1,
            self._describe_transaction: 2,
            self._list_transactions: 1,
            self._create_topic: 2,
            self._delete_topic: 1,
            self._create_partitions: 1,
            self._metadata: 2,
            self._describe_topic: 1,
            self._describe_configs: 2,
            self._alter_configs: 3,
            self._replace_configs: 1,
            self._delete_records: 2,
            self._elect_leaders: 1,
            self._join: 7,
            self._sync: 6,
            self._heartbeat: 3,
            self._leave: 2,
            self._commit: 4,
            self._fetch_offsets: 4,
            self._delete_offset: 1,
            self._delete_group: 1,
            self._describe_group: 2,
            self._find_coordinator: 1,
        }

    def history(self, length: int) -> list[Step]:
        """The next history: a topic to begin with, then what chance brings."""
        self._known = Known()
        first = self._create_topic(sound=True)
        draws, weights = list(self._draws), list(self._draws.values())
        drawn = [draw() for draw in self._chance.choices(draws, weights, k=length - 1)]
        return [first, *drawn]

    # --- pieces ------------------------------------------------------------------------------------------------------

    def _rarely(self, one_in: int = 12) -> bool:
        return self._chance.randrange(one_in) == 0

    def _step(self, do: str, key: ApiKey, low: int = 0, /, **said: Any) -> dict[str, Any]:
        least, most = self._versions[key]
        version = self._chance.randint(max(least, low), most)
        # The newest versions are those that clients use.
        if self._chance.randrange(2):
            version = most
        connection = self._chance.choice(CONNECTIONS)
        return {"do": do, "v": version, "c": connection, **{k: v for k, v in said.items() if v is not None}}

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
        for name in names[:1]:  # of several that are wrong Kafka tells one, in the order of a hash map
            if not self._rarely(4):
                chosen[name] = self._chance.choice(SETTINGS[name])
        return chosen

    # --- administration ----------------------------------------------------------------------------------------------

    def _create_topic(self, *, sound: bool = False) -> dict[str, Any]:
        free = [topic for topic in TOPICS if topic not in self._known.topics]
        topic = self._chance.choice(free or TOPICS)
        count = 0 if not sound and self._rarely(20) else self._chance.choice((1, 1, 2, 3))
        configs = {} if sound and self._rarely(2) else self._configs(2)
        if not sound and self._rarely(8):
            configs["cleanup.policy"] = "nonsense"
        validate = not sound and self._rarely(10)
        if sound:
            configs = {name: SETTINGS[name][0] if self._rarely(6) else value for name, value in configs.items()}
        if count and not validate:
            self._known.topics.setdefault(topic, count)
        factor = 2 if not sound and self._rarely(15) else 1
        said = {"topic": topic, "partitions": count, "configs": configs, "validate": validate or None}
        return self._step("create_topic", ApiKey.CREATE_TOPICS, **said, factor=None if factor == 1 else factor)

    def _delete_topic(self) -> dict[str, Any]:
        topic = self._topic()
        self._known.topics.pop(topic, None)
        return self._step("delete_topic", ApiKey.DELETE_TOPICS, topic=topic, by_id=self._rarely(2) or None)

    def _create_partitions(self) -> dict[str, Any]:
        topic = self._topic()
        before = self._known.topics.get(topic, 1)
        count = before + self._chance.choice((0, 1, 1, 2)) if not self._rarely(6) else 0
        validate = self._rarely(5)
        if topic in self._known.topics and count > before and not validate:
            self._known.topics[topic] = count
        said = {"topic": topic, "count": count, "validate": validate or None}
        return self._step("create_partitions", ApiKey.CREATE_PARTITIONS, **said)

    def _metadata(self) -> dict[str, Any]:
        topics = self._chance.sample(TOPICS, self._chance.randint(1, 2))
        auto = self._rarely(8)
        if auto:
            for topic in topics:
                self._known.topics.setdefault(topic, 1)
        return self._step("metadata", ApiKey.METADATA, 4, topics=topics, auto=auto or None)

    def _describe_topic(self) -> dict[str, Any]:
        topics = self._chance.sample(TOPICS, self._chance.randint(1, 2))
        return self._step("describe_topic", ApiKey.DESCRIBE_TOPIC_PARTITIONS, topics=topics)

    def _describe_configs(self) -> dict[str, Any]:
        keys = None if self._rarely(3) else self._chance.sample(sorted(SETTINGS), 2)
        synonyms = self._rarely(2) or None
        said = {"topic": self._topic(), "keys": keys, "synonyms": synonyms}
        return self._step("describe_configs", ApiKey.DESCRIBE_CONFIGS, **said)

    def _alter_configs(self) -> dict[str, Any]:
        changes: list[list[Any]] = []
        for name in self._chance.sample(sorted(SETTINGS), self._chance.choice((1, 1, 2))):
            operation = self._chance.choice((0, 0, 0, 1, 2, 3)) if not self._rarely(20) else 9
            if changes:  # of several that are wrong Kafka tells one, in the order of a hash map
                changes.append([name, 0, SETTINGS[name][0]])
            else:
                changes.append([name, operation, None if operation == 1 else self._chance.choice(SETTINGS[name])])
        validate = self._rarely(8) or None
        return self._step(
            "alter_configs", ApiKey.INCREMENTAL_ALTER_CONFIGS, topic=self._topic(), changes=changes, validate=validate
        )

    def _replace_configs(self) -> dict[str, Any]:
        return self._step("replace_configs", ApiKey.ALTER_CONFIGS, topic=self._topic(), configs=self._configs(2))

    def _delete_records(self) -> dict[str, Any]:
        return self._step("delete_records", ApiKey.DELETE_RECORDS, **self._place(), offset=self._offset())

    def _elect_leaders(self) -> dict[str, Any]:
        return self._step("elect_leaders", ApiKey.ELECT_LEADERS, **self._place(), type=self._chance.choice((0, 1)))

    # --- partitions --------------------------------------------------------------------------------------------------

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
        said: dict[str, Any] = {"records": self._records(), "codec": self._chance.choice((0, 0, 0, 1, 2, 3, 4)) or None}
        if producer:
            said |= {"producer": producer, "sequence_shift": self._shift(10), "epoch_shift": self._shift(25)}
        if self._rarely(60):
            said["spoil"] = [self._chance.randrange(16, 200), 1 << self._chance.randrange(8)]
        acks = -1 if producer else self._chance.choice((-1, -1, 1, 1, 0))
        if self._rarely(40):
            acks = self._chance.choice((0, 1, 2))
        said |= {"transactional": transactional or None, "acks": acks}
        step = self._step("produce", ApiKey.PRODUCE, **self._place(), **said)
        if step.get("codec") == 4:  # zstd needs Produce 7 (KIP-110); below is an error worth a try
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

    def _list_offsets(self) -> dict[str, Any]:
        at = self._chance.choice((-1, -2, -3, -1, -2, -3, 0, 10, 25, 49, 5000, -4, -5, -6))
        epoch = self._chance.choice((0, 1, 5)) if self._rarely(6) else None
        isolation = self._chance.randrange(2)
        return self._step("list_offsets", ApiKey.LIST_OFFSETS, **self._place(), at=at, isolation=isolation, epoch=epoch)

    def _epoch_end(self) -> dict[str, Any]:
        epochs = (0, 0, 1, 7, -1)
        said = {"epoch": self._chance.choice((-1, -1, 0, 3)), "leader_epoch": self._chance.choice(epochs)}
        return self._step("epoch_end", ApiKey.OFFSET_FOR_LEADER_EPOCH, **self._place(), **said)

    def _describe_producers(self) -> dict[str, Any]:
        return self._step("describe_producers", ApiKey.DESCRIBE_PRODUCERS, **self._place())

    # --- transactions ------------------------------------------------------------------------------------------------

    def _init_producer(self) -> dict[str, Any]:
        name = None if self._rarely(3) else self._chance.choice(IDS)
        producer = f"p-{name}" if name and not self._rarely(8) else f"q{self._chance.randrange(2)}"
        self._known.producers.setdefault(producer, name)
        timeout_ms = self._chance.choice((0, -1, 900_001, 1)) if self._rarely(20) else None
        if timeout_ms == 1 and name:
            timeout_ms = 60_001
        again = (self._rarely(3) and self._known.producers[producer] == name) or None
        said = {"transactional_id": name, "again": again, "epoch_shift": self._shift() if again else None}
        low = 3 if again else 0
        said |= {"producer": producer, "timeout_ms": timeout_ms}
        return self._step("init_producer", ApiKey.INIT_PRODUCER_ID, low, **said)

    def _actor(self) -> dict[str, Any]:
        producer = self._producer(transactional=True) or "stranger"
        name = self._chance.choice((*IDS, "other")) if self._rarely(20) else None
        return {"producer": producer, "transactional_id": name, "epoch_shift": self._shift(16)}

    def _add_partitions(self) -> dict[str, Any]:
        places = [self._place() for _ in range(self._chance.choice((1, 1, 2)))]
        partitions = {place["topic"]: [place["partition"]] for place in places}
        verify = self._rarely(3) or None
        step = self._step("add_partitions", ApiKey.ADD_PARTITIONS_TO_TXN, **self._actor(), partitions=partitions)
        return step if step["v"] <= 3 or not verify else {**step, "verify": True}

    def _add_offsets(self) -> dict[str, Any]:
        return self._step("add_offsets", ApiKey.ADD_OFFSETS_TO_TXN, **self._actor(), group=self._chance.choice(GROUPS))

    def _commit_in_transaction(self) -> dict[str, Any]:
        group = self._chance.choice(GROUPS)
        member = self._chance.choice(MEMBERS[group]) if self._rarely(3) else None
        said = {"group": group, "offset": self._offset(), "metadata": self._chance.choice(("", "m", None))}
        said |= {"member": member, "generation_shift": self._shift() if member else None}
        low = 3 if member else 0
        said |= {**self._actor(), **self._place()}
        return self._step("commit_in_transaction", ApiKey.TXN_OFFSET_COMMIT, low, **said)

    def _end_transaction(self) -> dict[str, Any]:
        return self._step("end_transaction", ApiKey.END_TXN, **self._actor(), commit=bool(self._chance.randrange(3)))

    def _write_marker(self) -> dict[str, Any]:
        said = {"commit": False, "coordinator_epoch": self._chance.choice((0, 0, 1, -1))}
        actor = {"producer": self._producer(transactional=True) or "stranger", "epoch_shift": self._shift(6)}
        return self._step("write_marker", ApiKey.WRITE_TXN_MARKERS, **actor, **self._place(), **said)

    def _describe_transaction(self) -> dict[str, Any]:
        name = self._chance.choice(IDS)
        return self._step("describe_transaction", ApiKey.DESCRIBE_TRANSACTIONS, transactional_id=name)

    def _list_transactions(self) -> dict[str, Any]:
        states = self._chance.choice(([], [], ["Ongoing"], ["Empty", "CompleteCommit"], ["Wondering"]))
        return self._step("list_transactions", ApiKey.LIST_TRANSACTIONS, 2, states=states)

    # --- groups ------------------------------------------------------------------------------------------------------

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
        low = 5 if instance else 0
        said = {"protocols": protocols, "session_ms": session_ms, "type": kind, "instance": instance}
        return self._step("join", ApiKey.JOIN_GROUP, low, **who, **said)

    def _sync(self) -> dict[str, Any]:
        said: dict[str, Any] = {"generation_shift": self._shift()}
        if self._rarely(2):
            said |= {"type": "consumer", "protocol": "range"}
        return self._step("sync", ApiKey.SYNC_GROUP, 5 if "type" in said else 0, **self._who(), **said)

    def _heartbeat(self) -> dict[str, Any]:
        return self._step("heartbeat", ApiKey.HEARTBEAT, **self._who(), generation_shift=self._shift(8))

    def _leave(self) -> dict[str, Any]:
        return self._step("leave", ApiKey.LEAVE_GROUP, **self._who())

    def _commit(self) -> dict[str, Any]:
        who = self._who()
        if self._rarely(2):
            del who["member"]
        metadata = "x" * 5000 if self._rarely(30) else self._chance.choice(("", "m", None))
        said = {"offset": self._offset(), "metadata": metadata, "generation_shift": self._shift()}
        return self._step("commit", ApiKey.OFFSET_COMMIT, **who, **self._place(), **said)

    def _fetch_offsets(self) -> dict[str, Any]:
        places = [self._place() for _ in range(2)]
        partitions = None if self._rarely(3) else {place["topic"]: [place["partition"]] for place in places}
        stable = self._rarely(3) or None
        low = 2 if partitions is None else 1
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
