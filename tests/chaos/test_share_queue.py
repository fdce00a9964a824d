"""A queue of a share group while everything dies: each record is accepted exactly once.

Members fetch, accept and now and then release; some of them are cut off while they have records; brokers are killed
in turn, so leaders and share coordinators move. An acceptance that was confirmed is never followed by another delivery,
and what is never confirmed was lost with a connection alone. 5,000 records with the interop suite, 100,000 nightly.
"""

import itertools
import threading
import time
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.share_fetch import ShareFetchResponse
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.conftest import BrokerWith
from tests.scenarios.core.asking import created, metadata, produced
from tests.scenarios.core.batches import batch
from tests.scenarios.groups.sharers import (
    ACCEPT,
    RELEASE,
    SHARE_SETTINGS,
    SHARES,
    Sharer,
    configure,
)
from tests.serving import Server, until
from tests.wire import Closed, Wire

BROKERS, PARTITIONS, MEMBERS, PER_BATCH = 3, 4, 8, 50
SETTINGS: dict[str, object] = {
    **SHARE_SETTINGS,
    "share.coordinator.state.topic.replication.factor": 3,
    "broker.session.timeout.ms": 1000,
}
DOWN_S, LOCK_S, QUIET_S, PATIENCE_S = 1.5, 3.0, 4.0, 500.0
Place = tuple[int, int]
"""Partition and offset."""


@dataclass
class Book:
    """Acceptances of all members: confirmed acceptances, and those whose response was lost or came after the lock."""

    confirmed: Counter[Place] = field(default_factory=Counter)
    unknown: set[Place] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)
    over: threading.Event = field(default_factory=threading.Event)

    def confirm(self, places: set[Place]) -> None:
        """The leader has confirmed them while they were locked."""
        with self.lock:
            self.confirmed.update(places)

    def lose(self, places: set[Place]) -> None:
        """Whether the leader took them is not known."""
        with self.lock:
            self.unknown |= places


class Member(threading.Thread):
    """A member of one partition, which begins again with a new session whenever something fails."""

    def __init__(self, server: Server, topic_id: UUID, number: int, book: Book) -> None:
        super().__init__(daemon=True)
        self.server, self.topic_id, self.number, self.book = server, topic_id, number, book
        self.partition = number % PARTITIONS
        self.failure: BaseException | None = None
        self.rounds = 0
        self.wire: Wire | None = None

    def run(self) -> None:
        """Until the book is closed."""
        try:
            while not self.book.over.is_set():
                with suppress(Closed, OSError, TimeoutError, LookupError):
                    self._session()
        except BaseException as error:  # noqa: BLE001 - the test's own thread reports it
            self.failure = error

    def cut(self) -> None:
        """Lose the connection while it has records."""
        wire = self.wire
        if wire is not None:
            wire.close()

    def _session(self) -> None:
        with closing(Wire(self.server.addresses[self._leader() - 1], patience_s=5)) as self.wire:
            self._consume(self.wire)

    def _consume(self, wire: Wire) -> None:
        member = Sharer(wire, self.topic_id, f"m{self.number}", partitions=[self.partition])
        acks: list[tuple[int, int, int]] = []
        asked_at = time.monotonic()
        while not self.book.over.is_set():
            acquired_after, asked_at = asked_at, time.monotonic()
            accepted = {
                (self.partition, at) for first, last, kind in acks if kind == ACCEPT for at in range(first, last + 1)
            }
            try:
                response = member.fetch(
                    acks=[(first, last, [kind]) for first, last, kind in acks], max_wait_ms=100, max_records=200
                )
            except BaseException:
                self.book.lose(accepted)
                raise
            codes = _codes(response)
            if response.error_code is not ErrorCode.NONE or not set(codes) <= {0}:
                self.book.lose(accepted)
                return
            # After its lock, another member may have accepted a record; below the start offset, Kafka confirms that
            # again ("already archived", SharePartition.acknowledge).
            is_locked = time.monotonic() - acquired_after < LOCK_S
            (self.book.confirm if is_locked else self.book.lose)(accepted)
            acks = self._verdicts(response)

    def _leader(self) -> int:
        for address in self.server.addresses:
            with suppress(Closed, OSError), closing(Wire(address, patience_s=2)) as wire:
                (topic,) = metadata(wire, "jobs")
                for each in topic.partitions:
                    if each.partition_index == self.partition and each.leader_id > 0:
                        return each.leader_id
        raise LookupError

    def _verdicts(self, response: ShareFetchResponse) -> list[tuple[int, int, int]]:
        self.rounds += 1
        runs = [run for topic in response.responses for each in topic.partitions for run in each.acquired_records]
        release = self.rounds % 7 == 0
        return [
            (run.first_offset, run.last_offset, RELEASE if release and run.delivery_count < 3 else ACCEPT)
            for run in runs
        ]


