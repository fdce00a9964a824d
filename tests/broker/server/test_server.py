"""Sockets and connections: order, turns, back-pressure, ends (core A.3, A.4)."""

import asyncio
import socket
import struct
from collections.abc import Container
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from broker.request.answers import Disconnect
from broker.request.connection import Connection
from broker.settings.endpoints import PortTaken
from broker.time.clock import turns
from tests.broker.server.server_harness import HERE, echo, on_each_loop, seen, serving

# --- order -----------------------------------------------------------------------------------------------------------


@on_each_loop
async def test_pipelined_requests_are_answered_in_order() -> None:
    """A hundred requests sent in one go are answered in their order."""
    async with serving(echo) as bench:
        peer = await bench.connect()
        payloads = [b"%d" % number for number in range(100)]
        peer.send(*payloads)
        assert [await peer.receive() for _ in payloads] == payloads


@on_each_loop
async def test_requests_before_a_refused_one_are_answered() -> None:
    """All three come in one read; the connection is closed behind the second response."""

    async def answer(payload: bytes, _connection: Connection) -> bytes:
        if payload == b"bad":
            raise Disconnect("not like this")
        return payload

    async with serving(answer) as bench:
        peer = await bench.connect()
        peer.send(b"first", b"second", b"bad", b"behind")
        assert [await peer.receive(), await peer.receive()] == [b"first", b"second"]
        await peer.check_closed()


@on_each_loop
async def test_a_request_waits_for_the_one_before_it() -> None:
    """One at a time on a connection; other connections do not wait (core A.3)."""
    go = asyncio.Event()

    async def answer(payload: bytes, _connection: Connection) -> bytes:
        if payload == b"slow":
            await go.wait()
        return payload

    async with serving(answer) as bench:
        peer, other = await bench.connect(), await bench.connect()
        peer.send(b"slow", b"next")
        await seen(lambda: bench.dispatcher.frames == [b"slow"])
        other.send(b"other")
        assert await other.receive() == b"other"
        assert bench.dispatcher.frames == [b"slow", b"other"]
        go.set()
        assert [await peer.receive(), await peer.receive()] == [b"slow", b"next"]


@on_each_loop
async def test_no_answer_is_no_frame() -> None:
    """acks=0: the next answer is the next request's."""

    async def answer(payload: bytes, _connection: Connection) -> bytes | None:
        return None if payload == b"silent" else payload

    async with serving(answer) as bench:
        peer = await bench.connect()
        peer.send(b"silent", b"x")
        assert await peer.receive() == b"x"


@on_each_loop
async def test_a_large_frame_is_read_whole() -> None:
    """Three megabytes, and its answer of the same size."""
    async with serving(echo) as bench:
        peer = await bench.connect()
        payload = bytes(range(256)) * 12_000
        peer.send(payload)
        assert await peer.receive() == payload


@on_each_loop
async def test_many_requests_at_once_are_served_in_turns() -> None:
    """Another client is answered while thousands of one peer's requests are still waiting."""
    async with serving(echo) as bench:
        greedy, other = await bench.connect(), await bench.connect()
        greedy.send(*[b"x"] * 50_000)
        other.send(b"y")
        assert await other.receive() == b"y"
        assert bench.dispatcher.frames.count(b"x") < 50_000


@on_each_loop
async def test_an_answer_may_be_followed_by_a_pause() -> None:
    """Answered at once, then not read from until the throttle time is over (core A.6)."""

    async def answer(payload: bytes, connection: Connection) -> bytes:
        connection.throttled_until_ms = 500 if payload == b"much" else 0
        return payload

    async with serving(answer) as bench:
        peer = await bench.connect()
        peer.send(b"much", b"more")
        assert await peer.receive() == b"much"
        bench.clock.advance(499)
        await asyncio.sleep(0)
        assert bench.dispatcher.frames == [b"much"]
        bench.clock.advance(1)
        assert await peer.receive() == b"more"


# --- back-pressure ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@on_each_loop
async def test_nothing_more_is_answered_while_answers_do_not_go_out() -> None:
    """What is not read is not produced (conformance 4 B51)."""

    async def answer(_payload: bytes, _connection: Connection) -> bytes:
        return bytes(1 << 20)

    async with serving(answer) as bench:
        peer = await bench.connect()
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        peer.send(*[b"x"] * 200)
        await seen(lambda: len(bench.dispatcher.frames) > 1)
        (connection,) = bench.server._connections()
        await seen(lambda: connection._writable is not None)
        assert len(bench.dispatcher.frames) < 100
        peer.writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert [len(await peer.receive()) for _ in range(200)] == [1 << 20] * 200


