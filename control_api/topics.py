"""Verbs about topics, partitions and records."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Required, TypedDict

from control_api.fields import About
from control_api.verb import PARTITION, Verb

MOST_OFFSET = 2**63 - 2**32
"""At which a log may be made to go on: its offsets are int64, and those behind it are enough for any test."""


class NewTopic(TypedDict, total=False):
    """A topic to create."""

    name: Required[Annotated[str, About("name of the topic", followed_by=("partitions", "configs"))]]
    partitions: Annotated[int, About("number of partitions; -1: num.partitions of the cluster", default=-1)]
    replication_factor: Annotated[int, About("number of replicas; -1: default.replication.factor", default=-1)]
    configs: Annotated[Mapping[str, str | None], About("topic settings", such={"cleanup.policy": "compact"})]


class TopicSettings(TypedDict):
    """Settings of a topic to change; other settings do not change."""

    configs: Annotated[
        Mapping[str, str | None],
        About("settings by their Kafka names; null: reset to the default", least=1, such={"retention.ms": "60000"}),
    ]


class TopicDeleted(TypedDict):
    """A topic that was deleted."""

    name: str
    id: str
    deleted: Literal[True]


class RecordsQuery(TypedDict, total=False):
    """Range of records of a partition."""

    offset: Annotated[int, About("first offset; negative: relative to the end")]
    timestamp_ms: Annotated[
        int, About("instead of an offset: from the first record with this timestamp or later", least=0)
    ]
    text: Annotated[str, About("only records with this text in their key, value or headers", least=1)]
    # The response is made in memory: the page of a long log is asked for by offset. 100 fit into a window.
    limit: Annotated[int, About("maximum number of records, up to 10000", least=0, default=100)]
    isolation: Annotated[
        Literal["read_uncommitted", "read_committed"], About("isolation level", default="read_uncommitted")
    ]
    decode: Annotated[bool, About("decode keys and values by their schemas, if known", default=False)]


class RecordHeader(TypedDict, total=False):
    """A header of a record."""

    key: Required[str]
    value: bytes | str | None


class NewRecord(TypedDict, total=False):
    """A record to append."""

    key: bytes | str | None
    value: bytes | str | None
    headers: Annotated[Sequence[RecordHeader], About(such=[{"key": "h", "value": "v"}])]
    partition: Annotated[int, About("by default chosen as Kafka's Java client does", least=0)]
    timestamp_ms: Annotated[int, About("by default the cluster's time")]
    offset: Annotated[
        int, About("by default the next one; a later one leaves a gap, as compaction does", least=0, most=MOST_OFFSET)
    ]


class NewRecords(TypedDict):
    """Records to append."""

    records: Annotated[
        Sequence[Annotated[NewRecord, About(such={"key": "k", "value": "v"})]],
        About("the records", least=1, like="a list of records", such=[{"key": "k", "value": "v", "partition": 0}]),
    ]


class LogStart(TypedDict):
    """Where an emptied log starts."""

    offset: Annotated[int, About("first offset of the empty log", least=0, most=MOST_OFFSET)]


class LeaderMove(TypedDict):
    """The leader of a partition."""

    broker: Annotated[
        int | None, About("id of the new leader; null: no leader", least=1, like="the id of a broker or null")
    ]


class InSync(TypedDict, total=False):
    """The replicas of a partition that are in sync."""

    replicas: Required[Annotated[Sequence[int], About("ids of the brokers in sync", such=[1, 2])]]
    held: Annotated[
        Sequence[int], About("followers that do not replicate; by default those that are not in sync", such=[3])
    ]


VERBS = (
    Verb("topics list", "GET", "/v1/topics", "topics.list()", "all topics", answer="topics.Topics", items="topics",
         columns=("name", "id", "internal", "partitions")),
    Verb("topics show", "GET", "/v1/topics/{topic}", "topics[topic].show()", "one topic with its partitions",
         answer="topics.Topic", items="partitions",
         columns=("partition", "leader", "leader_epoch", "log_start_offset", "high_watermark", "last_stable_offset",
                  "isr")),
    Verb("topics create", "POST", "/v1/topics", "topics.create(name)", "create a topic", body=NewTopic,
         answer="topics.Topic", items="partitions", columns=("partition", "leader", "leader_epoch", "replicas", "isr"),
         example={"name": "returns", "partitions": 3, "configs": {"cleanup.policy": "compact"}}),
    Verb("topics configure", "PUT", "/v1/topics/{topic}/configs", "topics[topic].configure(configs)",
         "change settings of a topic; null: reset to the default", body=TopicSettings, answer="topics.Topic",
         items="partitions", columns=("partition", "leader", "leader_epoch", "replicas", "isr"),
         example={"topic": "orders", "configs": {"retention.ms": "60000"}}),
    Verb("topics delete", "DELETE", "/v1/topics/{topic}", "topics[topic].delete()", "delete a topic with its records",
         answer=TopicDeleted, example={"topic": "orders"}),
    Verb("partitions show", "GET", PARTITION, "topics[topic].partitions[partition].show()",
         "offsets, epochs, segments, producers, open and aborted transactions", answer="topics.Partition"),
    Verb("records read", "GET", f"{PARTITION}/records", "topics[topic].partitions[partition].records()",
         "read records without a Kafka client", query=RecordsQuery, answer="topics.Records", items="records",
         columns=("offset", "timestamp_ms", "key", "value", "transactional", "control")),
    Verb("records write", "POST", "/v1/topics/{topic}/records", "topics[topic].write(...)",
         "write records without a Kafka client", body=NewRecords, answer="topics.RecordsWritten",
         items="written", columns=("partition", "offset")),
    Verb("partitions start-at", "POST", f"{PARTITION}/start", "topics[topic].partitions[partition].start_at(offset)",
         "remove all records of a partition; its log continues, empty, at this offset", body=LogStart,
         answer="topics.Partition", example={"topic": "orders", "partition": 1, "offset": 8_000_000}),
    Verb("leader move", "POST", f"{PARTITION}/leader", "topics[topic].partitions[partition].move_leader(broker)",
         "move the leader, or remove it (null); the leader epoch increases", body=LeaderMove,
         answer="topics.Partition"),
    Verb("isr set", "POST", f"{PARTITION}/isr", "topics[topic].partitions[partition].set_isr(replicas)",
         "set the in-sync replicas; others, and held ones, do not replicate", body=InSync,
         answer="topics.Partition"),
)  # fmt: skip
