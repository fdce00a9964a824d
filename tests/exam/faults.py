"""The faults that a client can have, made from the protocol: what is planted in the reference client, one at a time.

Fields that it fills and reads come from a run of the honest client (`Observed`), error codes from the tables below,
which follow the response handlers of Kafka's own clients; behaviours are the mutations of `tests/exam/reference`.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.exam.mutants import FURTHER, MUTANTS
from understudy.results import JournalEntry

RETRIED: Final = "REQUEST_TIMED_OUT"
FINAL: Final = "UNKNOWN_SERVER_ERROR"
IGNORED: Final = "NONE"
SUCCESS_AS: Final = (FINAL,)
RETRIABLE_AS: Final = (IGNORED, FINAL)
REFUSED_AS: Final = (IGNORED, RETRIED)
COORDINATOR: Final = ("COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR")

CODES: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "Produce": {
        "retriable": ("NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION", "NOT_ENOUGH_REPLICAS",
                      "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "REQUEST_TIMED_OUT", "KAFKA_STORAGE_ERROR", "CORRUPT_MESSAGE",
                      "CONCURRENT_TRANSACTIONS"),
        "reset": ("UNKNOWN_PRODUCER_ID", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        "success": ("DUPLICATE_SEQUENCE_NUMBER",),
        "abortable": ("INVALID_PRODUCER_EPOCH", "TRANSACTION_ABORTABLE", "TOPIC_AUTHORIZATION_FAILED"),
        "fatal": ("PRODUCER_FENCED", "INVALID_TXN_STATE", "CLUSTER_AUTHORIZATION_FAILED"),
        "final": ("MESSAGE_TOO_LARGE", "INVALID_RECORD", "UNKNOWN_SERVER_ERROR", "SNAPSHOT_NOT_FOUND",
                  "INVALID_REQUIRED_ACKS", "POLICY_VIOLATION"),
    },
    "InitProducerId": {
        "retriable": (*COORDINATOR, "CONCURRENT_TRANSACTIONS"),
        "fatal": ("PRODUCER_FENCED", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"),
        "final": ("INVALID_TRANSACTION_TIMEOUT",),
    },
    "EndTxn": {
        "retriable": (*COORDINATOR, "CONCURRENT_TRANSACTIONS"),
        "fatal": ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "INVALID_TXN_STATE"),
        "abortable": ("TRANSACTION_ABORTABLE",),
    },
    "TxnOffsetCommit": {
        "retriable": (*COORDINATOR, "UNKNOWN_TOPIC_OR_PARTITION"),
        "abortable": ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_INSTANCE_ID", "GROUP_AUTHORIZATION_FAILED",
                      "TRANSACTION_ABORTABLE"),
        "fatal": ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"),
    },
    "FindCoordinator": {"retriable": ("COORDINATOR_NOT_AVAILABLE",), "final": ("GROUP_AUTHORIZATION_FAILED",)},
    "Metadata": {
        "refresh": ("LEADER_NOT_AVAILABLE", "UNKNOWN_TOPIC_OR_PARTITION"),
        "reset": ("REBOOTSTRAP_REQUIRED",),
    },
    "Fetch": {
        "refresh": ("NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "OFFSET_NOT_AVAILABLE",
                    "KAFKA_STORAGE_ERROR", "UNKNOWN_TOPIC_OR_PARTITION", "REPLICA_NOT_AVAILABLE"),
        "session": ("FETCH_SESSION_ID_NOT_FOUND", "INVALID_FETCH_SESSION_EPOCH"),
        "reset": ("OFFSET_OUT_OF_RANGE",),
        "final": ("TOPIC_AUTHORIZATION_FAILED", "SNAPSHOT_NOT_FOUND", "CORRUPT_MESSAGE"),
    },
    "ListOffsets": {
        "refresh": ("NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH", "OFFSET_NOT_AVAILABLE", "LEADER_NOT_AVAILABLE"),
    },
    "OffsetForLeaderEpoch": {"refresh": ("NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH")},
    "JoinGroup": {
        "retriable": COORDINATOR,
        "rejoin": ("UNKNOWN_MEMBER_ID", "MEMBER_ID_REQUIRED", "REBALANCE_IN_PROGRESS"),
        "fatal": ("FENCED_INSTANCE_ID", "INCONSISTENT_GROUP_PROTOCOL", "GROUP_AUTHORIZATION_FAILED"),
    },
    "SyncGroup": {
        "retriable": ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"),
        "rejoin": ("REBALANCE_IN_PROGRESS", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"),
        "fatal": ("FENCED_INSTANCE_ID",),
    },
    "Heartbeat": {
        "retriable": ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"),
        "rejoin": ("REBALANCE_IN_PROGRESS", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"),
        "fatal": ("FENCED_INSTANCE_ID",),
    },
    "OffsetFetch": {
        "retriable": ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "UNSTABLE_OFFSET_COMMIT"),
        "rejoin": ("STALE_MEMBER_EPOCH",),
        "final": ("GROUP_AUTHORIZATION_FAILED",),
    },
    "OffsetCommit": {
        "retriable": (*COORDINATOR, "REQUEST_TIMED_OUT"),
        "rejoin": ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS", "STALE_MEMBER_EPOCH"),
        "fatal": ("FENCED_INSTANCE_ID",),
        "final": ("OFFSET_METADATA_TOO_LARGE", "TOPIC_AUTHORIZATION_FAILED"),
    },
    "ConsumerGroupHeartbeat": {
        "retriable": COORDINATOR,
        "rejoin": ("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH"),
        "fatal": ("UNRELEASED_INSTANCE_ID", "GROUP_AUTHORIZATION_FAILED"),
    },
    "ShareGroupHeartbeat": {"retriable": COORDINATOR, "rejoin": ("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH")},
    "ShareFetch": {
        "refresh": ("NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION"),
        "session": ("SHARE_SESSION_NOT_FOUND", "INVALID_SHARE_SESSION_EPOCH"),
    },
    "ShareAcknowledge": {
        "final": ("NOT_LEADER_OR_FOLLOWER", "INVALID_RECORD_STATE", "SHARE_SESSION_NOT_FOUND"),
    },
    "CreateTopics": {
        "retriable": ("NOT_CONTROLLER", "THROTTLING_QUOTA_EXCEEDED", "REQUEST_TIMED_OUT"),
        "final": ("TOPIC_ALREADY_EXISTS", "POLICY_VIOLATION", "INVALID_REPLICATION_FACTOR"),
    },
    "SaslAuthenticate": {"fatal": ("SASL_AUTHENTICATION_FAILED",)},
    "SaslHandshake": {"fatal": ("UNSUPPORTED_SASL_MECHANISM",)},
}  # fmt: skip
"""API -> how Kafka's own clients react -> error codes."""

