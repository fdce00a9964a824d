"""The faults of random schedules: a table, to which a line is added. Each is a list of verbs of scenario files."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from understudy.exam import codes

BROKERS: Final = (1, 2, 3)
LASTS_MS: Final = (300, 700, 1_200, 2_000)
"""How long a fault lasts: then a timer ends it, even if a call of the library still waits.

Up to the request timeout of the exam.
"""
UNDO: Final = {
    "brokers kill": "brokers start",
    "brokers stop": "brokers start",
    "brokers pause": "brokers resume",
    "transactions hold": "transactions release",
}
"""Verb -> what ends its effect. Faults of requests are removed."""
Verb = dict[str, Any]

PRODUCING: Final = ("Produce", "InitProducerId")
COMMITTING: Final = ("EndTxn", "AddPartitionsToTxn")
COPYING: Final = ("TxnOffsetCommit", "AddOffsetsToTxn")
READING: Final = ("Fetch", "ListOffsets", "OffsetForLeaderEpoch")
CLASSIC: Final = ("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup")
MEMBERSHIP: Final = ("OffsetCommit", "OffsetFetch")
APIS: Final[Mapping[str, Sequence[str]]] = {
    "plain": ("Produce",),
    "idempotent": PRODUCING,
    "transactional": (*PRODUCING, *COMMITTING, "FindCoordinator"),
    "reader": READING,
    "member": (*READING, *MEMBERSHIP, "FindCoordinator"),
    "sharer": ("ShareFetch", "ShareAcknowledge", "FindCoordinator"),
    "admin": ("CreateTopics",),
    "copier": (*READING, *MEMBERSHIP, *PRODUCING, *COMMITTING, *COPYING, "FindCoordinator"),
}
"""Role -> the APIs that it uses, besides Metadata and those of its group's protocol."""
PROTOCOLS: Final[Mapping[str, Sequence[str]]] = {
    "classic": CLASSIC,
    "consumer": ("ConsumerGroupHeartbeat",),
    "share": ("ShareGroupHeartbeat",),
}
"""Protocol of a group -> the APIs of its members."""
_COORDINATOR: Final = ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE")
_LEADER: Final = ("NOT_LEADER_OR_FOLLOWER", "LEADER_NOT_AVAILABLE")
CODES: Final[Mapping[str, Sequence[str]]] = {
    "Produce": (
        "NOT_LEADER_OR_FOLLOWER",
        "NOT_ENOUGH_REPLICAS",
        "REQUEST_TIMED_OUT",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "KAFKA_STORAGE_ERROR",
    ),
    "InitProducerId": (*_COORDINATOR, "CONCURRENT_TRANSACTIONS"),
    "EndTxn": (*_COORDINATOR, "CONCURRENT_TRANSACTIONS"),
    "AddPartitionsToTxn": (*_COORDINATOR, "CONCURRENT_TRANSACTIONS"),
    "AddOffsetsToTxn": (*_COORDINATOR, "CONCURRENT_TRANSACTIONS"),
    "TxnOffsetCommit": (*_COORDINATOR, "UNKNOWN_TOPIC_OR_PARTITION"),
    "Fetch": (
        "NOT_LEADER_OR_FOLLOWER",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
        "KAFKA_STORAGE_ERROR",
        "OFFSET_NOT_AVAILABLE",
        "FETCH_SESSION_ID_NOT_FOUND",
    ),
    "ListOffsets": (*_LEADER, "FENCED_LEADER_EPOCH", "OFFSET_NOT_AVAILABLE"),
    "OffsetForLeaderEpoch": ("NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH"),
    "JoinGroup": _COORDINATOR,
    "SyncGroup": (*_COORDINATOR, "REBALANCE_IN_PROGRESS"),
    "Heartbeat": ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"),
    "ConsumerGroupHeartbeat": _COORDINATOR,
    "OffsetCommit": (*_COORDINATOR, "REBALANCE_IN_PROGRESS"),
    "OffsetFetch": (*_COORDINATOR[:2], "UNSTABLE_OFFSET_COMMIT"),
    "FindCoordinator": ("COORDINATOR_NOT_AVAILABLE",),
    "ShareGroupHeartbeat": _COORDINATOR,
    "ShareFetch": ("NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION", "SHARE_SESSION_NOT_FOUND"),
    "ShareAcknowledge": ("NOT_LEADER_OR_FOLLOWER",),
    "CreateTopics": ("NOT_CONTROLLER", "THROTTLING_QUOTA_EXCEEDED", "REQUEST_TIMED_OUT"),
}
"""API -> retriable codes with which a broker may refuse a request that it has not processed."""
FINAL: Final[Mapping[str, Sequence[str]]] = {
    "Produce": ("MESSAGE_TOO_LARGE", "INVALID_RECORD", "TOPIC_AUTHORIZATION_FAILED", "UNKNOWN_SERVER_ERROR",
                "INVALID_REQUIRED_ACKS", "POLICY_VIOLATION", "UNKNOWN_PRODUCER_ID"),
    "EndTxn": ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "INVALID_TXN_STATE", "TRANSACTION_ABORTABLE"),
    "InitProducerId": ("CLUSTER_AUTHORIZATION_FAILED",),
    "TxnOffsetCommit": ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "GROUP_AUTHORIZATION_FAILED",
                        "TRANSACTION_ABORTABLE", "INVALID_PRODUCER_EPOCH"),
    "OffsetCommit": ("GROUP_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED", "OFFSET_METADATA_TOO_LARGE"),
    "CreateTopics": ("POLICY_VIOLATION", "INVALID_REPLICATION_FACTOR"),
    "ShareAcknowledge": ("INVALID_RECORD_STATE", "SHARE_SESSION_NOT_FOUND"),
    "Fetch": ("TOPIC_AUTHORIZATION_FAILED",),
    "JoinGroup": ("GROUP_AUTHORIZATION_FAILED",),
    "ConsumerGroupHeartbeat": ("GROUP_AUTHORIZATION_FAILED",),
    "OffsetFetch": ("GROUP_AUTHORIZATION_FAILED",),
}  # fmt: skip
"""API -> codes with which a request is refused for good: the library has to report an error."""
OF_TRANSACTIONS: Final = ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "INVALID_TXN_STATE", "TRANSACTION_ABORTABLE")
"""Further ones of Produce, with transactions."""
REFUSED_FOR_GOOD: Final = "refused for good"
"""After this fault consumers may be unable to go on: they are replaced before all has to be delivered."""
AFTER: Final[Mapping[str, Sequence[str]]] = {
    "Produce": ("NOT_ENOUGH_REPLICAS_AFTER_APPEND", "REQUEST_TIMED_OUT"),
    "OffsetCommit": ("REQUEST_TIMED_OUT",),
    "CreateTopics": ("REQUEST_TIMED_OUT",),
}
"""API -> codes that a broker may return although the request was processed."""

