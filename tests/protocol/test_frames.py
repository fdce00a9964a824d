"""Frames cut out of a byte stream, however it is split."""

import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.codec import BadFrameSize, FrameReader


def feed(reader: FrameReader, data: bytes, step: int) -> list[bytes]:
    """Hand over ``data`` in pieces of at most ``step`` bytes, as a transport would."""
    frames, at = [], 0
    while at < len(data):
        space = reader.buffer()
        size = min(step, len(space), len(data) - at)
        space[:size] = data[at : at + size]
        space.release()
        frames += [bytes(frame) for frame in reader.received(size)]
        at += size
    return frames


def frame(payload: bytes) -> bytes:
    """A payload with its size."""
    return struct.pack(">i", len(payload)) + payload


@given(st.lists(st.integers(0, 70_000), max_size=6), st.integers(1, 80_000))
def test_frames_come_out_as_they_went_in(sizes: list[int], step: int) -> None:
    """Any sizes, split anywhere: the same frames in the same order."""
    payloads = [bytes((n % 251,)) * size for n, size in enumerate(sizes)]
    step = max(step, sum(sizes) // 2000)
    assert feed(FrameReader(1 << 20), b"".join(map(frame, payloads)), step) == payloads


@pytest.mark.parametrize("size", [-1, -(2**31), 1025])
def test_a_frame_outside_the_limit_is_refused(size: int) -> None:
    """Negative, or larger than socket.request.max.bytes (core CON-01)."""
    reader = FrameReader(1024)
    with pytest.raises(BadFrameSize, match=f"a frame of {size} bytes; at most 1024 are allowed") as refused:
        feed(reader, struct.pack(">i", size), 4)
    assert refused.value.frames == []


def test_frames_before_a_bad_one_still_count() -> None:
    """They came first, so they are answered first."""
    reader = FrameReader(1024)
    with pytest.raises(BadFrameSize) as refused:
        feed(reader, frame(b"good") + struct.pack(">i", -1) + b"more", 100)
    assert refused.value.frames == [b"good"]


@pytest.mark.parametrize(
    ("sent", "hint"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP on a Kafka port"),
        (bytes.fromhex("16030100a5010000a10303"), "TLS on a plaintext listener"),
    ],
)
def test_other_protocols_are_recognised(sent: bytes, hint: str) -> None:
    """The usual mistakes: a browser, and a client that uses TLS."""
    reader = FrameReader(104_857_600)
    with pytest.raises(BadFrameSize, match=hint):
        feed(reader, sent, 100)


@pytest.mark.parametrize("first_bytes", [16, 64 * 1024])
def test_a_reader_may_begin_with_a_smaller_buffer(first_bytes: int) -> None:
    """Large frames come out whole however small their first buffer was."""
    reader = FrameReader(1 << 23)
    reader.first_bytes = first_bytes
    payload = bytes(range(256)) * 20_000
    assert feed(reader, frame(payload) + frame(b"next"), 200_000) == [payload, b"next"]


def test_an_empty_frame_is_a_frame() -> None:
    """Size 0 is legal framing; its header then fails to parse (core A.1.2)."""
    assert feed(FrameReader(1024), frame(b"") + frame(b"x"), 3) == [b"", b"x"]


def test_an_announced_size_takes_no_memory() -> None:
    """A peer that announces 100 MB and sends ten bytes costs a bounded buffer, not 100 MB."""
    tracemalloc.start()
    reader = FrameReader(104_857_600)
    assert feed(reader, struct.pack(">i", 104_857_600) + b"0123456789", 14) == []
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 3 * 1024 * 1024
    assert reader.pending_bytes == 14
    assert reader.held_bytes <= 2 * 1024 * 1024


def test_a_large_frame_grows_with_what_arrives() -> None:
    """Five megabytes, beyond the first buffer: complete and equal."""
    payload = bytes(range(256)) * 20_000
    assert feed(FrameReader(1 << 23), frame(payload) + frame(b"next"), 300_000) == [payload, b"next"]
