"""Counts the source files that a request passes on its way through a broker, and how often it returns to one.

    python tools/request_path.py [produce | end-txn | clock-advance] [--walk]

Each walk runs once to warm up caches and lazy imports, then once under the profiler: from the bytes in the connection's
buffer to the response that is written. `--walk` prints every file that is entered, in order.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.inside import Peer, broker, run, until
from broker.cluster.cluster import Cluster
from protocol.apis import ApiKey
from protocol.codec import encode_request
from protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.records import Record, build_batch

PACKAGES = ("broker", "protocol", "storage", "control_api")


class Walk(NamedTuple):
    """What one walk entered: the files in order, a file named again whenever the walk comes back to it."""

    stays: list[str]
    calls: int

    @property
    def files(self) -> int:
        """The number of different files."""
        return len(set(self.stays))

    @property
    def returns(self) -> int:
        """How often a file is entered that the walk had left before."""
        return len(self.stays) - self.files


async def walked(act: Callable[[], Awaitable[Any]]) -> Walk:
    """Do something under the profiler."""
    stays: list[str] = []
    calls = 0

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        if event != "call":
            return
        path = frame.f_code.co_filename
        if not path.startswith(f"{ROOT}/"):
            return
        name = path[len(str(ROOT)) + 1 :]
        if name.partition("/")[0] in PACKAGES:
            calls += 1
            if not stays or stays[-1] != name:
                stays.append(name)

    sys.setprofile(profile)
    try:
        await act()
    finally:
        sys.setprofile(None)
    return Walk(stays, calls)


def frame(key: ApiKey, version: int, request: Any) -> bytes:
    """Return a request as its client sends it, with its size."""
    return bytes(encode_request(key, version, 1, "walk", request))


async def produce() -> Walk:
    """A Produce of one record with acks=1, as librdkafka sends it."""
    async with broker("t") as cluster:
        with Peer(cluster) as peer:
            topic = next(iter(cluster.image.topics.values()))
            records = build_batch([Record(0, cluster.clock.now_ms(), b"key", b"value")])
            data = TopicProduceData(partition_data=[PartitionProduceData(0, records)], topic_id=topic.id)
            request = frame(ApiKey.PRODUCE, 13, ProduceRequest(None, 1, 30_000, [data]))
            for _ in range(3):
                await peer.ask(request)
            return await walked(lambda: peer.ask(request))


async def end_txn() -> Walk:
    """An EndTxn that commits one partition, from the request to CompleteCommit and the response."""
    async with broker("t") as cluster:
        with Peer(cluster) as peer:
            await transaction(peer, cluster, EndTxn())
            return await transaction(peer, cluster, EndTxn(profiled=True))


class EndTxn(NamedTuple):
    """How a transaction is ended."""

    profiled: bool = False


async def transaction(peer: Peer, cluster: Cluster, end: EndTxn) -> Walk:
    """Begin a transaction with one partition and commit it."""
    find = FindCoordinatorRequest(coordinator_keys=["x"], key_type=1)  # creates the internal topic
    await peer.call(ApiKey.FIND_COORDINATOR, 6, find)
    producer = await peer.call(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest("x", 60_000))
    topics = [AddPartitionsToTxnTopic("t", [0])]
    partitions = AddPartitionsToTxnRequest("x", producer.producer_id, producer.producer_epoch, topics)
    await peer.call(ApiKey.ADD_PARTITIONS_TO_TXN, 3, partitions)
    request = frame(ApiKey.END_TXN, 4, EndTxnRequest("x", producer.producer_id, producer.producer_epoch, True))

    async def commit() -> None:
        await peer.ask(request)
        machines = [each.machine for each in cluster.nodes[1].coordinators.transactions.values()]
        await until(
            lambda: all(one.state.name == "COMPLETE_COMMIT" for m in machines for one in m.transactions.values())
        )

    if end.profiled:
        return await walked(commit)
    await commit()
    return Walk([], 0)


async def clock_advance() -> Walk:
    """The timers and rounds that are due when the clock is pushed by 61 s."""
    async with broker("t") as cluster:
        await cluster.clock.push(61_000)
        return await walked(lambda: cluster.clock.push(61_000))


WALKS: dict[str, Callable[[], Awaitable[Walk]]] = {
    "produce": produce,
    "end-txn": end_txn,
    "clock-advance": clock_advance,
}


def main() -> None:
    """Print the counts of the walks that are named, or of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("walks", nargs="*", choices=[*WALKS, []], metavar="WALK", help=", ".join(WALKS))
    parser.add_argument("--walk", action="store_true", help="print the files in the order in which they are entered")
    arguments = parser.parse_args()
    for name in arguments.walks or WALKS:
        walk = run(WALKS[name])
        print(f"{name}: {walk.calls} calls, {walk.files} files, {len(walk.stays)} stays, {walk.returns} returns")
        most = Counter(walk.stays).most_common(6)
        print("  entered most: " + ", ".join(f"{file} {count}" for file, count in most))
        if arguments.walk:
            print(*(f"  {file}" for file in walk.stays), sep="\n")


if __name__ == "__main__":
    main()
