"""Scripts in which a broker stops, is killed or is paused while requests wait there, or a leader moves.

They are for three brokers, of which broker 1 is Kafka's controller: broker 3 leads and coordinates, broker 2 lags where
a request has to wait for its replica, and broker 1 follows.
"""

from typing import Any

from comparison.histories.step_request import Step
from tests.differential.overlaps import (
    NOW,
    TOPOLOGY,
    beat,
    configured,
    create,
    delete_records,
    delete_topic,
    end,
    init,
    join,
    lead,
    of_member,
    poll,
    produce,
    replicas,
    session,
    share,
    write,
)

LEADER, LAGGING, OTHER = 3, 2, 1
PATIENT_MS = 40_000
LAG: Step = {"do": "pause", "broker": LAGGING}


def broker(do: str, number: int = LEADER) -> Step:
    """Stop, kill, start, pause or resume a broker, or wait until it is missed."""
    return {"do": do, "broker": number}


ENDS: dict[str, tuple[list[Step], list[Step]]] = {
    "stops": ([broker("stop")], []),
    "is killed": ([broker("kill"), broker("missed")], []),
    "is paused": ([broker("pause"), broker("missed")], [broker("resume")]),
}
"""How the broker ends, and what happens after the others were asked: a paused one responds only then."""


def ends(waiting: list[Step], again: list[Step], how: str, *, lagging: bool) -> list[Step]:
    """Let requests wait while the broker ends; then send others to the brokers that are left."""
    end, last = ENDS[how]
    return [*waiting, *end, *([broker("missed", LAGGING)] if lagging else []), *again, *last]


def names(**coordinators: int) -> Step:
    """Choose names whose coordinators are these brokers."""
    return {"do": "names", "coordinators": coordinators}


def topic(name: str, *brokers: int, **configs: str) -> Step:
    """CreateTopics of one partition with these replicas, whose first one leads."""
    return {**replicas(*brokers, **configs), "topic": name}


def of(name: str, *steps: Step) -> list[Step]:
    """The same for another topic."""
    return [{**step, "topic": name} for step in steps]


def metadata(c: str = "8", b: int = OTHER, *topics: str) -> Step:
    """Metadata, of one topic if none is named."""
    return {"do": "metadata", "v": 12, "c": c, "b": b, "topics": list(topics or ("t0",))}


def late(step: Step, **fields: Any) -> Step:
    """A request that may wait for replicas."""
    return {**step, "waits": True, **fields}


# --- at a partition's leader -----------------------------------------------------------------------------------------

AT_A_LEADER: list[Step] = [
    *(topic("t0", 3, 1), topic("t1", 3, 1, 2), topic("t2", 3, 1, 2), topic("t3", 1, 3)),
    *of("t1", produce(acks=-1)),
    *of("t2", produce(3, acks=-1)),
    LAG,
    *(poll("1"), session({"t0": [[0, 0]]}, "2", b=LEADER), poll("3", b=OTHER)),
    *of("t3", poll("4", b=LEADER)),
    *of("t1", produce(2, "5", acks=-1, timeout=PATIENT_MS)),
    *of("t2", delete_records(2, "6", timeout=PATIENT_MS)),
]
"""A poll, a session, a poll at a follower of the leader and one at the leader that is a follower there; acks=all and
DeleteRecords that wait for the lagging replica."""
AFTER_A_LEADER: list[Step] = [
    metadata("8", OTHER, "t0", "t1", "t2", "t3"),
    {"do": "list_offsets", "v": 7, "c": "8", "b": OTHER, "topic": "t1", "partition": 0, "at": -1},
    produce(c="8", b=OTHER),
]
IDLE: list[Step] = [replicas(LEADER, OTHER), metadata("7", LEADER)]
IDLE_AGAIN: list[Step] = [metadata("7", LEADER), metadata("7", LEADER)]


# --- at a coordinator ------------------------------------------------------------------------------------------------

REBALANCING: list[Step] = [
    *(names(g0=LEADER, g3=LEADER), replicas(OTHER)),
    *(join("m0"), join("m0"), of_member("sync", "m0"), join("m1"), join("m1")),
    *({**step, "group": "g3"} for step in (join("n0"), join("n0"), of_member("sync", "n0"), join("n1"), join("n1"))),
    *({**step, "group": "g3"} for step in (join("n0"), of_member("sync", "n1"))),
]
"""In one group a join waits for a member, in the other one a sync waits for the leader."""
JOINING_AGAIN: list[Step] = [
    *(join("m0"), join("m1"), {**of_member("heartbeat", "n0"), "group": "g3", "c": "7"}),
    *({**step, "group": "g3"} for step in (of_member("sync", "n0"), of_member("sync", "n1"))),
]


