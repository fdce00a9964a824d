"""Measures one scale at one size, in its own process: the cost of operations, and memory.

    python -m benchmarks.scale partitions 1000

Prints the figures as JSON. Costs are processor time of the broker in the cheapest of many rounds, so that other
processes have little effect; memory is resident memory. All scales except connections use no sockets
(`benchmarks.inside`).
"""

import argparse
import asyncio
import json
import os
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from benchmarks import frames, inside
from benchmarks.inside import Peer
from benchmarks.targets import KINDS, Server, running
from broker.clock import turns
from broker.cluster.cluster import Cluster
from protocol.apis import ApiKey
from protocol.codec import encode_request
from protocol.errors import ErrorCode
from protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.metadata import MetadataRequest
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

Values = dict[str, float]
_ROUNDS, _EACH = 40, 25
_TURNS_OF_MARKERS = 12
_ASK_VERSIONS = b"\0\0\0\x0a\0\x12\0\0\0\0\0\x01\xff\xff"
_FEW = {"offsets.topic.num.partitions": "4", "transaction.state.log.num.partitions": "4"}


def rss() -> float:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def cost_us(do: Callable[[], Awaitable[object]], each: int = _EACH, rounds: int = _ROUNDS) -> float:
    """Return the processor time of one call, in the cheapest of many rounds."""
    best = float("inf")
    for _ in range(rounds):
        begun = time.thread_time()
        for _ in range(each):
            await do()
        best = min(best, (time.thread_time() - begun) / each)
    return best * 1e6


# --- topics and partitions -------------------------------------------------------------------------------------------