@on_each_loop
async def test_reading_ahead_has_a_bound() -> None:
    """Large requests wait in the socket while one is being served."""
    go = asyncio.Event()

    async def answer(payload: bytes, _connection: Connection) -> bytes:
        await go.wait()
        return payload[:1]

    async with serving(answer) as bench:
        peer = await bench.connect()
        peer.send(*[bytes(3 << 20)] * 12)
        await seen(lambda: bench.server.connections.held_bytes > 3 << 20)
        for _ in range(100):
            await asyncio.sleep(0)
        assert bench.server.connections.held_bytes < 16 << 20
        go.set()
        assert [await peer.receive() for _ in range(12)] == [b"\0"] * 12
        assert bench.server.connections.held_bytes == 0


# --- the end ---------------------------------------------------------------------------------------------------------


@on_each_loop
async def test_a_refused_request_is_one_line_and_the_end() -> None:
    """With the peer, the request and the reason; what came after it is not looked at."""

    async def answer(payload: bytes, _connection: Connection) -> bytes:
        if payload.startswith(b"\0\3"):
            raise Disconnect("not like this")
        return payload

    with capture_logs() as lines:
        async with serving(answer) as bench:
            peer = await bench.connect()
            peer.send(b"first", b"\0\3\0\1 bad", b"never")
            assert await peer.receive() == b"first"
            await peer.check_closed()
            assert bench.dispatcher.frames == [b"first", b"\0\3\0\1 bad"]
            host, port = peer.writer.get_extra_info("sockname")
    (line,) = lines
    assert (line["event"], line["peer"]) == ("connection closed", f"{host}:{port}")
    assert (line["api"], line["version"], line["reason"]) == ("Metadata", 1, "not like this")


@on_each_loop
async def test_frames_before_a_bad_size_are_answered() -> None:
    """Then the connection is closed (core CON-01)."""
    async with serving(echo, socket_request_max_bytes=100) as bench:
        peer = await bench.connect()
        peer.send(b"good")
        peer.writer.write(struct.pack(">i", 101) + b"x")
        assert await peer.receive() == b"good"
        await peer.check_closed()


@on_each_loop
async def test_what_was_sent_before_the_end_is_done() -> None:
    """acks=0, then closed: the requests are served, though no client reads the answers (core A.3.3)."""
    async with serving(echo) as bench:
        peer = await bench.connect()
        peer.send(*[b"%d" % number for number in range(50)])
        peer.writer.close()
        await seen(lambda: len(bench.dispatcher.frames) == 50)
        await seen(lambda: not bench.server.connections.open)
        assert bench.dispatcher.frames[-1] == b"49"


@on_each_loop
async def test_who_waits_for_a_peer_hears_that_it_is_gone() -> None:
    """A fetch for weeks ends with its connection."""
    ended = asyncio.Event()

    async def answer(_payload: bytes, connection: Connection) -> bytes:
        gone = asyncio.Event()
        connection.watch(gone.set)
        await gone.wait()
        ended.set()
        return b"too late"

    async with serving(answer) as bench:
        peer = await bench.connect()
        peer.send(b"wait")
        await seen(lambda: bool(bench.dispatcher.frames))
        peer.writer.close()
        await ended.wait()
        assert not bench.server.connections.open


@on_each_loop
async def test_a_fault_of_ours_ends_one_connection() -> None:
    """An unexpected exception is logged and closes its connection; the others go on."""

    async def answer(payload: bytes, _connection: Connection) -> bytes:
        if payload == b"bad":
            raise ZeroDivisionError
        return payload

    with capture_logs() as lines:
        async with serving(answer) as bench:
            unlucky, other = await bench.connect(), await bench.connect()
            unlucky.send(b"bad")
            await unlucky.check_closed()
            other.send(b"x")
            assert await other.receive() == b"x"
    assert [line["event"] for line in lines] == ["connection failed"]


@on_each_loop
async def test_a_request_that_is_cancelled_at_once_leaves_no_action_behind() -> None:
    """Waits of other connections end by the actions of their broker."""

    async def answer(_payload: bytes, _connection: Connection) -> bytes:
        raise asyncio.CancelledError

    async with serving(answer) as bench:
        peer, done = await bench.connect(), asyncio.Event()
        peer.send(b"x")
        await seen(lambda: bench.dispatcher.frames == [b"x"])
        bench.server.actions.add(done.set)
        await seen(done.is_set)
        assert bench.dispatcher.frames == [b"x"]


