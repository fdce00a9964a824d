"""Scripts whose requests overlap, by hand: each has one thing that waits, and what happens beside it.

``ONE`` and ``STREAMS`` are for a broker, ``LIMITED`` for one with SASL and few share sessions, ``THREE`` for three
brokers, of which broker 1 is Kafka's controller. Connections are numbered; members
of classic groups have their own. A wait of a minute lasts beyond the end of a script.
"""

from typing import Any

from comparison.histories.step_request import Step

LONG_MS, SHORT_MS, LOADED_MS = 60_000, 3_000, 2_500
NOW: dict[str, Any] = {"now": True}
PLACE: dict[str, Any] = {"topic": "t0", "partition": 0}
GROUP = {"c": "0", "group": "g0"}
ACCEPT, RELEASE, REJECT = 1, 2, 3


def create(topic: str = "t0", partitions: int = 1, **fields: Any) -> Step:
    """CreateTopics of one topic."""
    return {"do": "create_topic", "v": 7, "c": "0", "topic": topic, "partitions": partitions, **fields}


def replicas(*brokers: int, **configs: str) -> Step:
    """CreateTopics of one partition with these replicas, whose first one leads."""
    return create(assign=[list(brokers)], configs={name.replace("_", "."): value for name, value in configs.items()})


def poll(c: str = "1", offset: int = 0, wait_ms: int = LONG_MS, min_bytes: int = 1, **fields: Any) -> Step:
    """Fetch that waits."""
    step = {"do": "fetch", "v": 12, "c": c, **PLACE, "offset": offset, "max_wait": wait_ms, "min_bytes": min_bytes}
    return {**step, **fields}


def session(partitions: Any, c: str = "1", name: str = "s0", wait_ms: int = LONG_MS, **fields: Any) -> Step:
    """Fetch of a session that waits."""
    step = {"do": "fetch_session", "v": 12, "c": c, "session": name, "partitions": partitions, "max_wait": wait_ms}
    return {**step, "min_bytes": 1, **fields}


def produce(count: int = 1, c: str = "0", **fields: Any) -> Step:
    """Produce of records of ten bytes each."""
    records = [["a", "b" * 10, second] for second in range(count)]
    return {"do": "produce", "v": 9, "c": c, **PLACE, "records": records, "acks": 1, **fields}


def delete_topic(c: str = "2") -> Step:
    """DeleteTopics."""
    return {"do": "delete_topic", "v": 5, "c": c, "topic": "t0"}


def delete_records(offset: int, c: str = "2", **fields: Any) -> Step:
    """DeleteRecords."""
    return {"do": "delete_records", "v": 2, "c": c, **PLACE, "offset": offset, **fields}


def lead(first: int, *others: int) -> list[Step]:
    """Reassign the replicas, and elect the first one."""
    moved = {"do": "reassign", "v": 0, "c": "3", **PLACE, "replicas": [first, *others]}
    return [moved, {"do": "elect_leaders", "v": 2, "c": "3", **PLACE, "type": 0}]


# --- transactions ----------------------------------------------------------------------------------------------------


def init(number: int = 0, c: str = "0") -> Step:
    """InitProducerId of a transactional id."""
    return {"do": "init_producer", "v": 4, "c": c, "transactional_id": f"x{number}", "producer": f"p{number}"}


def write(number: int = 0, count: int = 1, **fields: Any) -> list[Step]:
    """AddPartitionsToTxn, and a transactional Produce."""
    producer = {"producer": f"p{number}"}
    added = {"do": "add_partitions", "v": 3, "c": "0", **producer, "partitions": {"t0": [0]}}
    return [added, produce(count, **producer, transactional=True, **{"acks": -1, **fields})]


def end(number: int = 0, *, commit: bool = True, c: str = "0", **fields: Any) -> Step:
    """EndTxn."""
    return {"do": "end_transaction", "v": 3, "c": c, "producer": f"p{number}", "commit": commit, **fields}


# --- groups ----------------------------------------------------------------------------------------------------------


def join(member: str, *protocols: str, **fields: Any) -> Step:
    """JoinGroup."""
    named = [[name, "", ["t0"]] for name in protocols or ("range",)]
    return {"do": "join", "v": 5, **GROUP, "member": member, "protocols": named, **fields}