BATCH: Final = ("producer_id", "producer_epoch", "base_sequence", "transactional", "codec", "records.key",
                "records.value", "records.headers", "records.timestamp_ms")  # fmt: skip
BLANK: Final[tuple[Any, ...]] = (0, -1, None, "", [], False)
MEANT: Final = frozenset({
    "Produce.acks", "Fetch.topics.partitions.fetch_offset", "ListOffsets.topics.partitions.timestamp",
    "Fetch.session_epoch", "InitProducerId.producer_epoch", "EndTxn.producer_id", "EndTxn.producer_epoch",
    "ShareFetch.share_session_epoch", "Fetch.topics.partitions.current_leader_epoch",
    "Metadata.topics.partitions.leader_epoch",
})  # fmt: skip
"""Fields whose zero or -1 is meant."""
READ: Final = (
    "FindCoordinator.coordinators.host", "FindCoordinator.coordinators.port", "Metadata.brokers",
    "Metadata.brokers.node_id", "Metadata.brokers.host", "Metadata.brokers.port", "Metadata.topics.topic_id",
    "Metadata.topics.partitions", "Metadata.topics.partitions.leader_id", "Metadata.topics.partitions.leader_epoch",
    "Metadata.topics.partitions.partition_index", "Produce.responses",
    "Produce.responses.name", "Produce.responses.partition_responses.base_offset",
    "InitProducerId.producer_id", "InitProducerId.producer_epoch", "EndTxn.producer_id", "EndTxn.producer_epoch",
    "Fetch.responses.partitions.aborted_transactions", "Fetch.responses.partitions.aborted_transactions.producer_id",
    "Fetch.responses.partitions.aborted_transactions.first_offset", "Fetch.responses.partitions.records",
    "Fetch.session_id", "ListOffsets.topics.partitions.offset", "OffsetForLeaderEpoch.topics.partitions.end_offset",
    "JoinGroup.member_id", "JoinGroup.generation_id", "JoinGroup.leader", "JoinGroup.members",
    "JoinGroup.members.member_id", "JoinGroup.members.metadata", "SyncGroup.assignment",
    "OffsetCommit.topics.partitions", "OffsetFetch.groups.topics", "OffsetFetch.groups.topics.name",
    "OffsetFetch.groups.topics.partitions", "OffsetFetch.groups.topics.partitions.partition_index",
    "OffsetFetch.groups.topics.partitions.committed_offset", "TxnOffsetCommit.topics.partitions",
    "ConsumerGroupHeartbeat.member_epoch",
    "ConsumerGroupHeartbeat.assignment.topic_partitions.topic_id",
    "ConsumerGroupHeartbeat.assignment.topic_partitions.partitions", "ShareGroupHeartbeat.member_epoch",
    "ShareGroupHeartbeat.assignment.topic_partitions.topic_id",
    "ShareGroupHeartbeat.assignment.topic_partitions.partitions", "ShareFetch.responses.partitions.records",
    "ShareFetch.responses.partitions.acquired_records", "ShareFetch.responses.partitions.acquired_records.first_offset",
    "ShareFetch.responses.partitions.acquired_records.last_offset",
)  # fmt: skip
"""The fields of responses, besides error codes, that the reference client reads."""