def consumer(member: str = "C0", epoch: Any = 0, c: str = "1", **fields: Any) -> Step:
    """ConsumerGroupHeartbeat."""
    step = {"do": "beat", "v": 1, "c": c, "b": LEADER, "group": "g3", "member": member, "epoch": epoch, **fields}
    return {**step, "topics": ["t0"]} if epoch == 0 else step


def stream(**fields: Any) -> Step:
    """StreamsGroupHeartbeat."""
    step = {"do": "streams_beat", "v": 0, "c": "2", "b": LEADER, "group": "g6", "member": "A", "epoch": 0, **fields}
    return {**step, "topology": TOPOLOGY, "process": "pA", "owned": "none"}


def sharing(**fields: Any) -> Step:
    """ShareGroupHeartbeat."""
    return {**beat("S0", c="3"), "b": LEADER, "group": "g9", **fields}


COMMIT: Step = {"do": "commit", "v": 8, "group": "g0", "topic": "t0", "partition": 0, "offset": 1, "c": "0"}
OFFSETS: Step = {"do": "fetch_offsets", "v": 8, "c": "8", "group": "g0", "partitions": None}
GROUPS_WAIT: list[Step] = [
    *(names(g0=LEADER, g3=LEADER, g6=LEADER, g9=LEADER), replicas(OTHER), COMMIT, LAG),
    *(late({**COMMIT, "offset": 2}), late(consumer()), late(stream()), late(sharing())),
]
GROUPS_AGAIN: list[Step] = [
    *(OFFSETS, {**COMMIT, "c": "8", "offset": 3}),
    *(consumer(c="8", b=OTHER), stream(c="8", b=OTHER), sharing(c="8", b=OTHER)),
]
OFFSETS_ADDED: Step = {"do": "add_offsets", "v": 3, "c": "0", "producer": "p2", "group": "g0"}
IN_TRANSACTION: Step = {
    "do": "commit_in_transaction", "v": 3, "c": "4", "producer": "p2", "group": "g0",
    "topic": "t0", "partition": 0, "offset": 5,
}  # fmt: skip
ADDED: Step = {"do": "add_partitions", "v": 3, "c": "2", "producer": "p4", "partitions": {"t0": [0]}}
TRANSACTIONS_WAIT: list[Step] = [
    *(names(x1=LEADER, x4=LEADER, x7=LEADER, x2=OTHER, g0=LEADER), replicas(OTHER)),
    *(init(1), init(2), init(4), *write(1), OFFSETS_ADDED, LAG),
    *(late(end(1, c="1")), late(ADDED), late(init(7, "3")), late(IN_TRANSACTION)),
]
"""EndTxn, AddPartitionsToTxn, InitProducerId and TxnOffsetCommit wait for the lagging replica."""
TRANSACTIONS_AGAIN: list[Step] = [
    *(end(1, c="8"), {**ADDED, "c": "8"}, init(7, "8"), {**IN_TRANSACTION, "c": "8"}),
]

# --- a share group's leader ------------------------------------------------------------------------------------------


def shared(member: str, c: str, b: int = LEADER, **fields: Any) -> Step:
    """ShareFetch at a broker."""
    return {**share(member, c, **fields), "b": b}


SHARING: list[Step] = [
    *(names(h0=OTHER), replicas(LEADER, OTHER), configured("share.auto.offset.reset", "earliest")),
    *(beat("S0"), beat("S1"), shared("S0", "0", wait_ms=2_500), {**shared("S1", "1", wait_ms=2_500), **NOW}),
    *({"do": "await"}, produce(3, c="3"), shared("S0", "0"), shared("S1", "1")),
]
"""The first member has all records, and the second one waits."""
SHARING_AGAIN: list[Step] = [
    *(shared("S1", "5", OTHER, epoch=0), produce(c="8", b=OTHER)),
]


# --- a follower ends, or a leader moves ------------------------------------------------------------------------------

