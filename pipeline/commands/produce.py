"""`understudy produce TOPIC`: each line of a file is a record."""

import itertools
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from pipeline.commands.progress import refuse
from pipeline.live.reader import TopicReader, no_broker
from pipeline.transfer.producer import Producer
from pipeline.transfer.security import SecurityError, read_security
from pipeline.transfer.wire import WireError
from protocol.partitioner import partition_for
from protocol.records.records import Header, Record, build_batch

_CHUNK_BYTES = 64 << 10  # what a pipe holds
PROGRAM = "understudy produce"


class UsageError(ValueError):
    """Invalid arguments; the message is for the user."""


def main(arguments: Mapping[str, Any]) -> int:
    """Run the command; exit code 0: done. Exits with 2 for invalid arguments, with 1 for a failure."""
    try:
        with ExitStack() as opened:
            headers = [_header(text) for text in arguments["headers"]]
            descriptor = _opened(arguments["file"], opened)
            security = read_security(arguments["client_config"])
            cluster = opened.enter_context(TopicReader(arguments["bootstrap_server"], security=security))
            count = _produce(cluster, arguments, headers, descriptor)
    except (UsageError, SecurityError) as error:
        refuse(PROGRAM, error)
    except WireError as error:
        refuse(PROGRAM, no_broker(error), 1)
    sys.stderr.write(f"{count} record{'s' * (count != 1)} produced to {arguments['topic']}\n")
    return 0


def _produce(cluster: TopicReader, arguments: Mapping[str, Any], headers: Sequence[Header], descriptor: int) -> int:
    topic, chosen = arguments["topic"], arguments["partition"]
    key = None if arguments["key"] is None else os.fsencode(arguments["key"])
    partitions = cluster.created(topic)
    if chosen is not None and chosen not in range(partitions):
        raise UsageError(f"{topic} has no partition {chosen}, but 0 to {partitions - 1}")
    if os.isatty(descriptor):
        sys.stderr.write("each line is a record; Ctrl-D ends\n")
    producer, turn, count = Producer(cluster), itertools.count(), 0
    for lines in read_lines(descriptor):
        now_ms = int(time.time() * 1000)  # noqa: TID251 - a record has the time at which it is produced
        records: dict[int, list[Record]] = {}
        for line in lines:
            partition = partition_for(key, partitions, turn) if chosen is None else chosen
            batch = records.setdefault(partition, [])
            batch.append(Record(len(batch), now_ms, key, line, headers))
        for partition, batch in records.items():
            producer.produce(topic, partition, build_batch(batch))
        count += len(lines)
    return count


def read_lines(descriptor: int) -> Iterator[list[bytes]]:
    """Yield the lines that have arrived, so that those of a terminal or a pipe are sent at once."""
    rest = b""
    while chunk := os.read(descriptor, _CHUNK_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield lines
    if rest:
        yield [rest]


def _header(text: str) -> Header:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError(f"--header needs NAME=VALUE, not {text!r}")
    return name, os.fsencode(value)


def _opened(path: str | None, opened: ExitStack) -> int:
    if path is None:
        return sys.stdin.fileno()
    try:
        descriptor = os.open(path, os.O_RDONLY)
        opened.callback(os.close, descriptor)
        os.read(descriptor, 0)  # a directory can be opened and not read
    except OSError as error:
        raise UsageError(f"--file {path} cannot be read: {error.strerror}") from None
    return descriptor