async def partitions(count: int) -> Values:
    """Measure a cluster with `count` partitions, ten per topic."""
    async with inside.broker() as cluster:
        with Peer(cluster) as peer:
            await _create(peer, "warm", 10)
            before, begun = rss(), time.thread_time()
            for number in range(max(count // 10, 1)):
                await _create(peer, f"t{number}", 10)
            created, grown = time.thread_time() - begun, rss() - before
            await peer.ask(frames.produce("t0", records=1, size=100))
            everything = encode_request(ApiKey.METADATA, 12, 1, "bench", MetadataRequest(None))
            one, produce = frames.metadata("t0"), frames.produce("t0", records=1, size=100)
            return {
                "create_us": created / count * 1e6,
                "metadata_us": await cost_us(lambda: peer.ask(everything), 1, 10) / count,
                "one_metadata_us": await cost_us(lambda: peer.ask(one)),
                "produce_us": await cost_us(lambda: peer.ask(produce)),
                "idle_ms": await _idle_ms(),
                "bytes": grown,
            }


async def _create(peer: Peer, name: str, count: int) -> None:
    topic = CreatableTopic(name, count, 1)
    response = await peer.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([topic]))
    assert response.topics[0].error_code is ErrorCode.NONE


async def _idle_ms() -> float:
    """Return the processor time of a second without requests."""
    begun = time.thread_time()
    await asyncio.sleep(1)
    return (time.thread_time() - begun) * 1e3


# --- connections -----------------------------------------------------------------------------------------------------


def connections(count: int) -> Values:
    """Measure `count` connections to a server: idle, then with requests on all of them."""
    with running(KINDS["understudy"]) as server:
        _round([_connected(server)])
        before = server.rss_bytes()
        sockets = [_connected(server) for _ in range(count)]
        _round(sockets)
        grown = server.rss_bytes() - before
        idle = _cpu_s(server)
        time.sleep(1)
        idle = _cpu_s(server) - idle
        rounds, costs = max(1000 // count, 1), []
        for _ in range(5):
            begun = _cpu_s(server)
            for _ in range(rounds):
                _round(sockets)
            costs.append((_cpu_s(server) - begun) / rounds / count)
        for each in sockets:
            each.close()
        return {"request_us": min(costs) * 1e6, "idle_ms": idle * 1e3, "bytes": grown}


def _connected(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), 20)


def _round(sockets: list[socket.socket]) -> None:
    """Send a request on all connections, then read all responses."""
    for each in sockets:
        each.sendall(_ASK_VERSIONS)
    for each in sockets:
        size = int.from_bytes(each.recv(4, socket.MSG_WAITALL))
        each.recv(size, socket.MSG_WAITALL)


def _cpu_s(server: Server) -> float:
    """Return the processor time of the server's threads."""
    tasks = Path(f"/proc/{server.process.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


# --- groups ----------------------------------------------------------------------------------------------------------


async def members(count: int) -> Values:
    """Measure one group of `count` members: a rebalance of all of them, and their heartbeats."""
    async with inside.broker("t:1", settings=_FEW) as cluster:
        peers = [Peer(cluster) for _ in range(max(count, 2))]
        while (await peers[0].call(ApiKey.HEARTBEAT, 3, HeartbeatRequest("g", 0, "x"))).error_code in NOT_YET:
            await peers[0].ask(frames.find_coordinator("g"))
        await rebalance(cluster, "warm", peers[:2])
        before, begun = rss(), time.thread_time()
        beat = await rebalance(cluster, "g", peers)
        took, grown = time.thread_time() - begun, rss() - before
        assert (await peers[-1].call(ApiKey.HEARTBEAT, 3, beat)).error_code is ErrorCode.NONE
        frame = encode_request(ApiKey.HEARTBEAT, 3, 1, "bench", beat)
        return {
            "rebalance_us": took / count * 1e6,
            "heartbeat_us": await cost_us(lambda: peers[-1].ask(frame)),
            "idle_ms": await _idle_ms(),
            "bytes": grown,
        }


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
    given = [SyncGroupRequestAssignment(each, bytes(40)) for each in ids]
    syncs = [SyncGroupRequest(group, generation, each, given if each == leader else ()) for each in ids]
    synced = await asyncio.gather(
        *(peer.call(ApiKey.SYNC_GROUP, 3, sync) for peer, sync in zip(peers, syncs, strict=True))
    )
    assert all(each.error_code is ErrorCode.NONE for each in synced)
    return HeartbeatRequest(group, generation, ids[-1])


NOT_YET = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


# --- transactions ----------------------------------------------------------------------------------------------------


async def transactions(count: int) -> Values:
    """Measure `count` transactional ids with open transactions, and another one that commits repeatedly."""
    async with inside.broker("t:1", settings=_FEW) as cluster:
        with Peer(cluster) as peer:
            mine = await begin(peer, "mine")
            await committed(peer, "mine", mine)
            before, begun = rss(), time.thread_time()
            for number in range(count):
                await begin(peer, f"id-{number}")
            took, grown = time.thread_time() - begun, rss() - before

            async def cycle() -> None:
                await add(peer, "mine", mine)
                await committed(peer, "mine", mine)

            produce = frames.produce("t", records=1, size=100)
            return {
                "open_us": took / count * 1e6,
                "commit_us": await cost_us(cycle, 10, 10),
                "produce_us": await cost_us(lambda: peer.ask(produce)),
                "idle_ms": await _idle_ms(),
                "bytes": grown,
            }


async def begin(peer: Peer, name: str) -> tuple[int, int]:
    """Open a transaction of a new producer; return its id and epoch."""
    while True:
        response = await peer.call(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(name, 60_000))
        if response.error_code is ErrorCode.NONE:
            break
        assert response.error_code in NOT_YET
        await peer.ask(frames.find_transactions(name))
    producer = (response.producer_id, response.producer_epoch)
    await add(peer, name, producer)
    return producer


async def add(peer: Peer, name: str, producer: tuple[int, int]) -> None:
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


async def committed(peer: Peer, name: str, producer: tuple[int, int]) -> None:
    """Commit a transaction; returns with the response, which precedes the markers."""
    response = await peer.call(ApiKey.END_TXN, 3, EndTxnRequest(name, *producer, committed=True))
    assert response.error_code is ErrorCode.NONE


# --- brokers, the journal --------------------------------------------------------------------------------------------


async def brokers(count: int) -> Values:
    """Measure a cluster of `count` brokers: a topic on one of them, and one with a replica on each."""
    before, begun = rss(), time.thread_time()
    async with inside.broker(brokers=count) as cluster:
        took, grown = time.thread_time() - begun, rss() - before
        with Peer(cluster) as peer:
            for name, ids in (("one", [1]), ("all", list(range(1, count + 1)))):
                topic = CreatableTopic(name, -1, -1, [CreatableReplicaAssignment(0, ids)])
                response = await peer.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([topic]))
                assert response.topics[0].error_code is ErrorCode.NONE
            one, every = (frames.produce(name, records=1, size=100) for name in ("one", "all"))
            return {
                "start_ms": took * 1e3,
                "produce_us": await cost_us(lambda: peer.ask(one)),
                "replicated_us": await cost_us(lambda: peer.ask(every)) / count,
                "idle_ms": await _idle_ms(),
                "bytes": grown,
            }


async def journal(entries: int) -> Values:
    """Measure a journal of `entries` requests; 0: no journal."""
    async with inside.broker("t:1", settings={"understudy.journal.max.entries": str(entries)}) as cluster:
        with Peer(cluster) as peer:
            produce = frames.produce("t", records=1, size=100)
            before = rss()
            for _ in range(min(entries, 20_000)):
                await peer.ask(produce)
            grown = rss() - before
            fetch = frames.fetch(cluster.partitions["t", 0].topic_id, offset=0)
            await peer.ask(produce)
            return {
                "produce_us": await cost_us(lambda: peer.ask(produce)),
                "fetch_us": await cost_us(lambda: peer.ask(fetch)),
                "bytes": grown,
            }


SCALES: dict[str, Callable[[int], Awaitable[Values] | Values]] = {
    each.__name__: each for each in (partitions, connections, members, transactions, brokers, journal)
}


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    asked.add_argument("scale", choices=SCALES)
    asked.add_argument("size", type=int)
    options = asked.parse_args()
    measure = SCALES[options.scale]
    if measure is connections:
        print(json.dumps(connections(options.size)))
        return
    print(json.dumps(inside.run(lambda: measure(options.size))))


if __name__ == "__main__":
    main()
