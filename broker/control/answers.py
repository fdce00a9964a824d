"""What the verbs answer, as JSON schemas by name: the ``components`` of the OpenAPI document.

Every field is there in every answer, and no others are; a test holds real answers against them.
"""

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]


def of(**fields: Schema) -> Schema:
    """An object with these fields, all of them, and no others."""
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def ref(name: str) -> Schema:
    """The schema of this name."""
    return {"$ref": f"#/components/schemas/{name}"}


def many(schema: Schema) -> Schema:
    """A list of them."""
    return {"type": "array", "items": schema}


def by_name(schema: Schema) -> Schema:
    """An object whose names are not known beforehand."""
    return {"type": "object", "additionalProperties": schema}


def maybe(schema: Schema) -> Schema:
    """That, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def told(schema: Schema, description: str) -> Schema:
    """The same, with a word on what it means."""
    return {**schema, "description": description}


INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
TIME_MS = told(INTEGER, "the cluster's time, in milliseconds since 1970")
BYTES: Schema = told({"anyOf": [TEXT, of(base64=TEXT)]}, "text where it is UTF-8")
STATE: Schema = {"type": "string", "enum": ["running", "paused", "down"]}
STEP: Schema = {"type": "string", "enum": ["prepare", "markers", "complete"]}
PARTITION: Mapping[str, Schema] = {
    "partition": INTEGER,
    "leader": told(INTEGER, "-1: nobody"),
    "leader_epoch": INTEGER,
    "replicas": many(INTEGER),
    "isr": many(INTEGER),
    "log_start_offset": told(INTEGER, "this and the next four: -1 where no broker with a replica is running"),
    "high_watermark": INTEGER,
    "last_stable_offset": INTEGER,
    "log_end_offset": INTEGER,
    "size_bytes": INTEGER,
}
TRANSACTION: Mapping[str, Schema] = {
    "transactional_id": TEXT,
    "state": TEXT,
    "producer_id": INTEGER,
    "producer_epoch": INTEGER,
    "last_producer_epoch": INTEGER,
    "timeout_ms": INTEGER,
    "deadline_ms": told(maybe(TIME_MS), "when the coordinator aborts it; null: none is open"),
    "coordinator": told(INTEGER, "id of the broker"),
    "partitions": told(many(TEXT), "such as topic-0"),
    "pending_offsets": told(by_name(by_name(INTEGER)), "group, then partition"),
    "held_at": maybe(STEP),
    "stopped": told(FLAG, "whether it has come to where it is held"),
}
RULE = told(TEXT, "which decided: a KIP, or an id of the specification")
ASKER: Mapping[str, Schema] = {
    "client_id": maybe(TEXT),
    "connection": maybe(INTEGER),
    "broker": maybe(INTEGER),
    "api": maybe(TEXT),
    "version": maybe(INTEGER),
}
PLACE: Mapping[str, Schema] = {
    "producer_id": INTEGER,
    "producer_epoch": INTEGER,
    "last_sequence": INTEGER,
    "last_timestamp_ms": INTEGER,
    "coordinator_epoch": INTEGER,
    "txn_start_offset": told(INTEGER, "-1: no transaction is open"),
}
PRODUCER: Mapping[str, Schema] = {
    "producer_id": INTEGER,
    "producer_epoch": told(INTEGER, "the highest that was heard of; -1: none"),
    "transactional_id": maybe(TEXT),
    "client_id": told(maybe(TEXT), "of who used it last"),
    "partitions": told(many(of(partition=TEXT, **PLACE)), "that know it"),
}
GROUP: Mapping[str, Schema] = {
    "group_id": TEXT,
    "type": TEXT,
    "state": TEXT,
    "protocol": maybe(TEXT),
    "epoch": told(INTEGER, "its generation"),
    "coordinator": told(INTEGER, "id of the broker"),
    "members": many(ref("Member")),
    "offsets": many(of(topic=TEXT, partition=INTEGER, offset=INTEGER, metadata=TEXT, lag=told(INTEGER, "-1: unknown"))),
}

SCHEMAS: Mapping[str, Schema] = {
    "Problem": {
        "type": "object",
        "description": "RFC 9457",
        "properties": {
            "type": TEXT,
            "title": TEXT,
            "status": INTEGER,
            "detail": told(TEXT, "what is wrong, and what to send instead"),
            "field": told(TEXT, "where, in the body or the query"),
        },
        "required": ["type", "title", "status", "detail"],
        "additionalProperties": False,
    },
    "Status": of(status={"const": "ok"}),
    "Cluster": of(
        cluster_id=TEXT,
        controller=INTEGER,
        brokers=many(ref("Broker")),
        features=by_name(INTEGER),
        as_version=TEXT,
        seed=INTEGER,
        topics=told(INTEGER, "how many"),
    ),
    "Broker": of(
        id=INTEGER, host=TEXT, port=INTEGER, rack=maybe(TEXT), up=FLAG, state=STATE, fenced=FLAG, epoch=INTEGER
    ),
    "BrokerState": of(id=INTEGER, state=STATE),
    "BrokerRemoved": of(id=INTEGER, state={"const": "removed"}),
    "Clock": of(now_ms=TIME_MS, ahead_ms=told(INTEGER, "of the machine's"), frozen=FLAG),
    "Topics": of(topics=many(ref("Topic"))),
    "Topic": of(
        name=TEXT, id=TEXT, internal=FLAG, partitions=many(ref("PartitionInShort")), configs=by_name(maybe(TEXT))
    ),
    "PartitionInShort": of(**PARTITION),
    "Partition": of(
        **PARTITION,
        held=told(many(INTEGER), "followers that replicate nothing"),
        segments=many(of(base_offset=INTEGER, size_bytes=INTEGER)),
        producers=many(ref("Producer")),
        open_transactions=many(ref("Producer")),
        aborted_transactions=many(of(producer_id=INTEGER, first_offset=INTEGER, last_offset=INTEGER)),
    ),
    "Producer": of(**PLACE),
    "Producers": of(producers=many(ref("ProducerInShort"))),
    "ProducerInShort": of(**PRODUCER),
    "ProducerLife": of(**PRODUCER, timeline=many(ref("ProducerEvent"))),
    "ProducerEvent": of(
        at_ms=TIME_MS,
        until_ms=told(TIME_MS, "of accepted batches that follow each other, the last one's"),
        event=TEXT,
        partition=told(TEXT, "such as topic-0; empty: about none"),
        producer_epoch=told(INTEGER, "that the request says; -1: none"),
        epoch_before=told(INTEGER, "that the partition knew; -1: none"),
        epoch_after=INTEGER,
        first_sequence=told(INTEGER, "-1: none"),
        last_sequence=INTEGER,
        known_sequence=told(INTEGER, "the last one that the partition had; -1: none"),
        batches=told(INTEGER, "how many the event is about"),
        **ASKER,
        error=maybe(TEXT),
        rule=RULE,
        detail=TEXT,
        fault=told(maybe(TEXT), "ids of the faults that met the request, joined by commas"),
    ),
    "ProducerForgotten": of(producer_id=INTEGER, forgotten={"const": True}),
    "Records": of(records=many(ref("Record")), high_watermark=INTEGER, log_start_offset=INTEGER),
    "Record": of(
        offset=INTEGER,
        partition=INTEGER,
        timestamp_ms=INTEGER,
        key=maybe(BYTES),
        value=maybe(BYTES),
        headers=many(of(key=TEXT, value=maybe(BYTES))),
        sequence=told(INTEGER, "-1: none"),
        producer_id=INTEGER,
        producer_epoch=INTEGER,
        transactional=FLAG,
        control={"enum": [None, "commit", "abort"]},
    ),
    "Written": of(written=many(of(partition=INTEGER, offset=INTEGER))),
    "RetentionRun": of(segments_deleted=INTEGER),
    "CompactionRun": of(logs_cleaned=INTEGER),
    "CoordinatorMoved": of(
        type={"enum": ["group", "transaction"]}, key=TEXT, broker=INTEGER, partition=INTEGER, loading_ms=INTEGER
    ),
    "Transactions": of(transactions=many(ref("TransactionInShort"))),
    "TransactionInShort": of(**TRANSACTION),
    "Transaction": of(**TRANSACTION, timeline=many(ref("TimelineEvent"))),
    "TimelineEvent": of(
        at_ms=TIME_MS,
        event=TEXT,
        state_before=TEXT,
        state_after=TEXT,
        producer_id=INTEGER,
        epoch_before=INTEGER,
        epoch_after=INTEGER,
        **ASKER,
        wants=told(TEXT, "what the request asked for"),
        error=maybe(TEXT),
        rule=RULE,
        detail=TEXT,
        fault=told(maybe(TEXT), "ids of the faults that made the error, joined by commas"),
    ),
    "Why": of(why=TEXT, error=maybe(TEXT), at_ms=maybe(TIME_MS), rule=TEXT),
    "Held": of(transactional_id=TEXT, held_at=STEP, after_markers=INTEGER),
    "Released": of(transactional_id=TEXT, held_at={"type": "null"}),
    "Groups": of(groups=many(ref("GroupInShort"))),
    "GroupInShort": of(**GROUP),
    "Group": of(**GROUP, timeline=many(ref("GroupEvent"))),
    "GroupEvent": of(
        at_ms=TIME_MS,
        event=TEXT,
        state_before=TEXT,
        state_after=TEXT,
        epoch_before=told(INTEGER, "its generation; -1: there is none"),
        epoch_after=INTEGER,
        member_id=TEXT,
        instance_id=maybe(TEXT),
        **ASKER,
        error=maybe(TEXT),
        rule=RULE,
        fault=told(maybe(TEXT), "ids of the faults that made the error, joined by commas"),
    ),
    "Member": of(
        member_id=TEXT,
        client_id=TEXT,
        client_host=TEXT,
        instance_id=maybe(TEXT),
        epoch=INTEGER,
        assignment=told(many(TEXT), "such as topic-0"),
        leads=FLAG,
    ),
    "Versions": of(
        as_version=TEXT,
        releases=told(many(TEXT), "that can be played"),
        apis=by_name(maybe(of(min=INTEGER, max=INTEGER))),
    ),
    "Faults": of(faults=many(ref("Fault"))),
    "Fault": of(id=TEXT, hits=INTEGER, match=OBJECT, skip=INTEGER, times=maybe(INTEGER), probability=NUMBER, do=OBJECT),
    "Removed": of(removed=told(INTEGER, "how many")),
    "Journal": of(
        entries=many(ref("Entry")),
        kept=told(INTEGER, "how many requests the journal has"),
        dropped=told(INTEGER, "how many it had to forget"),
    ),
    "Entry": of(
        id=INTEGER,
        at_ms=TIME_MS,
        duration_ms=told(maybe(NUMBER), "null: it is being served"),
        broker=INTEGER,
        listener=TEXT,
        connection=INTEGER,
        client=told(TEXT, "HOST:PORT"),
        client_id=maybe(TEXT),
        software=maybe(TEXT),
        api=TEXT,
        version=INTEGER,
        correlation_id=INTEGER,
        outcome=TEXT,
        error=maybe(TEXT),
        fault=told(maybe(TEXT), "ids of the faults that met it, joined by commas"),
        request_bytes=INTEGER,
        response_bytes=INTEGER,
        request=OBJECT,
        response=maybe(OBJECT),
    ),
    "JournalFile": of(file=told(maybe(TEXT), "null: there was none to finish")),
    "Snapshots": of(snapshots=many(of(id=TEXT, at_ms=told(TIME_MS, "when it was taken")))),
    "SnapshotTaken": of(id=TEXT),
    "SnapshotRestored": of(id=TEXT, status={"const": "ok"}),
}
