"""File descriptors run out: nothing is lost, the data directory stays online, and clients are served on."""

import resource
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from broker.server.file_limits import Shares, divided
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from tests.scenarios.core.asking import create, fetch, produce_request, topic
from tests.scenarios.core.batches import batch
from tests.serving import Server, until
from tests.wire import Wire
from understudy.launcher import ServerProcess, command_line

PARTITIONS = 100
CLIENTS = 60
WRITES = 10_000


@pytest.fixture(scope="module", autouse=True)
def forked_starts() -> None:
    """Nothing is forked: the limit is that of the shell that starts the server."""


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with a data directory, started in a shell that allows 256 descriptors."""
    folder = tmp_path_factory.mktemp("descriptors")
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nulimit -n 256\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", str(python))
        started = ServerProcess(command_line(port=0, control_port=0, log_format="json", data_dir=folder / "data"))
    yield started
    started.stop()


@pytest.fixture
def at_256(process: ServerProcess) -> Iterator[Server]:
    """The server as just started."""
    server = Server(process)
    server.reset()
    yield server
    server.finish_test()


def open_descriptors(server: Server) -> int:
    """How many the server has now."""
    return len(list(Path(f"/proc/{server.pid}/fd").iterdir()))


def write(wires: list[Wire], writes: int) -> Counter[ErrorCode]:
    """Write single records over all partitions, one request of each client at a time; the answers by error."""
    errors: Counter[ErrorCode] = Counter()
    for first in range(0, writes, len(wires)):
        writers = wires[: writes - first]
        for number, wire in enumerate(writers, start=first):
            request = produce_request({"t": {number % PARTITIONS: batch(b"x" * 100)}})
            wire.send(ApiKey.PRODUCE, 9, request)
        for wire in writers:
            errors[wire.answer().responses[0].partition_responses[0].error_code] += 1
    return errors


def make_topic(wire: Wire) -> None:
    """A topic whose segments write an index entry with each batch: three open files for each partition."""
    (result,) = create(wire, topic("t", PARTITIONS, configs={"index.interval.bytes": "0"}))
    assert result.error_code is ErrorCode.NONE


def written(wire: Wire) -> int:
    """How many records the partitions hold."""
    return sum(fetch(wire, "t", partition=partition).high_watermark for partition in range(PARTITIONS))


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_no_write_is_lost_with_256_descriptors(at_256: Server) -> None:
    """A hundred partitions, sixty clients and the control plane share what a shell of macOS gives a process."""
    since = at_256.log_position()
    wires = [at_256.wire() for _ in range(CLIENTS)]
    make_topic(wires[0])
    assert write(wires, WRITES) == {ErrorCode.NONE: WRITES}
    assert written(wires[0]) == WRITES
    at_256.control("GET", "/v1/topics")
    assert open_descriptors(at_256) > CLIENTS  # no other process's
    assert [line for line in at_256.log_lines(since) if line["level"] != "info"] == []


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_log_files_are_closed_where_no_descriptor_is_left(at_256: Server) -> None:
    """EMFILE is no failure of the disk: what failed is done again, and the log has one line about it."""
    wires = [at_256.wire() for _ in range(4)]
    make_topic(wires[0])
    assert write(wires, 20) == {ErrorCode.NONE: 20}
    since = at_256.log_position()
    limit = open_descriptors(at_256) - 12
    resource.prlimit(at_256.pid, resource.RLIMIT_NOFILE, (limit, 256))
    try:
        assert write(wires, 1000) == {ErrorCode.NONE: 1000}
        assert written(wires[0]) == 1020
    finally:
        resource.prlimit(at_256.pid, resource.RLIMIT_NOFILE, (256, 256))
    (line,) = [line for line in at_256.log_lines(since) if line["level"] == "warning"]
    assert line["event"] == "no file descriptor was left, so open log files were closed"


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_more_clients_than_descriptors_take_no_write(at_256: Server) -> None:
    """The one that was silent for longest is closed; log files and the control plane keep their share."""
    writer = at_256.wire()
    make_topic(writer)
    with ExitStack() as stack:
        for _ in range(400):
            stack.callback(at_256.wire().close)
            assert write([writer], 5) == {ErrorCode.NONE: 5}
        at_256.control("GET", "/v1/topics")
        assert until(lambda: written(writer) == 2000, "what was written")


@pytest.mark.parametrize("limit", [256, 1024, 4096, 1 << 20])
@pytest.mark.parametrize("brokers", [1, 3])
@pytest.mark.parametrize("on_disk", [True, False])
def test_shares_add_up(limit: int, brokers: int, on_disk: bool) -> None:
    """Clients, log files and the control plane never have more than the process; most is for clients."""
    shares = divided(limit, 12, brokers, on_disk=on_disk)
    assert shares.connections * brokers + shares.files + shares.control + 12 < limit
    assert shares.connections * brokers > limit // 2
    assert bool(shares.files) == on_disk


def test_shares_of_a_tiny_limit() -> None:
    """With a tiny limit of file descriptors each use still gets its least share."""
    assert divided(16, 12, 3, on_disk=True) == Shares(1, 4, 4)
