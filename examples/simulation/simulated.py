"""The simulation of the copier.

understudy simulate --application simulated:right --topic in:2 --topic out:2 --seeds 1-100
"""

import asyncio
import random

from aiokafka import AIOKafkaProducer

from copier import Copier


async def check(sim, copier):
    """Each record of `in` has one outcome in `out`, in the order of its key, however much went wrong meanwhile."""
    await copier.begin_with_first_records(sim.bootstrap_servers)
    sim.process("copier", lambda: copier(sim.bootstrap_servers, look_up).run())
    sim.process("upstream", lambda: send_and_abort(sim.bootstrap_servers))
    await sim.feed("in", ({"key": f"k{n % 5}", "value": "x" if n % 40 == 39 else f"{n}"} for n in range(200)))
    await sim.calm()
    await sim.check_one_outcome_each("in", "out", of=of, source_of=of)
    assert in_order(await sim.read("out")), "the outcomes of a key are not in the order of their records"


async def look_up(number):
    """The other service: it takes up to 0.1 s, and sometimes fails."""
    await asyncio.sleep(random.uniform(0.01, 0.1))
    if random.random() < 0.02:
        raise ConnectionError("the service is not available")
    return str(number).encode()


async def send_and_abort(servers):
    """Another application, whose transactions are aborted: the copier must not see their records."""
    async with AIOKafkaProducer(bootstrap_servers=servers, transactional_id="upstream") as producer:
        for _ in range(10):
            await producer.begin_transaction()
            await producer.send_and_wait("in", b"-1")
            await asyncio.sleep(1)
            await producer.abort_transaction()


def of(record):
    return record.key, record.value


def in_order(outcomes):
    numbers = {}
    for each in outcomes:
        numbers.setdefault(each.key, []).append(int(each.value)) if each.value != b"x" else None
    return all(each == sorted(each) for each in numbers.values())


async def right(sim):
    await check(sim, Copier)
