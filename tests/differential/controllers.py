"""Scripts in which controllers stop, are killed or paused while brokers have requests for them, or such a broker ends.

They are for three controllers of their own and three brokers: broker 2 has the requests, and broker 1 stays.
"""

from typing import Any

from comparison.histories.step_request import Step
from tests.differential.overlaps import (
    NOW,
    configured,
    delete_topic,
    end,
    init,
    join,
    of_member,
    poll,
    produce,
    replicas,
    write,
)
from tests.differential.stops import broker, late, metadata, names, of, stream, topic

OTHER, BROKER = 1, 2
ELECTED: Step = {"do": "elected"}
THEN_ELECTED: Step = {**ELECTED, **NOW}
"""In one burst with the step before it: Kafka answers during one or the other."""
RESIGNED: Step = {"do": "resigned"}


def controllers(how: str, which: str = "active") -> Step:
    """Stop, kill, pause, resume or start controllers: the active one, another, the others, all, or those away."""
    return {"do": "controllers", "how": how, "which": which}


RESUMED, STARTED = controllers("resume", "away"), controllers("start", "away")


def waits(step: Step, c: str, **fields: Any) -> Step:
    """A request at the broker that may wait for a controller."""
    return late(step, c=c, b=BROKER, **fields)


TOPICS: list[Step] = [topic(f"t{number}", BROKER, OTHER) for number in (0, 2, 3, 4)]
"""t0 gets a setting, t2 is deleted, t3 gets partitions and t4 fewer replicas."""
CREATED: Step = {**topic("t1", BROKER, OTHER), "do": "create_topic"}
SET, RETENTION = 0, "retention.ms"
ALTERED: Step = {"do": "alter_configs", "v": 1, "topic": "t0", "changes": [[RETENTION, SET, "100000"]]}
PARTITIONS: Step = {"do": "create_partitions", "v": 3, "topic": "t3", "count": 2, "assign": [[OTHER, BROKER]]}
REASSIGNED: Step = {"do": "reassign", "v": 0, "topic": "t4", "partition": 0, "replicas": [OTHER]}
ELECTION: Step = {"do": "elect_leaders", "v": 2, "topic": "t0", "partition": 0, "type": 0}
LISTED: Step = {"do": "list_reassignments", "v": 0, "topic": "t0", "partitions": [0]}
REQUESTS: list[Step] = [
    waits(CREATED, "1"),
    waits(PARTITIONS, "2", **NOW),
    waits(ALTERED, "3", **NOW),
    *({**step, **NOW} for step in of("t2", waits(delete_topic(), "4"))),
    waits(REASSIGNED, "5", **NOW),
    waits(ELECTION, "6", **NOW),
    waits(configured("share.auto.offset.reset", "earliest"), "7", **NOW),
    waits(LISTED, "8", **NOW),
]
"""Sent together, each on a connection of its own, to the broker that forwards them."""
AGAIN: list[Step] = [
    metadata("9", OTHER, "t0", "t1", "t2", "t3", "t4"),
    metadata("9", BROKER, "t0", "t1", "t2", "t3", "t4"),
    {"do": "describe_configs", "v": 4, "c": "9", "b": BROKER, "topic": "t0", "keys": [RETENTION]},
]

REPARTITIONED: dict[str, Any] = {
    "epoch": 0,
    "subtopologies": [{"id": "0", "sources": ["t0"], "sinks": ["t8"]}, {"id": "1", "repartitions": [["t8", 0, 1, {}]]}],
}


def active(*steps: Step) -> list[Step]:
    """Requests between what happens to controllers; then all that the brokers show."""
    return [*TOPICS, *steps, THEN_ELECTED if steps[-1]["do"] == "controllers" else ELECTED, *AGAIN]


