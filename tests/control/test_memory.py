"""Memory comes back with a reset, a restore, a deleted topic, a segment that retention ends."""

from collections.abc import Callable

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.conftest import BrokerWith
from tests.scenarios.core.asking import create, produce_request, topic
from tests.scenarios.core.batches import batch
from tests.serving import Server
from tests.wire import Wire

MOST_GROWTH = 1.3
"""Resident memory of the last round, as a multiple of that in which the journal became full, or the second's.

On top of it comes what one round has freed: the server keeps that for five seconds (``broker/cluster/heap.py``), so on
a slow machine it may be gone when an early round is measured, and be there after the last one.
"""
JOURNAL_ENTRIES = 100_000
"""What the journal keeps by default: until it has as many, memory that grows is what the user asked for."""
LARGE, SMALL = 900_000, 4_000
Round = Callable[[Server, Wire], None]


def reset(server: Server, _wire: Wire) -> None:
    """Begin again."""
    server.reset()


def restore(server: Server, _wire: Wire) -> None:
    """Go back to the state before the first round."""
    first = server.control("GET", "/v1/snapshots")["snapshots"][0]["id"]
    server.control("POST", f"/v1/snapshots/{first}/restore")


def delete(_server: Server, wire: Wire) -> None:
    """Delete the topic."""
    request = DeleteTopicsRequest(topics=[DeleteTopicState("t", None)], timeout_ms=5000)
    (result,) = wire.call(ApiKey.DELETE_TOPICS, 6, request).responses
    assert result.error_code is ErrorCode.NONE


def retain(server: Server, wire: Wire) -> None:
    """Let retention end all segments but the active ones, of which the topic goes then."""
    server.advance(3_600_000)
    assert server.control("GET", "/v1/topics/t/partitions/0")["log_start_offset"] > 0
    delete(server, wire)


def write(wire: Wire, size: int, count: int) -> None:
    """Write batches of that size to four partitions."""
    records = batch(b"x" * size)
    for first in range(0, count, 4):
        for number in range(first, first + 4):
            wire.send(ApiKey.PRODUCE, 9, produce_request({"t": {number % 4: records}}))
        for _ in range(4):
            assert wire.answer().responses[0].partition_responses[0].error_code is ErrorCode.NONE


def check_growth(server: Server, end: Round, *, rounds: int, mebibytes: int, size: int) -> None:
    """Write, end the round, write again: a server whose journal is full is no larger after the last round."""
    sizes = []
    batches = mebibytes * (1 << 20) // size // 4 * 4
    full = JOURNAL_ENTRIES // batches
    settled = full if 1 < full < rounds - 1 else 1
    server.control("POST", "/v1/snapshots")
    for _ in range(rounds):
        wire = server.wire()
        create(wire, topic("t", 4, configs={"segment.bytes": str(2 << 20), "retention.ms": "1000"}))
        write(wire, size, batches)
        end(server, wire)
        wire.close()
        sizes.append(server.resident_bytes() >> 20)
    most = sizes[settled] * MOST_GROWTH + mebibytes
    assert sizes[-1] <= most, f"{sizes[-1]} MiB, at most {most:.0f} were expected; after each round: {sizes}"


@pytest.mark.parametrize("end", [reset, restore, delete, retain])
def test_what_was_written_is_freed(broker_with: BrokerWith, end: Round) -> None:
    """Eight rounds of 40 MiB, in large batches, on a server without a journal."""
    server = broker_with(settings={"understudy.journal.max.entries": 0})
    check_growth(server, end, rounds=8, mebibytes=40, size=LARGE)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("size", [LARGE, SMALL])
@pytest.mark.parametrize("end", [reset, restore, delete, retain])
def test_what_was_written_is_freed_fifty_times(broker_with: BrokerWith, end: Round, size: int) -> None:
    """Rounds of 100 MiB, in large and in small batches, with all that a server remembers."""
    check_growth(broker_with(), end, rounds=50, mebibytes=100, size=size)