ALL_MS = 30_000
FOLLOWERS: dict[str, list[Step]] = {
    "acks=all, lagging follower is killed": [
        *(replicas(OTHER, LAGGING), LAG, produce(acks=-1, timeout=ALL_MS), poll("1"), broker("kill", LAGGING)),
        *(broker("missed", LAGGING), metadata()),
    ],
    "acks=all, lagging follower is missed": [
        *(replicas(OTHER, LAGGING), LAG, produce(acks=-1, timeout=ALL_MS), poll("1"), broker("missed", LAGGING)),
        *(metadata(), broker("resume", LAGGING), produce(acks=-1), metadata()),
    ],
    "acks=all, follower stops": [
        *(replicas(OTHER, LEADER), poll("1", b=LEADER), broker("stop"), produce(acks=-1), metadata()),
        *(broker("start"), produce(acks=-1), metadata()),
    ],
    "acks=all, too few replicas are left": [
        *(replicas(OTHER, LAGGING, min_insync_replicas="2"), LAG, produce(acks=-1, timeout=9_000), poll("1")),
        *(broker("missed", LAGGING), produce(c="2", acks=-1), produce(c="2"), metadata(), {"do": "await"}),
        broker("resume", LAGGING),
    ],
    "records deleted, lagging follower is killed": [
        *(replicas(OTHER, LAGGING), produce(3, acks=-1), LAG, delete_records(2, timeout=ALL_MS)),
        *(broker("kill", LAGGING), broker("missed", LAGGING)),
    ],
    "records deleted after a follower was killed": [
        *(replicas(OTHER, LAGGING), produce(3, acks=-1), broker("kill", LAGGING), delete_records(2, timeout=1_500)),
        *({"do": "await"}, broker("missed", LAGGING), delete_records(3)),
    ],
    "records deleted, lagging follower is missed and goes on": [
        *(replicas(OTHER, LAGGING), produce(3, acks=-1), LAG, delete_records(2, timeout=ALL_MS)),
        *(broker("missed", LAGGING), produce(acks=-1)),
    ],
    "topic on a paused broker, elected": [
        *(replicas(OTHER, LEADER), poll(), broker("pause"), {**create("t1"), "assign": [[LEADER, OTHER]]}),
        *(metadata("8", OTHER, "t1"), {**lead(LEADER, OTHER)[0], "c": "3"}, lead(LEADER, OTHER)[1], metadata()),
        *(broker("missed"), metadata("8", OTHER, "t0", "t1"), lead(LEADER, OTHER)[1], broker("resume")),
    ],
    "only replica is killed": [
        *(replicas(LEADER), produce(), poll(offset=1), broker("kill"), broker("missed"), metadata()),
        *(produce(c="8", b=OTHER), {"do": "elect_leaders", "v": 2, "c": "3", "topic": "t0", "partition": 0, "type": 0}),
        *(broker("start"), metadata(), produce(c="8")),
    ],
    "transaction ends, leader of its partition is killed": [
        *(names(x0=OTHER), replicas(LEADER, OTHER), init(), *write(), poll("1", b=OTHER, isolation=1)),
        *(broker("kill"), end(), broker("missed"), poll("2", b=OTHER, isolation=1)),
    ],
    "transaction ends, leader of its partition stops": [
        *(names(x0=OTHER), replicas(LEADER, OTHER), init(), *write(), poll("1", b=OTHER, isolation=1)),
        *(broker("stop"), end(), poll("2", b=OTHER, isolation=1)),
    ],
}
TO_OTHER: Step = {"do": "move_coordinator", "to": OTHER}
MOVES: dict[str, list[Step]] = {
    "rebalance, coordinator moves": [
        *(*REBALANCING, {**TO_OTHER, "name": "g0"}, *JOINING_AGAIN),
    ],
    "groups wait, coordinator moves": [
        *(*GROUPS_WAIT, {**TO_OTHER, "name": "g0"}, broker("resume", LAGGING), *GROUPS_AGAIN),
    ],
    "transactions wait, coordinator moves": [
        *(*TRANSACTIONS_WAIT, {**TO_OTHER, "name": "x1"}, {**TO_OTHER, "name": "g0"}, broker("resume", LAGGING)),
        *TRANSACTIONS_AGAIN,
    ],
    "records deleted, leader moves": [
        *(replicas(LEADER, OTHER, LAGGING), produce(3, acks=-1), LAG, delete_records(2, timeout=3_000)),
        *(*lead(OTHER, LEADER, LAGGING), {"do": "await"}),
    ],
    "records deleted, topic deleted": [
        *(replicas(OTHER, LAGGING), produce(3, acks=-1), LAG, delete_records(2, timeout=3_000), delete_topic("3")),
        {"do": "await"},
    ],
    "share fetch, leader moves": [*SHARING, *lead(OTHER, LEADER), *SHARING_AGAIN],
}

STOPS: dict[str, list[Step]] = {
    f"{what} {how}": ends(waiting, again, how, lagging=lagging)
    for what, waiting, again, lagging in (
        ("leader", AT_A_LEADER, AFTER_A_LEADER, True),
        ("rebalance, coordinator", REBALANCING, JOINING_AGAIN, False),
        ("groups wait, coordinator", GROUPS_WAIT, GROUPS_AGAIN, True),
        ("transactions wait, coordinator", TRANSACTIONS_WAIT, TRANSACTIONS_AGAIN, True),
        ("share fetch, leader", SHARING, SHARING_AGAIN, False),
    )
    for how in ENDS
}
STOPS |= {
    "idle connection, broker stops": [*IDLE, broker("stop"), *IDLE_AGAIN],
    "idle connection, broker is killed": [*IDLE, broker("kill"), *IDLE_AGAIN],
    **FOLLOWERS,
    **MOVES,
}