def of_member(do: str, member: str, **fields: Any) -> Step:
    """A request of a member: sync, heartbeat, leave or commit."""
    version = 8 if do == "commit" else 3
    return {"do": do, "v": version, **GROUP, "member": member, **({} if do != "commit" else PLACE), **fields}


STABLE: list[Step] = [create(), join("m0"), join("m0"), of_member("sync", "m0")]
JOINING: list[Step] = [*STABLE, join("m1"), join("m1")]
"""The second one waits until the first one joins again."""
SYNCING: list[Step] = [*JOINING, join("m0"), of_member("sync", "m1")]
DELETE_GROUP: Step = {"do": "delete_group", "v": 2, **GROUP}


# --- share groups ----------------------------------------------------------------------------------------------------


def share(member: str, c: str, wait_ms: int = LONG_MS, **fields: Any) -> Step:
    """ShareFetch."""
    step = {"do": "share_fetch", "v": 1, "c": c, "group": "h0", "member": member, "epoch": "own", "max_wait": wait_ms}
    return {**step, "topics": [["t0", 0]], "max_records": 500, "batch_size": 500, **fields}


def beat(member: str, epoch: Any = 0, c: str = "3") -> Step:
    """ShareGroupHeartbeat."""
    topics = {"topics": ["t0"]} if epoch == 0 else {}
    return {"do": "share_beat", "v": 1, "c": c, "group": "h0", "member": member, "epoch": epoch, **topics}


def acknowledge(kind: int) -> Step:
    """ShareAcknowledge of all records of the first member."""
    step = {"do": "share_ack", "v": 1, "c": "0", "group": "h0", "member": "S0", "epoch": "own"}
    return {**step, "acks": [["t0", 0, "all", [kind]]]}


def configured(name: str, value: str) -> Step:
    """A setting of the share group."""
    return {"do": "group_config", "v": 1, "c": "3", "group": "h0", "name": name, "value": value}


LOADED: list[Step] = [
    *(create(), configured("share.auto.offset.reset", "earliest"), beat("S0"), beat("S1")),
    *(share("S0", "0", LOADED_MS), {**share("S1", "1", LOADED_MS), **NOW}, {"do": "await"}),
]
"""Both members have sessions, and the partition is loaded."""
HELD: list[Step] = [*LOADED, produce(3, c="3"), share("S0", "0"), share("S1", "1", SHORT_MS)]
"""The first member has all records, and the second one waits."""