MET_BY: Final[Mapping[str, Sequence[str]]] = {
    "Produce": ("send",),
    "AddPartitionsToTxn": ("send",),
    "InitProducerId": ("restart",),
    "EndTxn": ("end", "copy"),
    "TxnOffsetCommit": ("copy",),
    "AddOffsetsToTxn": ("copy",),
    "Fetch": ("poll", "copy"),
    "OffsetForLeaderEpoch": ("poll",),
    "ListOffsets": ("restart",),
    "JoinGroup": ("restart",),
    "SyncGroup": ("restart",),
    "OffsetFetch": ("restart",),
    "FindCoordinator": ("restart",),
    "ConsumerGroupHeartbeat": ("poll", "restart"),
    "Heartbeat": ("poll",),
    "ShareFetch": ("share", "share and close"),
    "ShareAcknowledge": ("share", "share and close"),
    "ShareGroupHeartbeat": ("share", "restart"),
    "CreateTopics": ("create topic",),
    "LeaveGroup": ("close",),
    "OffsetCommit": ("commit offsets",),
    "leader move": ("send", "poll", "share"),
    "coordinators move": ("end", "commit offsets", "copy"),
    "groups evict": ("poll", "commit offsets", "copy", "share"),
    "groups rebalance": ("commit offsets", "copy"),
    "transactions abort": ("send", "end", "copy"),
    "transactions hold": ("end",),
}
"""API of a fault, or another verb -> the steps that meet it: one of them mostly comes next."""


def met_by(verbs: Sequence[Verb]) -> Sequence[str]:
    """Return the steps that meet a fault."""
    return MET_BY.get(verbs[0]["arguments"].get("api", verbs[0]["verb"]), ())


