"""Profiles requests: one broker in this process, with clients that send frames without sockets.

    python -m benchmarks.profiles [--operation produce] [--count 2000] [--costs]

Prints for each operation its processor time from request bytes to response bytes (the cheapest of many rounds), its
Python calls, and the share of each part of the code by a profiler that counts processor time. A profiler makes calls
more expensive, so its shares are more reliable than its times. `--costs` prints the times alone: of the sources, and in
`build/compiled/tree` (`make compiled`) those of the compiled build.
"""

import argparse
import asyncio
import cProfile
import pstats
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks import frames, inside
from benchmarks.inside import Peer
from broker.cluster.cluster import Cluster
from broker.time.clock import turns
from protocol.apis import ApiKey
from protocol.codec import encode_request
from protocol.errors import ErrorCode
from protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

_ROOT = Path(__file__).resolve().parent.parent
_SETTINGS = {"transaction.state.log.num.partitions": "4", "offsets.topic.num.partitions": "4"}
# Part of a file: the first prefix of its path.
_PARTS = (
    ("benchmarks", "(the bench)"),
    ("broker/server/dispatcher", "dispatch, middleware"),
    ("broker/server", "connection"),
    ("broker/time", "clock, waiting"),
    ("broker/request/authentication", "dispatch, middleware"),
    ("broker/request/context", "dispatch, middleware"),
    ("broker/request/old_refusals", "dispatch, middleware"),
    ("broker/request/throttling", "dispatch, middleware"),
    ("broker/steering/journal", "journal"),
    ("broker/steering/faults", "dispatch, middleware"),
    ("broker/steering/timelines", "dispatch, middleware"),
    ("broker/coordination", "coordinators"),
    ("broker", "handlers and what they share"),
    ("protocol/records", "records: header, checksum, walk"),
    ("protocol", "reading, writing messages"),
    ("storage", "the log"),
)

_NOT_YET = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
_TURNS_OF_MARKERS = 12  # of the event loop, until the markers are written and the transaction is complete
_TURNS_OF_A_FETCH = 4  # until it waits
_OFFSET = 0x0102030405060708  # its place in a frame is found by it

Operation = Callable[[], Awaitable[object]]


async def cost_us(operation: Operation, calls: int, rounds: int) -> float:
    """Return the processor time of one call (us), in the cheapest of many rounds of so many calls."""
    best_s = float("inf")
    for _ in range(rounds):
        began_s = time.thread_time()
        for _ in range(calls):
            await operation()
        best_s = min(best_s, (time.thread_time() - began_s) / calls)
    return best_s * 1e6


async def rebalance(cluster: Cluster, group: str, peers: list[Peer]) -> HeartbeatRequest:
    """Let all members join and sync; return the last member's heartbeat request."""
    protocols = [JoinGroupRequestProtocol("range", bytes(40))]
    join = JoinGroupRequest(group, 60_000, "", "consumer", protocols, rebalance_timeout_ms=60_000)
    joining = [asyncio.ensure_future(peer.call(ApiKey.JOIN_GROUP, 3, join)) for peer in peers]
    await turns(5)
    await cluster.clock.push(10_000)  # the group's initial rebalance delay
    joined = await asyncio.gather(*joining)
    assert all(each.error_code is ErrorCode.NONE for each in joined)
    ids, leader, generation = [each.member_id for each in joined], joined[0].leader, joined[0].generation_id
    assignments = [SyncGroupRequestAssignment(each, bytes(40)) for each in ids]
    syncs = [SyncGroupRequest(group, generation, each, assignments if each == leader else ()) for each in ids]
    synced = await asyncio.gather(
        *(peer.call(ApiKey.SYNC_GROUP, 3, sync) for peer, sync in zip(peers, syncs, strict=True))
    )
    assert all(each.error_code is ErrorCode.NONE for each in synced)
    return HeartbeatRequest(group, generation, ids[-1])


async def begin_transaction(peer: Peer, name: str) -> tuple[int, int]:
    """Open a transaction of a new producer; return its id and epoch."""
    while True:
        response = await peer.call(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(name, 60_000))
        if response.error_code is ErrorCode.NONE:
            break
        assert response.error_code in _NOT_YET
        await peer.ask(frames.find_transactions(name))
    producer = (response.producer_id, response.producer_epoch)
    await add_partition(peer, name, producer)
    return producer


async def add_partition(peer: Peer, name: str, producer: tuple[int, int]) -> None:
    """Add a partition to the producer's transaction, once the previous one is complete.

    The markers take some turns of the event loop, which a client on a socket never notices; this one has to wait.
    """
    await turns(_TURNS_OF_MARKERS)
    topics = [AddPartitionsToTxnTopic("t", [0])]
    while True:
        request = AddPartitionsToTxnRequest(name, *producer, topics)
        response = await peer.call(ApiKey.ADD_PARTITIONS_TO_TXN, 3, request)
        code = response.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        if code is ErrorCode.NONE:
            return
        assert code is ErrorCode.CONCURRENT_TRANSACTIONS
        await turns(1)


async def end_transaction(peer: Peer, name: str, producer: tuple[int, int]) -> None:
    """Commit a transaction; return after the response, which precedes the markers."""
    response = await peer.call(ApiKey.END_TXN, 3, EndTxnRequest(name, *producer, committed=True))
    assert response.error_code is ErrorCode.NONE