ONE: dict[str, list[Step]] = {
    "poll, records": [create(), poll(min_bytes=200), produce(), produce(3), poll("2", min_bytes=200), produce()],
    "poll, topic deleted": [create(), poll(), delete_topic()],
    "poll for more than there is, topic deleted": [create(), produce(), poll(min_bytes=1 << 20), delete_topic()],
    "session, topic deleted": [
        *(create(), create("t1"), session({"t0": [[0, 0]], "t1": [[0, 0]]}), delete_topic()),
        *(session({}), produce(topic="t1")),
    ],
    "poll of an unknown topic, created": [poll(wait_ms=SHORT_MS), create(), poll(), produce()],
    "session of an unknown partition, created": [
        *(create(), session({"t0": [[0, 0], [5, 0]]}, wait_ms=SHORT_MS), produce()),
        {"do": "create_partitions", "v": 3, "c": "0", "topic": "t0", "count": 7},
        *(session({}, wait_ms=SHORT_MS), produce(partition=5)),
    ],
    "poll beyond the end": [create(), produce(2), poll(offset=5), poll("2", 3, SHORT_MS), produce()],
    "poll, records deleted": [create(), produce(5), poll(offset=5), delete_records(3), delete_records(-1), produce()],
    "poll below the new start": [create(), produce(5), poll(offset=2, min_bytes=5_000), delete_records(3), produce()],
    "poll in another epoch": [create(), poll(epoch=0), poll("2", 0, SHORT_MS, epoch=5), produce()],
    "requests behind a poll": [create(), poll(), produce(c="1", **NOW), produce(c="1", acks=0, **NOW), produce()],
    "session on two connections": [
        *(create(), produce(), session({"t0": [[0, 1]]}, wait_ms=SHORT_MS), session({})),
        *(session({}, "2", wait_ms=SHORT_MS), produce()),
    ],
    "session begun again": [
        *(create(), session({"t0": [[0, 0]]}, wait_ms=SHORT_MS), session({})),
        *(session({"t0": [[0, 0]]}, "2", begin=True), produce()),
    ],
    **{
        f"poll of isolation level {level}, transaction {'commits' if commit else 'aborts'}": [
            *(create(), init(), poll(isolation=level), *write(), poll("2", 1, isolation=level), end(commit=commit)),
            *(poll("3", 2, isolation=level), produce()),
        ]
        for level in (0, 1)
        for commit in (True, False)
    },
    "poll, two transactions": [
        *(create(), init(), init(1), *write(), *write(1), poll(isolation=1), end()),
        *(poll("2", 1, isolation=1), end(1, commit=False)),
    ],
    "poll for bytes above the last stable offset": [
        *(create(), init(), *write(count=3), poll(isolation=1, min_bytes=150), produce(3), end(), produce(5)),
    ],
    "poll, producer fenced": [create(), init(), *write(), poll(isolation=1), init(c="3"), produce()],
    "poll, topic of a transaction deleted": [create(), init(), *write(), poll(isolation=1), delete_topic(), end()],
    "poll, records of a transaction deleted": [
        *(create(), init(), *write(count=3), poll(isolation=1), delete_records(2), end()),
    ],
    "join waits, member leaves": [*JOINING, of_member("leave", "m0"), of_member("sync", "m1")],
    "join waits, repeated": [*JOINING, join("m1"), join("m0")],
    "join waits, connection cut": [*JOINING, {"do": "cut", "c": "member m1"}, join("m0"), join("m1")],
    "join waits, offsets committed": [
        *(*JOINING, of_member("commit", "m0", offset=2), join("m0")),
        *(of_member("commit", "m0", offset=3), of_member("commit", "m1", offset=3), of_member("sync", "m0")),
        of_member("commit", "m0", offset=4),
    ],
    "join waits, group deleted": [
        *JOINING,
        DELETE_GROUP,
        of_member("leave", "m0"),
        of_member("leave", "m1"),
        DELETE_GROUP,
    ],
    "join waits, topic deleted": [*JOINING, delete_topic(), join("m0")],
    "join waits, other protocols": [
        *(*STABLE, join("m1"), join("m1", "sticky"), join("m1", "sticky", "range"), join("m0", "sticky", "range")),
    ],
    "sync waits, leader leaves": [*SYNCING, of_member("leave", "m0"), join("m1"), of_member("sync", "m1")],
    "sync waits, third member joins": [
        *SYNCING,
        join("m2"),
        join("m2"),
        of_member("sync", "m0"),
        join("m0"),
        join("m1"),
    ],
    "sync waits, heartbeat": [
        *SYNCING,
        of_member("heartbeat", "m1"),
        of_member("sync", "m0"),
        of_member("heartbeat", "m1"),
    ],
    "sync waits, repeated": [*SYNCING, of_member("sync", "m1"), of_member("sync", "m0")],
    "join of a static member waits, replaced": [
        *(create(), join("m0", instance="i0"), of_member("sync", "m0"), join("m1"), join("m1")),
        *(join("m2", instance="i0"), of_member("sync", "m2"), of_member("sync", "m1")),
    ],
    "share fetch, records": [*LOADED, share("S0", "0"), produce(c="3"), share("S0", "0"), produce(2, c="3")],
    "two share fetches, records": [*LOADED, share("S0", "0"), share("S1", "1"), produce(c="3"), produce(c="3")],
    "share fetch, accepted": [*HELD, acknowledge(ACCEPT), produce(c="3")],
    "share fetch, released": [*HELD, acknowledge(RELEASE), produce(c="3")],
    "share fetch, rejected": [*HELD, acknowledge(REJECT), produce(c="3")],
    "share fetch, member leaves": [*HELD, beat("S0", -1), share("S0", "0", topics=[], epoch=-1), produce(c="3")],
    "share fetch, waiting member leaves": [*LOADED, share("S1", "1", SHORT_MS), beat("S1", -1), produce(c="3")],
    "share fetch, topic deleted": [*LOADED, share("S1", "1", SHORT_MS), delete_topic("3")],
    "share fetch, records deleted": [*HELD, delete_records(2, "3"), acknowledge(ACCEPT), produce(c="3")],
    "share fetch for many bytes": [
        *LOADED,
        share("S1", "1", SHORT_MS, min_bytes=500),
        produce(c="3"),
        produce(30, c="3"),
    ],
    "share fetch, topic deleted before its wait is over": [*LOADED, share("S1", "1"), delete_topic("3")],
    "share fetch, topic with acquired records deleted": [
        *(*LOADED, produce(3, c="3"), share("S0", "0"), share("S1", "1"), delete_topic("3")),
    ],
    "share fetch, offsets altered": [
        *(*HELD, beat("S0", -1), beat("S1", -1)),
        {"do": "alter_share_offsets", "v": 0, "c": "3", "group": "h0", "places": [["t0", 0, 0]]},
    ],
    "share fetch, group deleted": [
        *(*LOADED, share("S1", "1"), beat("S0", -1), beat("S1", -1)),
        *({"do": "delete_share_group", "v": 2, "c": "3", "group": "h0"}, produce(c="3")),
    ],
    "share fetch, final epoch": [*HELD, share("S0", "0", topics=[], epoch=-1), produce(c="3")],
    "share fetch, holder's connection cut": [*HELD, {"do": "cut", "c": "0"}, produce(c="3")],
    "share fetch, partitions added": [
        *(*LOADED, share("S1", "1")),
        {"do": "create_partitions", "v": 3, "c": "3", "topic": "t0", "count": 3},
        *(produce(c="3", partition=2), produce(c="3")),
    ],
    "share fetch of two partitions": [
        *(create(partitions=2), *LOADED[1:], share("S1", "1", topics=[["t0", 0], ["t0", 1]])),
        *(produce(c="3", partition=1), share("S1", "1", topics=[]), produce(c="3")),
    ],
    "share fetches of one record": [
        *(*LOADED, produce(3, c="3"), share("S0", "0", max_records=1), share("S1", "1", max_records=1)),
        *(acknowledge(RELEASE), share("S0", "0", max_records=1)),
    ],
    "share fetch, transaction aborts": [
        *(*LOADED, configured("share.isolation.level", "read_committed"), init(c="3"), share("S1", "1")),
        *(*write(c="3"), end(commit=False, c="3"), produce(c="3")),
    ],
    "share fetch, transaction commits": [
        *(*LOADED, configured("share.isolation.level", "read_committed"), init(c="3"), share("S1", "1")),
        *(*write(c="3"), end(c="3"), produce(c="3")),
    ],
}
THREE: dict[str, list[Step]] = {
    "poll, leader moves": [replicas(2, 3), poll(b=2), *lead(3, 2), produce(b=3)],
    "session, leader moves": [replicas(2, 3), session({"t0": [[0, 0]]}, b=2), *lead(3, 2), session({}, b=2)],
    "poll at a follower": [replicas(2, 3), poll(b=3), produce(), poll("2", 1, SHORT_MS, b=3)],
    "poll at a follower, topic deleted": [replicas(2, 3), poll(b=3), delete_topic()],
    "poll, replica removed": [replicas(2, 3), poll(b=2), lead(1, 3)[0], produce(b=1)],
    "acks=all, timeout": [replicas(2, 3), {"do": "pause", "broker": 3}, produce(acks=-1, timeout=1_200), poll("1")],
    "acks=all, replicated": [
        *(replicas(2, 3), produce(acks=-1), {"do": "pause", "broker": 3}, produce(acks=-1, timeout=30_000)),
        *(poll(offset=1), {"do": "resume", "broker": 3}),
    ],
    "requests behind acks=all": [
        *(replicas(2, 3), produce(acks=-1), {"do": "pause", "broker": 3}, produce(acks=-1, timeout=1_500)),
        *(produce(**NOW), {"do": "await"}, {"do": "resume", "broker": 3}),
    ],
    "acks=all, topic deleted": [
        *(replicas(2, 3), {"do": "pause", "broker": 3}, produce(acks=-1, timeout=30_000)),
        *(delete_topic(), {"do": "resume", "broker": 3}),
    ],
    "acks=all, leader moves": [
        *(replicas(2, 3, 1), {"do": "pause", "broker": 3}, produce(acks=-1, timeout=30_000), *lead(1, 2, 3)),
        {"do": "resume", "broker": 3},
    ],
    "acks=all, records deleted": [
        *(replicas(2, 3), produce(3, acks=-1), {"do": "pause", "broker": 3}, produce(acks=-1, timeout=30_000)),
        *(delete_records(2, timeout=30_000), {"do": "resume", "broker": 3}),
    ],
    "records deleted, timeout": [
        *(replicas(2, 3), produce(3, acks=-1), {"do": "pause", "broker": 3}, delete_records(2, timeout=1_500)),
        {"do": "resume", "broker": 3},
    ],
    "poll below what is replicated": [
        *(replicas(2, 3), {"do": "pause", "broker": 3}, poll(min_bytes=150), produce(2), poll("2", 1), produce(3)),
        {"do": "resume", "broker": 3},
    ],
    "transaction ends, follower paused": [
        *(replicas(2, 3), init(), *write(), poll(isolation=1), {"do": "pause", "broker": 3}, end()),
        {"do": "resume", "broker": 3},
    ],
}