RESUMED: Final = ("groups/commit-and-resume", "groups/offsets-of-three-partitions", "transactions/pending-offsets")
PREFERRED: Final[Mapping[str, tuple[str, ...]]] = {
    "OffsetCommit": (*RESUMED, "groups/static-member-fenced", "consumer-protocol/commit-and-resume"),
    "OffsetFetch": (*RESUMED, "consumer-protocol/plain", "consumer-protocol/commit-and-resume"),
    "TxnOffsetCommit": ("transactions/exactly-once-copy", "transactions/offsets-one-partition-refused"),
    "Heartbeat": ("groups/plain", "groups/static-member-returns", "groups/coordinator-moves"),
    "LeaveGroup": ("groups/leaves-when-closed",),
    "ListOffsets": ("groups/latest", "consumers/open-transaction"),
    "Fetch": ("consumers/interleaved-aborted", "consumers/open-transaction", "consumers/leader-returns"),
    "Metadata": ("truncation/without-reset", "produce/three-partitions", "consumers/open-transaction"),
    "ShareAcknowledge": ("share/accept", "share/release"),
    "ShareFetch": ("share/plain", "share/release-one-of-five"),
    "ShareGroupHeartbeat": ("share/plain", "share/three-partitions"),
    "ConsumerGroupHeartbeat": ("consumer-protocol/two-members", "consumer-protocol/plain"),
}
"""API -> scenarios that depend on what it carries."""
ONCE: Final = "the error comes once, and the client asks again in any case; where the state lasts, it is found"
EQUIVALENT: Final = (
    (r"send \w+\.(.*_bytes|.*timeout_ms|max_wait_ms|batch_size|max_records) other", "one more is allowed"),
    (r"send Fetch\..*high_watermark", "of followers only"),
    (r"send Fetch\.topics\.partitions\.partition_max_bytes 0", "the broker returns one batch at least"),
    (r"send Fetch\.session_epoch", "0 begins a session, and the reference client uses none"),
    (r"read Fetch\.session_id", "the reference client uses no sessions; those of others are checked on the wire"),
    (r"send RecordBatch\.records\.headers", "the contract of drivers has none"),
    (r"send Metadata\.allow_auto_topic_creation", "the cluster of the exam creates none"),
    (
        r"take (Produce|Fetch) (UNKNOWN_SERVER_ERROR|SNAPSHOT_NOT_FOUND) as REQ",
        "a client may repeat what it does not know",
    ),
    (r"take ShareAcknowledge \w+ as REQ", "it is reported as failed, by another name"),
    (r"(first|last) Produce\.responses", "what a response does not mention is sent again"),
    (r"take Produce OUT_OF_ORDER_SEQUENCE_NUMBER as UNK", "either ends the transaction"),
    (r"send ShareFetch\.(batch_size|min_bytes) 0", "a preference that the broker need not follow"),
    (r"take OffsetCommit \w+ as UNK", "a commit may be reported as failed"),
    (r"take Sasl\w+ \w+ as REQ", "any error ends the authentication"),
    (r"take CreateTopics REQUEST_TIMED_OUT as UNK", "Kafka's own client reports it, too"),
    (r"take Metadata", "the reference client looks for a leader in each response"),
    (r"take \w+ (GROUP|TOPIC)_AUTHORIZATION_FAILED as REQ", "access may be granted later"),
    (r"take \w+ \w+ as NONE", ONCE),
    (r"read \w+\.member_id", "the client keeps the id that it chose itself"),
)
"""Patterns of faults that no scenario can find, and why."""


@dataclass(frozen=True)
class Fault:
    """A mutation, and what it is about."""

    kind: str
    mutation: str


