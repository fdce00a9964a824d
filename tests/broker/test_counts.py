"""What a request costs, in counts that do not depend on the machine: copies, writes, encodings, wake-ups, calls."""

import sys
import tracemalloc
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Any

import pytest

from benchmarks import frames, inside
from benchmarks.inside import Peer
from broker.cluster.cluster import Cluster
from broker.server import client_connection, dispatcher
from broker.time.clock import Waiter, turns
from protocol import codec
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic

Body = Callable[[Cluster, Peer], Awaitable[None]]


def with_peer(body: Body) -> None:
    """Run with a broker that has one topic, and a connection to it."""

    async def run() -> None:
        async with inside.broker("t:1") as cluster:
            with Peer(cluster) as peer:
                await body(cluster, peer)

    inside.run(run)


def test_a_produce_request_is_copied_nowhere() -> None:
    """The transport fills the frame, and the log keeps it."""
    frame = frames.produce("t", records=800, size=1000)

    async def body(_cluster: Cluster, peer: Peer) -> None:
        await peer.ask(frame)
        tracemalloc.start()
        try:
            await peer.ask(frame)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len(frame) <= most < len(frame) * 1.05

    with_peer(body)


def test_a_fetch_answer_is_made_of_slices_of_the_log() -> None:
    """A megabyte goes out without being copied."""

    async def body(cluster: Cluster, peer: Peer) -> None:
        await peer.ask(frames.produce("t", records=800, size=1000))
        frame = frames.fetch(cluster.partitions["t", 0].topic_id, offset=0)
        await peer.ask(frame)
        tracemalloc.start()
        try:
            parts = await peer.ask(frame)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert sum(map(len, parts)) > 800_000
        assert most < 40_000

    with_peer(body)


def test_a_response_is_encoded_once_and_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the journal, faults and timelines see it too."""
    encoded: list[int] = []
    encode = codec.encode_response

    def counting(key: int, *rest: Any) -> Any:
        encoded.append(key)
        return encode(key, *rest)

    monkeypatch.setattr(dispatcher, "encode_response", counting)

    async def body(_cluster: Cluster, peer: Peer) -> None:
        before = peer.wire.writes
        await peer.ask(frames.produce("t", records=1, size=100))
        assert encoded == [0]
        assert peer.wire.writes - before == 1

    with_peer(body)


def test_a_fetch_with_quotas_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its size is charged before its session takes note of it; only the id of a new session is not known then."""
    encoded: list[int] = []
    writer = codec.response_writer

    def counting(key: int, version: int) -> Any:
        encoded.append(key)
        return writer(key, version)

    async def body(cluster: Cluster, peer: Peer) -> None:
        quota = EntryData([EntityData("client-id", None)], [OpData("consumer_byte_rate", 1e12)])
        await peer.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest([quota]))
        for _ in range(3):
            await peer.ask(frames.produce("t", records=1, size=100))
        topics = [FetchTopic(partitions=[FetchPartition(0, 0, 1 << 20)], topic_id=cluster.partitions["t", 0].topic_id)]
        monkeypatch.setattr(codec, "response_writer", counting)
        session_id = 0
        for epoch, times in ((-1, 1), (0, 2), (1, 1), (2, 1)):
            listed = topics if epoch <= 0 else []
            request = FetchRequest(max_wait_ms=0, session_id=session_id, session_epoch=epoch, topics=listed)
            encoded.clear()
            response = await peer.call(ApiKey.FETCH, 16, request)
            assert encoded == [ApiKey.FETCH] * times
            assert (response.error_code, response.throttle_time_ms) == (ErrorCode.NONE, 0)
            session_id = response.session_id
            assert len(response.responses) == 1
            assert response.responses[0].partitions[0].high_watermark == 3
            assert response.responses[0].partitions[0].records

    with_peer(body)


def test_a_request_that_has_nothing_to_wait_for_is_answered_where_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """No task is woken, so the loop need not turn; what is behind a fetch that waits is answered by a task."""
    monkeypatch.setattr(client_connection, "_TURN_US", 60_000_000)  # a slow machine ends no turn

    async def body(cluster: Cluster, peer: Peer) -> None:
        frame, empty = frames.produce("t", records=1, size=100), frames.produce("t", records=1, size=90)
        await peer.ask(frame)
        await turns(4)  # until the task waits
        before = peer.wire.writes
        peer.send(frame + empty)
        assert peer.wire.writes - before == 1
        end = 3
        peer.send(frames.fetch(cluster.partitions["t", 0].topic_id, offset=end, max_wait_ms=60_000) + frame)
        await turns(8)
        assert peer.wire.writes - before == 1
        with Peer(cluster) as other:
            await other.ask(frame)
        await inside.until(lambda: peer.wire.writes - before == 3)

    with_peer(body)


