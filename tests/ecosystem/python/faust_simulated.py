"""Faust in the simulator: counts records by key in a table with a changelog, exactly once if it were in a worker.

understudy simulate --application faust_simulated:main --topic orders:2 --topic counts:2
"""

import tempfile
from collections.abc import AsyncIterator
from typing import Any

import faust

CUSTOMERS, ORDERS = 5, 100
FOLDER = tempfile.mkdtemp(prefix="faust-")


async def count(servers: list[str]) -> None:
    """Serve until it is cancelled."""
    app = faust.App(
        "faust",
        broker=[f"kafka://{each}" for each in servers],
        store="memory://",
        datadir=FOLDER,
        topic_partitions=2,
        topic_replication_factor=3,
        processing_guarantee="exactly_once",
        broker_session_timeout=6.0,
        broker_heartbeat_interval=0.5,
        web_enabled=False,
    )
    orders = app.topic("orders", key_type=str, value_type=str, value_serializer="raw")
    counts = app.topic("counts", key_type=str, value_type=str, value_serializer="raw")
    table = app.Table("by_customer", key_type=str, value_type=int, default=int, partitions=2)

    @app.agent(orders)
    async def counting(stream: Any) -> AsyncIterator[None]:
        async for event in stream.events():
            table[event.key] += 1
            await counts.send(key=event.key, value=str(table[event.key]))
            yield

    await app.start()
    try:
        await app.wait_until_stopped()
    finally:
        await app.stop()


async def main(sim: Any) -> None:
    """Each customer's orders are counted up to the last one."""
    sim.process("faust", lambda: count(sim.bootstrap_servers))
    await sim.feed("orders", ({"key": f"c{n % CUSTOMERS}", "value": str(n)} for n in range(ORDERS)))
    await sim.calm()
    counts = {(each.key, int(each.value)) for each in await sim.read("counts")}
    wanted = {(b"c%d" % key, n + 1) for key in range(CUSTOMERS) for n in range(ORDERS // CUSTOMERS)}
    assert wanted <= counts, sorted(wanted - counts)