@dataclass
class Observed:
    """What the honest client sent and read in each scenario."""

    seconds: dict[str, float] = field(default_factory=dict)
    apis: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    codes: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    sent: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    read: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    fields: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    unfit: set[str] = field(default_factory=set)
    """Scenarios that the honest client fails, as they take longer than the plays of faults wait."""

    def add(self, scenario: str, entries: Iterable[JournalEntry], seconds: float) -> None:
        """Add a play."""
        self.seconds[scenario] = seconds
        for entry in entries:
            if not (entry.client_id or "").startswith("exam-"):
                continue
            self.apis[entry.api].add(scenario)
            for path, value in leaves(entry.request, entry.api):
                self.sent[path].append(value)
                if value not in BLANK or path in MEANT:
                    self.fields[path].add(scenario)
            for path, value in leaves(entry.response or {}, entry.api):
                if path.endswith("error_code"):
                    self.codes[entry.api, str(value)].add(scenario)
                self.read[path].append(value)
                if value not in BLANK or path in MEANT:
                    self.fields[f"{path} read"].add(scenario)
                if isinstance(value, list) and len(value) > 1:
                    self.fields[f"{path} of several"].add(scenario)

    def scenarios(self, mutation: str) -> list[str]:
        """Return the scenarios in which a fault can have an effect: those that are about it, then the quickest."""
        pairs = [*MUTANTS.items(), *((name, each) for name, each, _ in FURTHER)]
        about = [name for name, each in pairs if each == mutation]
        match mutation.split():
            case ["send", path, _] if path.startswith("RecordBatch."):
                api, affected = "Produce", self.apis["Produce"]
            case ["send", path, _]:
                api, affected = path.partition(".")[0], self.fields[path]
            case ["read", path, _]:
                api = path.partition(".")[0]
                affected = self.fields[f"{path} read"] or self.apis[api]
            case ["take", api, code, _, _]:
                affected = self.codes[api, code]
            case ["first" | "last", path]:
                api, affected = path.partition(".")[0], self.fields[f"{path} of several"]
            case _:
                return about
        about += [name for name in PREFERRED.get(api, ()) if name in affected]
        names = [*about, *sorted(affected, key=lambda name: self.seconds.get(name, 99.0))]
        return [name for name in dict.fromkeys(names) if name not in self.unfit]


def leaves(message: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Return the fields of a message in JSON, with their paths; also those that are lists."""
    if isinstance(message, dict) and not {"size_bytes", "base64"} & message.keys():
        for name, value in message.items():
            yield from leaves(value, f"{path}.{name}")
    elif isinstance(message, list):
        yield path, message
        for each in message:
            if isinstance(each, dict):
                yield from leaves(each, path)
    else:
        yield path, message


def why_equivalent(mutation: str) -> str:
    """Return why no scenario can find a fault; empty, if one should."""
    return next((why for pattern, why in EQUIVALENT if re.match(pattern, mutation)), "")


def wrong_values(path: str, values: Iterable[Any]) -> Iterator[str]:
    """Return what a field may be sent or read as instead."""
    known = [value for value in values if value is not None]
    yield "other"
    if any(isinstance(value, bool) for value in known) or path.endswith("topic_id"):
        return
    if any(isinstance(value, int) and value not in {0, -1} for value in known):
        yield "-1" if re.search(r"(epoch|generation\w*|_id|sequence)$", path) else "0"
    elif any(isinstance(value, str) and value for value in known):
        yield '""'
    elif any(isinstance(value, list) and len(value) > 1 for value in known):
        yield "[]"


def faults(observed: Observed) -> list[Fault]:
    """Return the table."""
    named = {*MUTANTS.values(), *(name for _, name, _ in FURTHER)}
    table = [Fault("behaviour", each) for each in sorted(named) if " " not in each]
    for path in sorted(path for path in observed.fields if " " not in path):
        if path in observed.sent and path.split(".")[0] != "ApiVersions":
            table += [Fault("field sent", f"send {path} {value}") for value in wrong_values(path, observed.sent[path])]
    table += [Fault("field sent", f"send RecordBatch.{name} {value}") for name in BATCH for value in _of_batches(name)]
    for path in READ:
        values = observed.read.get(path, [])
        if any(isinstance(value, list | tuple) for value in values):
            table += [Fault("list read", f"{which} {path}") for which in ("first", "last")]
        table += [Fault("field read", f"read {path} {value}") for value in wrong_values(path, values)]
    for api, classes in CODES.items():
        for kind, codes in classes.items():
            wrong = SUCCESS_AS if kind == "success" else REFUSED_AS if kind in REFUSALS else RETRIABLE_AS
            table += [
                Fault(f"error: {kind}", f"take {api} {code} as {taken}")
                for code in codes
                for taken in wrong
                if taken != code
            ]
    return table


REFUSALS: Final = frozenset({"final", "fatal", "abortable"})


def _of_batches(name: str) -> tuple[str, ...]:
    return {
        "transactional": ("other",),
        "codec": ("other", "0"),
        "records.key": ("null",),
        "records.value": ('"x"', "null"),
        "records.headers": ("other",),
        "records.timestamp_ms": ("-1",),
    }.get(name, ("other", "-1"))