OF_CONTROLLERS: dict[str, list[Step]] = {
    "active controller stops": [*TOPICS, controllers("stop"), *REQUESTS, THEN_ELECTED, *AGAIN],
    "active controller is killed": active(controllers("kill"), *REQUESTS),
    "active controller is paused, another is elected": [
        *(*active(controllers("pause"), *REQUESTS), RESUMED, THEN_ELECTED, *AGAIN),
    ],
    "active controller is paused for a moment": active(controllers("pause"), *REQUESTS, RESUMED),
    "active controller is paused and killed": active(controllers("pause"), *REQUESTS, controllers("kill", "away")),
    "active controller is paused and stops": active(controllers("pause"), *REQUESTS, controllers("stop", "away")),
    "other controllers are paused for a moment": active(controllers("pause", "others"), *REQUESTS, RESUMED),
    "other controllers are paused, active one is killed": active(
        *(controllers("pause", "others"), *REQUESTS, controllers("kill"), controllers("resume", "paused")),
    ),
    "other controllers are paused, active one resigns": active(
        *(controllers("pause", "others"), *REQUESTS, RESIGNED, RESUMED),
    ),
    "other controllers are killed, active one resigns": active(
        *(controllers("kill", "others"), RESIGNED, *REQUESTS, STARTED),
    ),
    "another controller is killed": [*TOPICS, controllers("kill", "another"), *REQUESTS, THEN_ELECTED, *AGAIN],
    "another controller is paused": [*TOPICS, controllers("pause", "another"), *REQUESTS, THEN_ELECTED, *AGAIN],
    "another controller stops": [*TOPICS, controllers("stop", "another"), *REQUESTS, THEN_ELECTED, *AGAIN],
    "all controllers are killed": active(controllers("kill", "all"), *REQUESTS, STARTED),
    "reassignments are listed without a majority": [
        *(
            *TOPICS,
            controllers("pause", "others"),
            waits(LISTED, "8"),
            waits(CREATED, "1"),
            RESUMED,
            THEN_ELECTED,
            *AGAIN,
        ),
    ],
    "producer ids without a controller": [
        *(controllers("kill", "all"), {"do": "exhaust_ids", "b": BROKER}),
        {"do": "init_producer", "v": 4, "c": "1", "b": BROKER, "producer": "p8"},
        *(STARTED, THEN_ELECTED, {"do": "init_producer", "v": 4, "c": "1", "b": BROKER, "producer": "p9"}),
    ],
    "topic created by metadata without a controller": [
        *(controllers("kill"), {**metadata("1", BROKER, "t9"), "auto": True}, ELECTED),
        {"do": "describe_configs", "v": 4, "c": "9", "b": OTHER, "topic": "t9", "keys": [RETENTION]},
    ],
    "streams member joins without a controller": [
        *(names(g6=BROKER), replicas(OTHER), controllers("kill"), {**stream(b=BROKER), "topology": REPARTITIONED}),
        *(ELECTED, {"do": "describe_configs", "v": 4, "c": "9", "b": OTHER, "topic": "t8", "keys": [RETENTION]}),
    ],
    "clients without a controller": [
        *(names(g0=BROKER, x1=BROKER), replicas(BROKER, OTHER), controllers("kill", "all")),
        *(produce(acks=-1), poll("1", b=BROKER), produce(2, acks=-1)),
        *(join("m0"), join("m0"), of_member("sync", "m0"), of_member("commit", "m0", offset=1)),
        *(init(1), *write(1), poll("3", 3, isolation=1, b=BROKER), end(1), metadata("9", OTHER)),
        *(STARTED, THEN_ELECTED, metadata("9", OTHER), produce(acks=-1)),
    ],
    "acks=all without a controller, follower is paused": [
        *(replicas(OTHER, BROKER), controllers("kill", "all"), broker("pause", BROKER)),
        *(produce(acks=-1, timeout=1_500), {"do": "await"}, metadata("9", OTHER), broker("resume", BROKER)),
        *(STARTED, THEN_ELECTED, produce(acks=-1)),
    ],
}
FORWARDED: list[Step] = [replicas(OTHER), controllers("pause"), waits(CREATED, "1")]
"""A request is in the socket of a controller that hangs."""
WITHOUT: list[Step] = [replicas(OTHER), controllers("kill", "all"), waits(CREATED, "1")]
"""A request waits in its broker."""
SHOWN: list[Step] = [metadata("9", OTHER, "t0", "t1")]
OF_BROKERS: dict[str, list[Step]] = {
    "controller hangs, broker with a request is killed": [
        *(*FORWARDED, broker("kill", BROKER), RESUMED, THEN_ELECTED, *SHOWN),
    ],
    "controller hangs, broker with a request is paused": [
        *(
            *FORWARDED,
            broker("pause", BROKER),
            RESUMED,
            THEN_ELECTED,
            *SHOWN,
            broker("resume", BROKER),
            {"do": "await"},
        ),
    ],
    "controller hangs, broker with a request stops": [
        *(*FORWARDED, broker("stop", BROKER), RESUMED, THEN_ELECTED, *SHOWN),
    ],
    "no controller, broker with a request is killed": [
        *(*WITHOUT, broker("kill", BROKER), STARTED, THEN_ELECTED, broker("missed", BROKER), *SHOWN),
    ],
    "no controller, broker with a request is paused": [
        *(
            *WITHOUT,
            broker("pause", BROKER),
            STARTED,
            THEN_ELECTED,
            *SHOWN,
            broker("resume", BROKER),
            {"do": "await", **NOW},
        ),
    ],
    "broker is killed, then the active controller": [
        *(replicas(OTHER, BROKER), broker("kill", BROKER), controllers("kill"), ELECTED, broker("missed", BROKER)),
        *(metadata("9", OTHER), produce(acks=-1)),
    ],
    "broker stops, then the active controller": [
        *(replicas(BROKER, OTHER), poll(b=BROKER), broker("stop", BROKER), controllers("stop"), ELECTED),
        *(metadata("9", OTHER), produce(acks=-1)),
    ],
}
CONTROLLERS = {**OF_CONTROLLERS, **OF_BROKERS}
