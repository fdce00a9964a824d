"""Rows of share groups (KIP-932) through the share consumer of librdkafka and confluent-kafka.

Each record becomes a Python object in the client, unlike in the other rows: the client's part of a rate is larger.
Every row checks that each offset was delivered exactly once, and in the first round that nothing is left afterwards.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import count as numbers
from typing import Any

from confluent_kafka import KafkaException, ShareConsumer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from benchmarks import payloads
from benchmarks.latency import percentile
from benchmarks.librdkafka import QUIET, ClientError, Producer
from benchmarks.row import STORING, Figure, Goal, Scale, ServerRow, Values
from benchmarks.targets import Server

_LINES = payloads.lines(100)
_MEMBERS = 8
_TIMEOUT_S = 60.0
_POLL_S = 0.5
_BATCH = 500
_TARGETS = STORING
_groups = numbers()


@contextmanager
def _group(server: Server) -> Iterator[str]:
    """Return a new group that starts at the beginning of its topics."""
    name = f"bench-share-{next(_groups)}"
    admin = AdminClient({"bootstrap.servers": server.bootstrap, **QUIET})
    earliest = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, name, incremental_configs=[earliest])
    admin.incremental_alter_configs([resource])[resource].result(20)
    yield name


def _member(server: Server, group: str, topic: str, mode: str = "implicit") -> Any:
    settings = {"bootstrap.servers": server.bootstrap, **QUIET, "group.id": group}
    member = ShareConsumer({**settings, "share.acknowledgement.mode": mode})
    member.subscribe([topic])
    return member


class _Reading:
    """What the members of a group have read together: offset -> number of deliveries."""

    def __init__(self, wanted: int) -> None:
        self.seen = bytearray(wanted)
        self._lock = threading.Lock()
        self._left = wanted
        self._first = 0
        self._begun = self._ended = 0.0
        self.deadline = time.perf_counter() + _TIMEOUT_S

    @property
    def over(self) -> bool:
        """Return whether all records were read, or the time is up."""
        return self._left <= 0 or time.perf_counter() > self.deadline

    def read(self, member: Any, explicit: bool = False) -> None:
        """Poll until all members together have everything; a commit acknowledges the records of the last poll."""
        while not self.over:
            self._poll(member, _POLL_S, explicit)
        member.commit_sync(10)

    def _poll(self, member: Any, timeout_s: float, explicit: bool) -> None:
        offsets = []
        for message in member.poll(timeout_s):
            if message.error() is not None:
                raise ClientError(str(message.error()))
            offsets.append(message.offset())
            if explicit:
                member.acknowledge(message)
        if not offsets:
            return
        with self._lock:
            self._ended = time.perf_counter()
            if not self._begun:
                self._begun, self._first = self._ended, len(offsets)
            for offset in offsets:
                self.seen[offset] += 1
            self._left -= len(offsets)

    def rate(self) -> float:
        """Return records per second after the first poll with records. Raises AssertionError if a count is wrong."""
        wrong = len(self.seen) - self.seen.count(1)
        if wrong:
            raise AssertionError(f"{wrong} of {len(self.seen)} records were not delivered exactly once")
        if self._first > len(self.seen) / 2:
            raise AssertionError(f"the first poll had {self._first} of {len(self.seen)} records: too few for a rate")
        return (len(self.seen) - self._first) / (self._ended - self._begun)


def _nothing_left(server: Server, group: str, topic: str) -> None:
    """Check that a new member gets nothing: all records are accepted."""
    with closing(_member(server, group, topic)) as member:
        until = time.perf_counter() + 2
        while time.perf_counter() < until:
            if left := [each for each in member.poll(_POLL_S) if each.error() is None]:
                raise AssertionError(f"{len(left)} records came again")


def _fill(server: Server, topic: str, count: int) -> None:
    """Produce in batches of the size of a fetch's record limit: whole batches are acquired (KIP-1206)."""
    with Producer(server.bootstrap, topic, _LINES, linger_ms=5, batch_num_messages=_BATCH) as producer:
        producer.send(count, 60)


def _queue(figure: str, members: int, mode: str) -> Callable[[Server, str, Scale, bool], Values]:
    """Measure a queue that is full when its members join."""

    def measure(server: Server, topic: str, scale: Scale, first: bool) -> Values:
        count = scale.of(100_000, 20_000)
        server.create_topic(topic)
        _fill(server, topic, count)
        with _group(server) as group, ExitStack() as stack:
            reading = _Reading(count)
            sharers = [stack.enter_context(closing(_member(server, group, topic, mode))) for _ in range(members)]
            explicit = mode == "explicit"
            threads = [threading.Thread(target=reading.read, args=(each, explicit)) for each in sharers]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            rate = reading.rate()
            stack.close()
            if first:
                _nothing_left(server, group, topic)
        server.delete_topic(topic)
        return {figure: rate}

    return measure


def _produce_to_acquire(server: Server, topic: str, scale: Scale, _first: bool) -> Values:
    """Time from handing a record to the producer until the share consumer returns it, both in this process."""
    count, warm = scale.of(1_000, 100), 20
    server.create_topic(topic)
    _fill(server, topic, 1)
    samples: list[float] = []
    with (
        _group(server) as group,
        closing(_member(server, group, topic)) as member,
        Producer(server.bootstrap, topic, _LINES, linger_ms=0) as producer,
    ):
        _one(member, 0)
        for number in range(1, warm + count + 1):
            begun = time.perf_counter()
            producer.hand_over(1)
            _one(member, number)
            samples.append(time.perf_counter() - begun)
            producer.settle(1)
    server.delete_topic(topic)
    return {"share_latency_p50": percentile(samples[warm:], 50), "share_latency_p99": percentile(samples[warm:], 99)}


def _one(member: Any, offset: int) -> None:
    """Poll until there is a record, which must be this one."""
    until = time.perf_counter() + 30
    while time.perf_counter() < until:
        try:
            offsets = [each.offset() for each in member.poll(_POLL_S) if each.error() is None]
        except KafkaException as error:
            raise ClientError(str(error)) from error
        if offsets:
            if offsets != [offset]:
                raise AssertionError(f"record {offset} was due, and {offsets[:5]} came")
            return
    raise ClientError(f"record {offset} did not arrive")


def _row(name: str, title: str, members: int, mode: str) -> ServerRow:
    figure = Figure(name, title, "msg/s", goal=Goal(of_kfake=0.8))
    return ServerRow(name, (figure,), _queue(name, members, mode), targets=_TARGETS)


ROWS = (
    _row("share_one", "share group, one member", 1, "implicit"),
    _row("share_explicit", "share group, one member, each record acknowledged", 1, "explicit"),
    _row("share_eight", "share group, eight members", _MEMBERS, "implicit"),
    ServerRow(
        "share_latency",
        (
            Figure("share_latency_p50", "produce to share consumer, p50", "us", "lower", Goal(of_kafka=1.0)),
            Figure("share_latency_p99", "produce to share consumer, p99", "us", "lower"),
        ),
        _produce_to_acquire,
        targets=_TARGETS,
    ),
)
