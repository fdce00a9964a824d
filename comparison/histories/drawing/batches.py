"""Random requests of an administrator that have several entries, with boundary values, duplicates and hostile ones.

How numbers are chosen: `pieces`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from comparison.histories.drawing.administration import CREATION_IS_ASKED_SINCE
from comparison.histories.drawing.pieces import SETTINGS, Pieces
from protocol.apis import ApiKey

NAMES = ("t0", "t1", "t2", "t.a", "t_a", "T0")
BAD_NAMES = ("=", "=.", "=..", "=a b", "=" + "x" * 250, "tä")  # 250: one more than a name may have
TOPIC, BROKER, METRICS, GROUP = 2, 4, 16, 32  # ConfigResource.Type
FACTOR_MAY_CHANGE_SINCE = 1
VALUES: Mapping[int, Mapping[str, Sequence[str]]] = {
    TOPIC: SETTINGS,
    BROKER: {"log.retention.ms": ("-2", "x"), "no.such.setting": ("1",), "broker.id": ("2",), "num.io.threads": ("0",)},
    METRICS: {
        "interval.ms": ("100", "60000", "9", "x"),
        "metrics": ("a,b", ""),
        "match": ("client_id=a.*", "nonsense"),
    },
    GROUP: {
        "consumer.session.timeout.ms": ("45000", "50000", "1", "x"),
        "consumer.heartbeat.interval.ms": ("5000", "1"),
        "share.record.lock.duration.ms": ("30000", "1"),
        "no.such.setting": ("1",),
    },
    3: {"a": ("b",)},
}


class Batches(Pieces):
    """Draws requests with one to four entries."""

    def _some(self, entry: Callable[[], Any]) -> list[Any]:
        entries = [entry() for _ in range(self._chance.choice((1, 2, 2, 3, 4)))]
        if self._rarely(8):
            entries.append(self._chance.choice(entries))
        return [] if self._rarely(25) else entries

    def _name(self) -> str:
        return self._chance.choice(BAD_NAMES if self._rarely(15) else NAMES)

    def _replicas(self) -> list[int]:
        return self._chance.choice(([1], [1], [1], [1], [], [1, 1], [2], [-1], [1, 2]))

    def _topic_entry(self) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "topic": self._name(),
            "partitions": self._chance.choice((1, 1, 2, 3, -1, 0, -2)),
            "factor": self._chance.choice((1, 1, 1, -1, 0, 2, -2)),
        }
        if self._rarely(4):
            indexes = [0, 1, 2][: self._chance.choice((1, 2, 3))]
            if self._rarely(4):
                indexes[-1] += self._chance.choice((1, -1))
            entry["assign"] = [[index, self._replicas()] for index in indexes]
            if not self._rarely(4):
                entry |= {"partitions": -1, "factor": -1}
        if self._rarely(3):
            name = self._chance.choice(sorted(SETTINGS))
            entry["configs"] = [[name, self._chance.choice((*SETTINGS[name], None))]]
        return entry

    def _create_many(self) -> dict[str, Any]:
        topics = self._some(self._topic_entry)
        return self._step("create_topics", ApiKey.CREATE_TOPICS, topics=topics, validate=self._rarely(6) or None)

    def _delete_many(self) -> dict[str, Any]:
        how = ("name", "name", "name", "id", "id", "both", "neither")
        topics = self._some(lambda: [self._chance.choice(how), self._name()])
        return self._step("delete_topics", ApiKey.DELETE_TOPICS, topics=topics)

    def _grow_many(self) -> dict[str, Any]:
        def entry() -> list[Any]:
            assign = [self._replicas() for _ in range(self._chance.choice((1, 1, 2)))] if self._rarely(3) else None
            return [self._name(), self._chance.choice((2, 3, 4, 5, 1, 0, -1)), assign]

        validate = self._rarely(6) or None
        return self._step("create_more", ApiKey.CREATE_PARTITIONS, topics=self._some(entry), validate=validate)

    def _resource(self) -> tuple[int, str]:
        kind = self._chance.choice((TOPIC, TOPIC, TOPIC, BROKER, METRICS, GROUP, GROUP, 3))
        if kind == BROKER:
            return kind, self._chance.choice(("=1", "=", "=2", "=x"))
        return kind, "=" if self._rarely(12) else self._chance.choice(("g0", "g1")) if kind != TOPIC else self._name()

    def _key(self, kind: int) -> tuple[str, str]:
        name = self._chance.choice(sorted(VALUES[kind]))
        return name, self._chance.choice(VALUES[kind][name])

    def _alter_many(self) -> dict[str, Any]:
        def entry() -> list[Any]:
            kind, name = self._resource()
            key, value = self._key(kind)
            operation = self._chance.choice((0, 0, 0, 1, 2, 3, 9))
            changes = [[key, operation, None if operation == 1 or self._rarely(12) else value]]
            if self._rarely(8):
                changes.append(changes[0])
            return [kind, name, [] if self._rarely(15) else changes]

        fields = {"resources": self._some(entry), "validate": self._rarely(6) or None}
        return self._step("alter_resources", ApiKey.INCREMENTAL_ALTER_CONFIGS, **fields)

    def _replace_many(self) -> dict[str, Any]:
        def entry() -> list[Any]:
            kind, name = self._resource()
            key, value = self._key(kind)
            return [kind, name, [[key, None if self._rarely(12) else value]]]

        # Kafka fails while it counts the errors of a duplicate resource, and never responds.
        resources = list({(kind, name): [kind, name, configs] for kind, name, configs in self._some(entry)}.values())
        fields = {"resources": resources, "validate": self._rarely(6) or None}
        return self._step("replace_resources", ApiKey.ALTER_CONFIGS, **fields)

    def _describe_many(self) -> dict[str, Any]:
        def entry() -> list[Any]:
            kind, name = self._resource()
            keys = sorted({self._key(kind)[0] for _ in range(2)})
            return [kind, name, None if kind in (METRICS, GROUP) and self._rarely(2) else keys]

        fields = {"resources": self._some(entry), "synonyms": self._rarely(2) or None}
        return self._step("describe_resources", ApiKey.DESCRIBE_CONFIGS, **fields)

    def _partitions(self, entry: Callable[[], Any]) -> list[list[Any]]:
        return self._some(lambda: [self._name(), [entry() for _ in range(self._chance.choice((1, 1, 2, 3)))]])

    def _elect_many(self) -> dict[str, Any]:
        topics = self._partitions(lambda: self._chance.choice((0, 0, 1, 2, 7, -1)))
        return self._step("elect_many", ApiKey.ELECT_LEADERS, topics=topics, type=self._chance.choice((0, 0, 1)))

    def _reassign_many(self) -> dict[str, Any]:
        def entry() -> list[Any]:
            return [self._chance.choice((0, 0, 1, 2, 7, -1)), None if self._rarely(4) else self._replicas()]

        step = self._step("reassign_many", ApiKey.ALTER_PARTITION_REASSIGNMENTS, topics=self._partitions(entry))
        return step | ({"factor": False} if step["v"] >= FACTOR_MAY_CHANGE_SINCE and self._rarely(2) else {})

    def _delete_many_records(self) -> dict[str, Any]:
        topics = self._partitions(lambda: [self._chance.choice((0, 0, 1, 7, -1)), self._chance.choice((0, -1, 1, -2))])
        return self._step("delete_many_records", ApiKey.DELETE_RECORDS, topics=topics)

    def _describe_all(self) -> dict[str, Any]:
        return self._step("metadata", ApiKey.METADATA, CREATION_IS_ASKED_SINCE, topics=self._chance.sample(NAMES, 3))