@on_each_loop
async def test_idle_connections_are_closed_by_the_clock() -> None:
    """The one that speaks stays (core CON-13)."""
    async with serving(echo, connections_max_idle_ms=1000) as bench:
        idle, busy = await bench.connect(), await bench.connect()
        for peer in (idle, busy):
            peer.send(b"x")
            await peer.receive()
        bench.clock.advance(900)
        busy.send(b"y")
        assert await busy.receive() == b"y"
        bench.clock.advance(900)
        await idle.check_closed()
        busy.send(b"z")
        assert await busy.receive() == b"z"


@on_each_loop
async def test_a_peer_that_does_not_read_is_not_waited_for() -> None:
    """Its connection is aborted, for what is written would never go out (conformance 4 B51)."""

    async def answer(_payload: bytes, _connection: Connection) -> bytes:
        return bytes(8 << 20)

    async with serving(answer, connections_max_idle_ms=1000) as bench:
        peer = await bench.connect()
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        peer.send(b"x", b"y")
        await seen(lambda: any(each._writable is not None for each in bench.server._connections()))
        bench.clock.advance(1000)
        await seen(lambda: not bench.server.connections.open)
        assert len(bench.dispatcher.frames) == 1


@on_each_loop
async def test_above_the_limit_a_connection_waits_unread() -> None:
    """max.connections, until another one goes."""
    async with serving(echo, max_connections=1) as bench:
        first, second = await bench.connect(), await bench.connect()
        second.send(b"later")
        first.send(b"now")
        assert await first.receive() == b"now"
        assert bench.dispatcher.frames == [b"now"]
        first.writer.close()
        assert await second.receive() == b"later"


# --- steering --------------------------------------------------------------------------------------------------------


@on_each_loop
async def test_a_paused_broker_reads_nothing() -> None:
    """Neither from open connections nor from new ones; all is answered when it goes on."""
    async with serving(echo) as bench:
        old = await bench.connect()
        old.send(b"before")
        assert await old.receive() == b"before"
        bench.server.pause()
        new = await bench.connect()
        old.send(b"old")
        new.send(b"new")
        for _ in range(200):
            await asyncio.sleep(0)
        assert bench.dispatcher.frames == [b"before"]
        bench.server.resume()
        assert (await old.receive(), await new.receive()) == (b"old", b"new")


@pytest.mark.parametrize("reset", [False, True])
@on_each_loop
async def test_closing_ends_every_connection(reset: bool) -> None:
    """In order, or as a process that is killed."""
    async with serving(echo) as bench:
        peers = [await bench.connect() for _ in range(3)]
        for peer in peers:
            peer.send(b"x")
            await peer.receive()
        bench.server.close(reset=reset)
        for peer in peers:
            await peer.check_closed()
        with pytest.raises(OSError, match=r"[Cc]onnect"):
            await bench.connect()


@on_each_loop
async def test_a_port_is_bound_once() -> None:
    """A port that is in use raises PortTaken, which names it."""
    async with serving(echo) as bench:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            with pytest.raises(PortTaken) as caught:
                await bench.server.listen(HERE, port)
        assert caught.value.port == port


@on_each_loop
async def test_a_text_that_no_host_has_as_its_name_is_not_bound() -> None:
    """PortTaken, as for the address of another machine."""
    async with serving(echo) as bench:
        for host in ("a..b", "x" * 64, "a\0b"):
            with pytest.raises(PortTaken, match="cannot be bound"):
                await bench.server.listen(replace(HERE, host=host), 0)


class FirstTwo(Container[int]):
    """The first two ports that it is asked about."""

    def __init__(self) -> None:
        self.ports: list[object] = []

    def __contains__(self, port: object) -> bool:
        """Whether it is one of them."""
        if len(self.ports) < 2:
            self.ports.append(port)
        return port in self.ports


@on_each_loop
async def test_a_free_port_is_none_of_those_to_avoid() -> None:
    """The system's first choices are passed over, and are free again afterwards."""
    async with serving(echo) as bench:
        avoided = FirstTwo()
        port = await bench.server.listen(HERE, 0, avoided)
        assert len({*avoided.ports, port}) == 3
        await turns(2)  # uvloop closes sockets in the next turn
        for free in avoided.ports:
            assert (
                await bench.server.listen(HERE, int(str(free)), avoided) == free
            )  # one that was chosen is not passed over