@dataclass(frozen=True, slots=True)
class About:
    """The clients of a schedule, for the faults that are drawn for it: APIs, topics with partitions, groups, ids."""

    apis: Sequence[str]
    topics: Mapping[str, int]
    groups: Sequence[str]
    transactional_ids: Sequence[str]

    def place(self, chance: Random) -> dict[str, Any]:
        """Return a partition."""
        topic = chance.choice(sorted(self.topics))
        return {"topic": topic, "partition": chance.randrange(self.topics[topic])}


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the table: `draw` returns the verbs, or None if the fault is of no use to these clients.

    `weight` is how often it is drawn beside the others: what clients meet most has more.
    """

    name: str
    weight: int
    draw: Callable[[Random, About], list[Verb] | None]


def _fault(**arguments: Any) -> list[Verb]:
    since = codes.SINCE.get((arguments["api"], arguments.get("error", "")))
    if since is not None:
        arguments["versions"] = [since, codes.NEWEST]
    return [{"verb": "faults add", "arguments": arguments}]


def _times(chance: Random) -> int:
    return chance.choice((1, 1, 2, 4))  # mostly once; 4 times is more than a library repeats at once


def _some(chance: Random, about: About, table: Mapping[str, Any]) -> str | None:
    apis = [api for api in about.apis if api in table]
    return chance.choice(apis) if apis else None


def _lost(chance: Random, about: About) -> list[Verb]:
    end = chance.choice(("close", "reset"))
    return _fault(api=chance.choice(about.apis), disconnect=end, times=_times(chance))


def _lost_reply(chance: Random, about: About) -> list[Verb]:
    end = chance.choice(("close", "reset"))
    return _fault(api=chance.choice(about.apis), apply_then={"disconnect": end}, times=_times(chance))


def _silent(chance: Random, about: About) -> list[Verb]:
    return _fault(api=chance.choice(about.apis), drop=True, times=1)


def _silent_reply(chance: Random, about: About) -> list[Verb]:
    return _fault(api=chance.choice(about.apis), apply_then={"drop": True}, times=1)


def _late(chance: Random, about: About) -> list[Verb]:
    where = chance.choice(("before", "after"))
    # Below and above the request timeout, 2 s (REQUEST_TIMEOUT_MS).
    delay_ms = chance.choice((100, 500, 1_200, 2_500))
    return _fault(api=chance.choice(about.apis), delay_ms=delay_ms, where=where, times=_times(chance))


def _refused(chance: Random, about: About) -> list[Verb] | None:
    api = _some(chance, about, CODES)
    return None if api is None else _fault(api=api, error=chance.choice(CODES[api]), times=_times(chance))


def _one_refused(chance: Random, about: About) -> list[Verb]:
    api = chance.choice([api for api in ("Produce", "Fetch") if api in about.apis])
    return _fault(api=api, error=chance.choice(CODES[api]), times=_times(chance), **about.place(chance))


def _no_metadata(chance: Random, _about: About) -> list[Verb]:
    # Of the topics alone: a broker always lists the brokers.
    code = chance.choice(("LEADER_NOT_AVAILABLE", "UNKNOWN_TOPIC_OR_PARTITION"))
    altered = {"topics.*.error_code": code, "topics.*.partitions": []}
    return _fault(api="Metadata", alter=altered, times=_times(chance))


def _refused_for_good(chance: Random, about: About) -> list[Verb] | None:
    api = _some(chance, about, FINAL)
    if api is None:
        return None
    more = OF_TRANSACTIONS if api == "Produce" and about.transactional_ids else ()
    return _fault(api=api, error=chance.choice((*FINAL[api], *more)), times=1)


def _done_and_refused(chance: Random, about: About) -> list[Verb] | None:
    api = _some(chance, about, AFTER)
    return None if api is None else _fault(api=api, apply_then={"error": chance.choice(AFTER[api])}, times=1)


def _cut(chance: Random, about: About) -> list[Verb]:
    # After the size field, within the first fields.
    return _fault(api=chance.choice(about.apis), bytes={"truncate": chance.randrange(4, 40)}, times=1)


def _drip(chance: Random, about: About) -> list[Verb]:
    return _fault(
        api=chance.choice(about.apis), bytes={"drip": {"size": chance.choice((1, 7)), "every_ms": 2}}, times=1
    )


def _throttled(chance: Random, about: About) -> list[Verb]:
    # Hardly noticed, and several polls long.
    return _fault(api=chance.choice(about.apis), throttle_ms=chance.choice((100, 600)), times=_times(chance))


def _broker(verb: str) -> Callable[[Random, About], list[Verb]]:
    return lambda chance, _about: [{"verb": verb, "arguments": {"broker": chance.choice(BROKERS)}}]


def _everything(_chance: Random, _about: About) -> list[Verb]:
    return [{"verb": "brokers kill", "arguments": {"broker": broker}} for broker in BROKERS]


def _leader(chance: Random, about: About) -> list[Verb]:
    return [{"verb": "leader move", "arguments": {**about.place(chance), "broker": chance.choice(BROKERS)}}]


def _all_leaders(chance: Random, about: About) -> list[Verb]:
    broker = chance.choice(BROKERS)
    places = [(topic, each) for topic, count in sorted(about.topics.items()) for each in range(count)]
    return [
        {"verb": "leader move", "arguments": {"topic": topic, "partition": each, "broker": broker}}
        for topic, each in places
    ]


def _coordinator(chance: Random, about: About) -> list[Verb] | None:
    keys = [("group", each) for each in about.groups] + [("transaction", each) for each in about.transactional_ids]
    if not keys:
        return None
    kind, key = chance.choice(keys)
    # Less than the request timeout: a load only delays.
    loading_ms = chance.choice((0, 300, 1_000))
    arguments = {"type": kind, "key": key, "broker": chance.choice(BROKERS), "loading_ms": loading_ms}
    return [{"verb": "coordinators move", "arguments": arguments}]


def _evicted(chance: Random, about: About) -> list[Verb] | None:
    # The id of a member is known only when the schedule is played: its index among the members is drawn.
    if not about.groups:
        return None
    arguments = {"group": chance.choice(about.groups), "member": chance.randrange(3)}  # of at most three
    return [{"verb": "groups evict", "arguments": arguments}]


def _rebalanced(chance: Random, about: About) -> list[Verb] | None:
    return [{"verb": "groups rebalance", "arguments": {"group": chance.choice(about.groups)}}] if about.groups else None


def _transaction(verb: str, **more: Any) -> Callable[[Random, About], list[Verb] | None]:
    def drawn(chance: Random, about: About) -> list[Verb] | None:
        if not about.transactional_ids:
            return None
        return [{"verb": verb, "arguments": {"transactional_id": chance.choice(about.transactional_ids), **more}}]

    return drawn


def _clock(chance: Random, _about: About) -> list[Verb]:
    # Two below and one above the session timeout (10 s), one above the transaction timeout (60 s).
    return [{"verb": "clock advance", "arguments": {"ms": chance.choice((1_000, 6_000, 12_000, 70_000))}}]


# Weights, ours: what libraries handle by different code is more frequent than what only delays.
FAULTS: Final = (
    Line("lost request", 6, _lost),
    Line("lost response", 10, _lost_reply),
    Line("no response", 3, _silent),
    Line("processed, no response", 3, _silent_reply),
    Line("late", 6, _late),
    Line("refused", 8, _refused),
    Line("one partition refused", 5, _one_refused),
    Line("processed and refused", 4, _done_and_refused),
    Line(REFUSED_FOR_GOOD, 5, _refused_for_good),
    Line("no metadata of topics", 3, _no_metadata),
    Line("response cut off", 2, _cut),
    Line("response in pieces", 2, _drip),
    Line("throttled", 1, _throttled),
    Line("leader moves", 5, _leader),
    Line("leaders on one broker", 3, _all_leaders),
    Line("coordinator moves", 5, _coordinator),
    Line("broker killed", 5, _broker("brokers kill")),
    Line("broker stopped", 3, _broker("brokers stop")),
    Line("broker paused", 3, _broker("brokers pause")),
    Line("all brokers restart", 2, _everything),
    Line("member evicted", 5, _evicted),
    Line("rebalance", 3, _rebalanced),
    Line("transaction aborted", 3, _transaction("transactions abort")),
    Line("transaction held before its markers", 2, _transaction("transactions hold", at="prepare")),
    Line("clock", 3, _clock),
)


def about(clients: Collection[Mapping[str, Any]], topics: Mapping[str, int]) -> About:
    """Return what faults are drawn from."""
    apis = ["Metadata"]
    for client in clients:
        apis += APIS[client["role"]]
        if "group" in client:
            apis += PROTOCOLS[client["protocol"]]
    used = {client[name] for client in clients for name in ("topic", "output") if name in client}
    return About(
        sorted(set(apis)),
        {topic: topics[topic] for topic in used},
        sorted({client["group"] for client in clients if "group" in client}),
        sorted({client["transactional_id"] for client in clients if "transactional_id" in client}),
    )
