"""Quix Streams: counts records by key in a state with a changelog, exactly once, and may be killed on the way.

quix.py BOOTSTRAP STATE_DIR DIE_AFTER: 0 does not die, and ends when nothing comes for some seconds.
"""

import itertools
import os
import sys

from quixstreams import Application, State

bootstrap, state_dir, die_after = sys.argv[1], sys.argv[2], int(sys.argv[3])
seen = itertools.count(1)


def count(value: str, state: State) -> str:
    """The number of the record among those with its key, and the sum of their values."""
    if die_after and next(seen) > die_after:
        os._exit(9)
    number, total = state.get("count", 0) + 1, state.get("sum", 0) + int(value)
    state.set("count", number)
    state.set("sum", total)
    return f"{number} {total}"


app = Application(
    broker_address=bootstrap,
    consumer_group="quix",
    auto_offset_reset="earliest",
    processing_guarantee="exactly-once",
    commit_every=25,
    state_dir=state_dir,
    consumer_extra_config={"session.timeout.ms": 6000, "heartbeat.interval.ms": 500},
)
orders = app.topic("orders", value_deserializer="str", key_deserializer="str")
counts = app.topic("counts", value_serializer="str", key_serializer="str")
app.dataframe(orders).apply(count, stateful=True).to_topic(counts)
app.run(timeout=10)
