"""Faust: counts records by key in a table with a changelog, exactly once, and may be killed on the way.

faust_table.py BOOTSTRAP DATA_DIR DIE_AFTER: 0 does not die, and ends by SIGTERM.
"""

import itertools
import os
import sys
from collections.abc import AsyncIterator
from typing import Any

import faust

bootstrap, data_dir, die_after = sys.argv[1], sys.argv[2], int(sys.argv[3])
seen = itertools.count(1)
app = faust.App(
    "faust",
    broker=[f"kafka://{each}" for each in bootstrap.split(",")],
    store="memory://",
    datadir=data_dir,
    topic_partitions=3,
    topic_replication_factor=3,
    processing_guarantee="exactly_once",
    broker_session_timeout=6.0,
    broker_heartbeat_interval=0.5,
    web_enabled=False,
)
orders = app.topic("orders", key_type=str, value_type=str, value_serializer="raw")
counts = app.topic("counts", key_type=str, value_type=str, value_serializer="raw")
table = app.Table("by_customer", key_type=str, value_type=str, default=str, partitions=3)


@app.agent(orders)
async def count(stream: Any) -> AsyncIterator[None]:
    """The number of each record among those with its key, and the sum of their values."""
    async for key, value in stream.items():
        if die_after and next(seen) > die_after:
            os._exit(9)
        number, total = map(int, (table[key] or "0 0").split())
        table[key] = f"{number + 1} {total + int(value)}"
        await counts.send(key=key, value=table[key])
        yield


faust.Worker(app, loglevel="warning", blocking_timeout=30).execute_from_commandline()