def _codes(response: ShareFetchResponse) -> list[int]:
    partitions = [each for topic in response.responses for each in topic.partitions]
    return [int(each.error_code) for each in partitions] + [each.acknowledge_error_code for each in partitions]


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(5_000, marks=[pytest.mark.interop, pytest.mark.timeout(180)]),
        pytest.param(100_000, marks=[pytest.mark.nightly, pytest.mark.timeout(600)]),
    ],
)
def test_each_record_is_accepted_once(broker_with: BrokerWith, records: int) -> None:
    """Eight members, two of them cut off now and then, three brokers killed in turn."""
    server = broker_with(settings=SETTINGS, brokers=BROKERS)
    wire = server.wire()
    topic_id = created(wire, "jobs", PARTITIONS, BROKERS)
    configure(
        wire,
        share_auto_offset_reset="earliest",
        share_record_lock_duration_ms=str(round(LOCK_S * 1000)),
        share_delivery_count_limit="10",
    )
    server.make_coordinators()
    until(lambda: any(_subscribe(server.wire(broker + 1)) for broker in range(BROKERS)), "the group's coordinator")
    leaders = {each.partition_index: each.leader_id for topic in metadata(wire, "jobs") for each in topic.partitions}
    wires = {index: server.wire(leader) for index, leader in leaders.items()}
    for number in range(records // PER_BATCH):
        index = number % PARTITIONS
        produced(wires[index], "jobs", batch(*[b"job"] * PER_BATCH), partition=index)
    book = Book()
    members = [Member(server, topic_id, number, book) for number in range(MEMBERS)]
    for member in members:
        member.start()
    try:
        _let_die(server, members, book, records)
    finally:
        book.over.set()
        for member in members:
            member.join(10)
    assert [member.failure for member in members if member.failure is not None] == []
    assert max(book.confirmed.values()) == 1
    assert len(book.confirmed.keys() | book.unknown) == records
    assert len(book.confirmed) > records // 2  # the kills are what loses responses, not the rule


def _subscribe(wire: Wire) -> bool:
    """Join, so that the coordinator initializes the partitions; false where it is another broker."""
    request = ShareGroupHeartbeatRequest(SHARES, "first", 0, None, ["jobs"])
    code: ErrorCode = wire.call(ApiKey.SHARE_GROUP_HEARTBEAT, 1, request).error_code
    return code is ErrorCode.NONE


def _let_die(server: Server, members: list[Member], book: Book, records: int) -> None:
    """Kill brokers in turn and cut two members off, until each record is accounted for and nothing comes any more."""
    deadline = time.monotonic() + PATIENCE_S
    for turn in itertools.count():
        broker = turn % BROKERS + 1
        server.control("POST", f"/v1/brokers/{broker}/kill")
        members[turn % 2].cut()
        book.over.wait(DOWN_S)
        server.control("POST", f"/v1/brokers/{broker}/start")
        book.over.wait(DOWN_S)
        with book.lock:
            left = records - len(book.confirmed.keys() | book.unknown)
        if not left:
            break
        assert time.monotonic() < deadline, f"{left} records left"
    seen = -1
    while seen != (now := sum(book.confirmed.values())):
        seen = now
        book.over.wait(QUIET_S)