# --- users who log in, and two share sessions at most ----------------------------------------------------------------

ALICE = "as:alice"
LITERAL, ANY, READ, WRITE, ALLOW = 3, 1, 3, 4, 3
TOPIC_RESOURCE, GROUP_RESOURCE = 2, 3


def allow(operation: int = READ, kind: int = TOPIC_RESOURCE, name: str = "t0") -> Step:
    """CreateAcls: alice may do something."""
    return {
        "do": "create_acls", "v": 3, "c": "0", "acls": [[kind, name, LITERAL, "User:alice", "*", operation, ALLOW]]
    }  # fmt: skip


def forbid(kind: int = TOPIC_RESOURCE, name: str = "t0") -> Step:
    """DeleteAcls of all that alice may do."""
    return {"do": "delete_acls", "v": 3, "c": "0", "filters": [[kind, name, LITERAL, "User:alice", None, ANY, ANY]]}


def login_again(do: str, **fields: Any) -> Step:
    """A handshake or a login on alice's connection, behind what waits there."""
    return {"do": do, "c": ALICE, **fields, **NOW}


def in_group(group: str, step: Step) -> Step:
    """The same in another share group."""
    return {**step, "group": group}


SHARED_BY_ALICE: list[Step] = [
    *(create(), configured("share.auto.offset.reset", "earliest"), beat("S0")),
    *(allow(), allow(READ, GROUP_RESOURCE, "h0"), share("S0", ALICE, LOADED_MS), {"do": "await"}),
]
LIMITED: dict[str, list[Step]] = {
    "poll of a user, right taken away": [create(), allow(), poll(ALICE), forbid(), produce(), poll(ALICE, 1, SHORT_MS)],
    "poll of a user without a right, given meanwhile": [create(), poll(ALICE, 0, SHORT_MS), allow(), produce()],
    "session of a user, right taken away": [
        *(create(), create("t1"), allow(), allow(name="t1")),
        *(session({"t0": [[0, 0]], "t1": [[0, 0]]}, ALICE), forbid(), produce(topic="t1")),
        *(session({}, ALICE, wait_ms=SHORT_MS), produce()),
    ],
    "session of a user, continued by another": [
        *(create(), allow(), session({"t0": [[0, 0]]}, ALICE, wait_ms=SHORT_MS), session({}, "as:bob"), produce()),
    ],
    "handshake behind a poll": [
        *(create(), allow(), poll(ALICE), login_again("handshake", v=1, mechanism="PLAIN"), produce()),
        poll(ALICE, 0, SHORT_MS),
    ],
    "login behind a poll": [
        *(create(), allow(), poll(ALICE), login_again("authenticate", v=2, text="\0alice\0alice-secret"), produce()),
    ],
    "acks=0 of a user without a right": [create(), produce(c=ALICE, acks=0), poll(ALICE, 0, SHORT_MS), produce()],
    "acks=0 behind a poll of a user": [
        *(create(), allow(), poll(ALICE), produce(c=ALICE, acks=0, **NOW), produce(), allow(WRITE)),
        *(produce(c=ALICE, acks=0), poll(ALICE, 1, SHORT_MS)),
    ],
    "share fetch of a user, right taken away": [
        *(*SHARED_BY_ALICE, share("S0", ALICE), forbid(), produce(c="3"), share("S0", ALICE, SHORT_MS)),
    ],
    "share fetch of a user, right to the group taken away": [
        *(*SHARED_BY_ALICE, share("S0", ALICE), forbid(GROUP_RESOURCE, "h0"), produce(c="3")),
        share("S0", ALICE, SHORT_MS),
    ],
    "third share session": [
        *(*LOADED, share("S0", "0"), share("S1", "1"), in_group("h1", beat("S2"))),
        *(in_group("h1", share("S2", "2", SHORT_MS)), produce(c="3"), {"do": "cut", "c": "1"}),
        in_group("h1", share("S2", "2", SHORT_MS)),
    ],
    "third share session, one ends": [
        *(*LOADED, in_group("h1", beat("S2")), share("S1", "1", topics=[], epoch=-1)),
        *(in_group("h1", share("S2", "2", SHORT_MS)), share("S1", "1", SHORT_MS), produce(c="3")),
    ],
    "third member of a share group": [
        *LOADED,
        share("S0", "0"),
        beat("S2"),
        beat("S1", -1),
        beat("S2"),
        produce(c="3"),
    ],
}
"""On a broker with SASL, an authorizer, and two share sessions and two members of a share group at most."""