def produce_and_fetch(cluster: Cluster, peer: Peer, reader: Peer) -> Operation:
    """Return the operation that produces a record to a consumer that waits for it, until both have their responses."""
    record, partition = frames.produce("stream", records=1, size=100), cluster.partitions["stream", 0]
    fetch = bytearray(frames.fetch(partition.topic_id, offset=_OFFSET, max_wait_ms=60_000))
    at = fetch.index(_OFFSET.to_bytes(8))

    async def operation() -> None:
        fetch[at : at + 8] = partition.led_by(1).log_end_offset.to_bytes(8)
        waiting = asyncio.ensure_future(reader.ask(fetch))
        await turns(_TURNS_OF_A_FETCH)
        await peer.ask(record)
        await waiting

    return operation


async def operations(cluster: Cluster, peer: Peer, reader: Peer) -> dict[str, Operation]:
    """Return the operations; each has run once, so that everything is compiled."""
    one, small, large = (frames.produce("t", records=n, size=size) for n, size in ((1, 100), (8000, 100), (1000, 990)))
    for frame in (large, *[one] * 20):
        await peer.ask(frame)
    for frame in (frames.produce("read", records=1000, size=990), frames.produce("read", records=1, size=100)):
        await peer.ask(frame)
    topic_id = cluster.partitions["read", 0].topic_id
    bulk, tail = frames.fetch(topic_id, offset=0), frames.fetch(topic_id, offset=1000)
    producer = await begin_transaction(peer, "own")
    await end_transaction(peer, "own", producer)
    while (await peer.call(ApiKey.HEARTBEAT, 3, HeartbeatRequest("g", 0, "x"))).error_code in _NOT_YET:
        await peer.ask(frames.find_coordinator("g"))
    heartbeat = encode_request(ApiKey.HEARTBEAT, 4, 1, "bench", await rebalance(cluster, "g", [peer]))
    init = encode_request(ApiKey.INIT_PRODUCER_ID, 4, 1, "bench", InitProducerIdRequest("other", 60_000))

    async def commit() -> None:
        await add_partition(peer, "own", producer)
        await end_transaction(peer, "own", producer)

    by_title: dict[str, Operation] = {
        "produce, 1 record of 100 B": lambda: peer.ask(one),
        "produce, 8,000 records of 100 B": lambda: peer.ask(small),
        "produce, 1,000 records of 990 B": lambda: peer.ask(large),
        "fetch, the newest record": lambda: peer.ask(tail),
        "fetch, 1 MB": lambda: peer.ask(bulk),
        "a record to a fetch that waits": produce_and_fetch(cluster, peer, reader),
        "transaction: add a partition, commit": commit,
        "a producer gets its id and epoch again": lambda: peer.ask(init),
        "heartbeat of a member": lambda: peer.ask(heartbeat),
    }
    for each in by_title.values():
        await each()
    return by_title


async def calls_of(operation: Operation) -> int:
    """Count the Python calls of one operation."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        await operation()
    finally:
        sys.setprofile(None)
    return calls


async def shares_of(operation: Operation, count: int) -> dict[str, float]:
    """Return part of the code -> its share of the time; built-in functions count for their callers."""
    profile = cProfile.Profile(time.thread_time)
    profile.enable()
    for _ in range(count):
        await operation()
    profile.disable()
    spent: dict[str, float] = defaultdict(float)
    for (file, _, _), (_, _, own_s, _, callers) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        if file == "~" and callers:
            for (caller, _, _), (_, _, called_s, _) in callers.items():
                spent[_part(caller)] += called_s
        else:
            spent[_part(file)] += own_s
    spent.pop("(the bench)", None)
    total = sum(spent.values())
    return {name: part / total for name, part in sorted(spent.items(), key=lambda item: -item[1])}


def _part(file: str) -> str:
    path = Path(file)
    if path.is_relative_to(_ROOT):
        place = path.relative_to(_ROOT).as_posix()
        return next((part for begins, part in _PARTS if place.startswith(begins)), "the rest")
    return "reading, writing messages" if file == "<string>" else "loop and library"


async def _profiled(name: str, count: int, *, costs_only: bool) -> None:
    async with inside.broker("t:1", "read:1", "stream:1", settings=_SETTINGS) as cluster:
        with Peer(cluster) as peer, Peer(cluster) as reader:
            for title, operation in (await operations(cluster, peer, reader)).items():
                if name not in title:
                    continue
                # 80 rounds, about as many calls as `--count` in all; fewer of the operations that take milliseconds.
                calls_of_round = max(count // 200, 3) if "000" in title or "MB" in title else max(count // 80, 5)
                cost = await cost_us(operation, calls_of_round, 80)
                if costs_only:
                    print(f"{cost:7.1f} us  {title}")
                    continue
                calls = await calls_of(operation)
                print(f"\n{title}: {cost:.0f} us of a processor, {calls} calls")
                for part, share in (await shares_of(operation, calls_of_round * 10)).items():
                    if share >= 0.01:
                        print(f"  {share:6.1%}  {part}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--operation", default="", help="only those whose title has this in it")
    parser.add_argument("--count", type=int, default=2000, help="about how often each is done")
    parser.add_argument("--costs", action="store_true", help="print processor times only")
    options = parser.parse_args()
    inside.run(lambda: _profiled(options.operation, options.count, costs_only=options.costs))


if __name__ == "__main__":
    main()