def test_requests_of_one_read_are_answered_by_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small responses of a turn go out together; behind 64 KiB of them the next one is not held back."""
    monkeypatch.setattr(client_connection, "_TURN_US", 60_000_000)  # a slow machine ends no turn

    async def body(cluster: Cluster, peer: Peer) -> None:
        await peer.ask(frames.produce("t", records=700, size=100))
        await turns(4)  # until the task waits
        before = peer.wire.writes
        peer.send(frames.produce("t", records=1, size=100) * 8)
        assert peer.wire.writes - before == 1
        peer.send(frames.fetch(cluster.partitions["t", 0].topic_id, offset=0) * 4)  # 70 KB each
        assert peer.wire.writes - before > 2

    with_peer(body)


def test_metadata_and_what_was_sent_right_behind_go_out_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """librdkafka gives up the connection with the metadata that it gets there, and what it still waits for with it."""
    monkeypatch.setattr(client_connection, "_TURN_US", 60_000_000)  # however slow the machine is, both are one turn

    async def body(_cluster: Cluster, peer: Peer) -> None:
        for frame in (frames.metadata("t"), frames.find_coordinator("g")):
            await peer.ask(frame)  # what is compiled on first use takes more than a turn
        before = peer.wire.writes
        answer = b"".join(await peer.ask(frames.metadata("t") + frames.find_coordinator("g")))
        first = int.from_bytes(answer[:4]) + 4
        assert first < len(answer)
        assert int.from_bytes(answer[first : first + 4]) + 4 == len(answer) - first
        assert peer.wire.writes - before == 1

    with_peer(body)


def test_a_fetch_that_waits_is_answered_right_behind_the_produce() -> None:
    """In the same call of the transport: the loop need not turn, and no task is woken; so are those behind it."""

    async def body(cluster: Cluster, peer: Peer) -> None:
        record, topic_id = frames.produce("t", records=1, size=100), cluster.partitions["t", 0].topic_id
        answered: list[str] = []
        with Peer(cluster) as reader:
            await turns(4)  # until both connections are served
            reader.wire.on_write = lambda: answered.append("fetch")
            peer.wire.on_write = lambda: answered.append("produce")
            for offset in range(2):
                reader.send(frames.fetch(topic_id, offset=offset, max_wait_ms=60_000))
                assert answered == ["produce", "fetch"] * offset
                peer.send(record)
                assert answered == ["produce", "fetch"] * (offset + 1)

    with_peer(body)


def test_what_is_sent_behind_a_fetch_that_waits_is_answered_behind_it() -> None:
    """However the wait ends: by a record, by the clock, or with the connection, whose requests are still served."""

    async def body(cluster: Cluster, peer: Peer) -> None:
        record, topic_id = frames.produce("t", records=1, size=100), cluster.partitions["t", 0].topic_id
        with Peer(cluster) as reader:
            await turns(4)
            reader.send(frames.fetch(topic_id, offset=0, max_wait_ms=60_000) + record)
            peer.send(record)
            assert reader.wire.writes == 1
            await inside.until(lambda: reader.wire.writes == 2)
            reader.send(frames.fetch(topic_id, offset=2, max_wait_ms=60_000) + record)
            await cluster.clock.push(60_000)
            await inside.until(lambda: reader.wire.writes == 4)
            reader.send(frames.fetch(topic_id, offset=3, max_wait_ms=60_000) + record)
        await inside.until(lambda: cluster.partitions["t", 0].led_by(1).log_end_offset == 4)

    with_peer(body)


def test_an_append_wakes_a_fetch_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that waits is answered by the first batch that comes."""
    woken: list[Waiter] = []
    wake = Waiter.wake

    def counting(waiter: Waiter) -> None:
        woken.append(waiter)
        wake(waiter)

    monkeypatch.setattr(Waiter, "wake", counting)

    async def body(cluster: Cluster, peer: Peer) -> None:
        with Peer(cluster) as reader:
            reader.send(frames.fetch(cluster.partitions["t", 0].topic_id, offset=0, max_wait_ms=60_000))
            await inside.until(lambda: bool(cluster.partitions["t", 0].watched))
            await peer.ask(frames.produce("t", records=1, size=100))
            await inside.until(lambda: reader.wire.writes == 1)
            assert len(woken) == 1

    with_peer(body)


async def calls_of_one(peer: Peer, frame: bytes) -> int:
    """Count the Python functions called from a request's first byte to its answer's last."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        await peer.ask(frame)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(("name", "most"), [("produce", 135), ("fetch", 117)])
def test_a_small_request_takes_few_calls(name: str, most: int) -> None:
    """Of Python functions, from the bytes to the bytes: at half a microsecond each they are what a request costs.

    Both are what is seen. Three of them are the closures of the chain, which cost less than the calls of
    ``partial`` objects that no profiler counts.
    """

    async def body(cluster: Cluster, peer: Peer) -> None:
        produce = frames.produce("t", records=1, size=100)
        frame = produce if name == "produce" else frames.fetch(cluster.partitions["t", 0].topic_id, offset=9)
        for _ in range(10):
            await peer.ask(produce)
        await peer.ask(frame)
        # The least of several rounds: a timer or the garbage collector may add calls of its own to any of them.
        assert min([await calls_of_one(peer, frame) for _ in range(5)]) <= most

    with_peer(body)