# --- streams groups --------------------------------------------------------------------------------------------------

TOPOLOGY = {"epoch": 0, "subtopologies": [{"id": "0", "sources": ["t0"]}]}


def stream(member: str, epoch: Any = 0, c: str = "0", **fields: Any) -> Step:
    """StreamsGroupHeartbeat."""
    step = {"do": "streams_beat", "v": 0, "c": c, "group": "s0", "member": member, "epoch": epoch}
    if epoch == 0:
        step |= {"topology": TOPOLOGY, "process": f"p{member}", "owned": "none"}
    return {**step, **fields}


def at_once(*steps: Step) -> list[Step]:
    """In one burst."""
    return [step if number == 0 else {**step, **NOW} for number, step in enumerate(steps)]


STREAMS: dict[str, list[Step]] = {
    "two streams members join": [
        *(create(partitions=2), *at_once(stream("A"), stream("B", c="1"))),
        *at_once(stream("A", "own", owned="all"), stream("B", "own", "1", owned="all")),
        *at_once(stream("A", "own", owned="none"), stream("B", "own", "1", owned="all")),
    ],
    "a streams member joins, another leaves": [
        *(create(partitions=2), stream("A"), stream("B", c="1"), *at_once(stream("A", -1), stream("C", c="2"))),
        *(stream("B", "own", "1", owned="all"), stream("C", "own", "2", owned="all")),
    ],
    "topic of a streams group deleted": [
        *(create(partitions=2), stream("A"), *at_once(delete_topic(), stream("A", "own", owned="all"))),
        *(stream("A", "own", owned="all"), create(), stream("A", "own", owned="all")),
    ],
    "topic of a streams group created": [
        *(stream("A"), *at_once(create(), stream("B", c="1")), stream("A", "own", owned="all")),
        stream("B", "own", "1", owned="all"),
    ],
    "streams requests behind a poll": [
        *(create(), poll(), stream("A", c="1", **NOW), stream("B"), produce(), stream("A", "own", "1", owned="all")),
    ],
    "static streams member replaced": [
        *(create(partitions=2), stream("A", instance="i0"), stream("B", c="1")),
        *at_once(stream("A", -2, instance="i0"), stream("C", c="2", instance="i0")),
        *at_once(stream("A", "own", owned="all", instance="i0"), stream("C", "own", "2", owned="all", instance="i0")),
    ],
    "streams group deleted beside a heartbeat": [
        *(create(), stream("A"), *at_once(stream("A", -1), {"do": "delete_group", "v": 2, "c": "1", "group": "s0"})),
        stream("B"),
    ],
}
