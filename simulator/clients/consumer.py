"""Consumers: readers of assigned partitions, and members of classic groups (KIP-62, KIP-394)."""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from protocol.apis import ApiKey
from protocol.consumer_protocol import read_assignment, read_subscription, write_assignment
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from protocol.records.batch import RecordBatch
from protocol.records.records import read_records
from simulator.clients.client import GROUP, REQUEST_TIMEOUT_MS, RETRIABLE, Client, Lost, first_error
from simulator.history import Place

HEADER_BYTES = 61  # of a batch (core D.4)
SESSION_TIMEOUT_MS = 6_000  # group.min.session.timeout.ms: sessions end within a run
REBALANCE_TIMEOUT_MS = 6_000  # as the session's, so that neither waits for the other
HEARTBEAT_US = 1_500_000  # a quarter of the session, so that one lost heartbeat does not end it
FETCH_WAIT_MS = 400  # close to fetch.max.wait.ms of Kafka's clients, 500
Records = list[tuple[int, bytes]]


def subscription(topics: Sequence[str]) -> bytes:
    """Encode a ConsumerProtocolSubscription v0."""
    names = b"".join(struct.pack(">h", len(name)) + name.encode() for name in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)


class Fetcher:
    """Reads partitions from their positions on, committed records only."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.positions: dict[Place, int] = {}
        self.epochs: dict[Place, dict[int, int]] = {}
        """Partition -> leader epoch -> offset of its first batch, of what was read from the log's beginning on."""

    async def fetch(self, place: Place) -> Records:
        """Fetch the next committed records of a partition; empty if there are none, or the fetch failed."""
        client, position = self.client, self.positions[place]
        try:
            broker = await client.leader(place)
            # With the leader epoch, as real consumers send it: a replica that no longer leads rejects it. Otherwise it
            # would return records of its own log, which may have lost some that the next leader still has.
            epoch = client.leader_epoch(place)
            # Arbitrary limits of bytes, above all that a run writes to a partition between two fetches.
            wanted = FetchTopic(place[0], [FetchPartition(place[1], position, 100_000, current_leader_epoch=epoch)])
            request = FetchRequest(-1, FETCH_WAIT_MS, 1, 1_000_000, 1, [wanted], 0, -1)
            answer = await client.ask(broker, ApiKey.FETCH, 12, request, f"{place[0]}-{place[1]} from {position}")
        except Lost:
            client.forget_leader(place)
            await client.pause()
            return []
        if first_error(answer) is not ErrorCode.NONE:
            if first_error(answer) not in RETRIABLE:
                client.history.violate(
                    f"{client.name}: a fetch of {place[0]}-{place[1]} from {position}: {first_error(answer).name}"
                )
            client.forget_leader(place)
            await client.pause()
            return []
        ((partition,),) = [each.partitions for each in answer.responses]
        if partition.last_stable_offset > partition.high_watermark >= 0:
            client.history.violate(f"{client.name}: {place[0]}-{place[1]}: last stable offset above the high watermark")
        aborted = sorted((each.first_offset, each.producer_id) for each in partition.aborted_transactions or ())
        data = bytes(partition.records or b"")
        for batch in _batches(data):
            self.epochs.setdefault(place, {}).setdefault(batch.partition_leader_epoch, batch.base_offset)
        records, self.positions[place] = committed(data, position, aborted)
        if records:
            client.note(f"   read {place[0]}-{place[1]} {records[0][0]} to {records[-1][0]}: {len(records)} records")
        return records

    async def validate(self, place: Place) -> None:
        """Ask the leader for the end of its current epoch, as consumers do before they fetch from a new one (KIP-320).

        A position that is the log's end must be confirmed: otherwise the consumer assumes that records were truncated.
        """
        client, position = self.client, self.positions[place]
        broker, epoch = await client.leader(place), client.leader_epoch(place)
        epoch_topic = OffsetForLeaderTopic(place[0], [OffsetForLeaderPartition(place[1], epoch, epoch)])
        request = OffsetForLeaderEpochRequest([epoch_topic], -1)
        what = f"{place[0]}-{place[1]}, epoch {epoch}"
        answer = await client.ask(broker, ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, request, what)
        ((partition,),) = [each.partitions for each in answer.topics]
        if (partition.error_code, partition.leader_epoch, partition.end_offset) != (ErrorCode.NONE, epoch, position):
            client.history.violate(
                f"{place[0]}-{place[1]} is read up to {position} in epoch {epoch}, but its leader returns "
                f"{partition.error_code.name}, {partition.end_offset} in epoch {partition.leader_epoch}"
            )

    async def validate_epochs(self, place: Place, *, read_to_the_end: bool = False) -> None:
        """Ask the leader where each epoch ends that was read: where the next one that was read begins (KIP-320).

        By this answer, a consumer whose leader has changed recognises whether what it has read was truncated.
        Without ``read_to_the_end``, the newest epoch that was read ends at its position or later.
        """
        client, position, known = self.client, self.positions[place], sorted(self.epochs.get(place, {}).items())
        broker, epoch = await client.leader(place), client.leader_epoch(place)
        for number, (own, _) in enumerate(known):
            epoch_topic = OffsetForLeaderTopic(place[0], [OffsetForLeaderPartition(place[1], epoch, own)])
            what = f"{place[0]}-{place[1]}, epoch {own}"
            request = OffsetForLeaderEpochRequest([epoch_topic], -1)
            answer = await client.ask(broker, ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, request, what)
            ((partition,),) = [each.partitions for each in answer.topics]
            if partition.error_code in RETRIABLE:
                client.forget_leader(place)
                return
            newest = number == len(known) - 1
            end = position if newest else known[number + 1][1]
            later = newest and not read_to_the_end and partition.end_offset >= position
            if (partition.error_code, partition.leader_epoch) != (ErrorCode.NONE, own) or not (
                partition.end_offset == end or later
            ):
                client.history.violate(
                    f"{client.name}: epoch {own} of {place[0]}-{place[1]} ends at {end}, but its leader returns "
                    f"{partition.error_code.name}, {partition.end_offset} in epoch {partition.leader_epoch}"
                )


def _batches(data: bytes) -> Iterator[RecordBatch]:
    """Yield the whole batches of a Fetch response."""
    at = 0
    while len(data) - at >= HEADER_BYTES:
        batch = RecordBatch(data, at)
        if at + batch.size > len(data):
            return
        at += batch.size
        yield batch


def committed(data: bytes, position: int, aborted: list[tuple[int, int]]) -> tuple[Records, int]:
    """Return the committed records of a Fetch response from a position on, and the next position (KIP-98)."""
    open_aborted: set[int] = set()
    records: Records = []
    for batch in _batches(data):
        while aborted and aborted[0][0] <= batch.last_offset:
            open_aborted.add(aborted.pop(0)[1])
        if batch.is_control:
            open_aborted.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in open_aborted):
            records += [
                (each.offset, bytes(each.value or b"")) for each in read_records(batch) if each.offset >= position
            ]
        position = max(position, batch.next_offset)
    return records, position


class Reader(Client):
    """Reads all partitions of its topics from the beginning, without a group."""

    def __init__(self, *arguments: object, topics: Sequence[str]) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.fetcher = Fetcher(self)
        self.fetcher.positions = {(topic, index): 0 for topic in topics for index in range(self.world.topics[topic])}

    async def run(self) -> None:
        """Read until the client is stopped."""
        while not self.stopping:
            for place in self.fetcher.positions:
                if records := await self.fetcher.fetch(place):
                    self.history.saw(self.name, place, records)
                    self.history.progress[self.name] += 1
            if self.world.coordinators_wait:
                await self._validate()
            await self.pause(1_500)

    async def _validate(self) -> None:
        """Ask where the epochs of a partition end, as a consumer does whose leader has changed."""
        place = self.chance.choice(sorted(self.fetcher.positions))
        try:
            await self.fetcher.validate_epochs(place)
        except Lost:
            self.fetcher.client.forget_leader(place)


class Member:
    """Membership in a classic group."""

    def __init__(self, client: Client, group: str, topics: Sequence[str]) -> None:
        self.client, self.group, self.topics = client, group, topics
        self.member_id, self.generation = "", -1
        self.joins = 0
        self.assigned: frozenset[Place] = frozenset()
        self.fetcher = Fetcher(client)
        self._heartbeat_at_us = 0

    async def keep(self) -> bool:
        """Join if needed, send a heartbeat if due; return whether it is a member now."""
        if self.generation < 0:
            return await self._join()
        if self.client.now_us >= self._heartbeat_at_us:
            self._heartbeat_at_us = self.client.now_us + HEARTBEAT_US
            request = HeartbeatRequest(self.group, self.generation, self.member_id)
            answer = await self._ask(ApiKey.HEARTBEAT, 4, request, f"{self.group} generation {self.generation}")
            return self.go_on(answer.error_code)
        return True

    def go_on(self, code: ErrorCode) -> bool:
        """Handle a response's error; return whether the membership continues. If not, it joins again."""
        if code is ErrorCode.NONE:
            return True
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        elif code not in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
            self.client.history.violate(f"{self.client.name}: a member of {self.group} got {code.name}")
        self.generation = -1
        return False

    async def _ask(
        self, key: ApiKey, version: int, request: object, what: str, lost: Callable[[], None] = lambda: None
    ) -> Any:
        return await self.client.ask_coordinator(
            GROUP, self.group, key, version, request, what, channel="group", lost=lost
        )

    async def _join(self) -> bool:
        client = self.client
        request = JoinGroupRequest(
            self.group,
            SESSION_TIMEOUT_MS,
            self.member_id,
            "consumer",
            [JoinGroupRequestProtocol("range", subscription(self.topics))],
            REBALANCE_TIMEOUT_MS,
        )
        try:
            joined = await client.ask_coordinator(
                GROUP, self.group, ApiKey.JOIN_GROUP, 7, request, self.group,
                # The other members may take a whole timeout, and their coordinator as long as for any request.
                timeout_ms=2 * REBALANCE_TIMEOUT_MS + REQUEST_TIMEOUT_MS, channel="group", retry=False,
            )  # fmt: skip
        except Lost:
            await client.pause()
            return False
        if joined.error_code is not ErrorCode.NONE:
            self.member_id = joined.member_id if joined.error_code is ErrorCode.MEMBER_ID_REQUIRED else ""
            if joined.error_code not in (ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.UNKNOWN_MEMBER_ID):
                client.history.violate(f"{client.name}: JoinGroup of {self.group} got {joined.error_code.name}")
            return False
        self.member_id = joined.member_id
        shares = self._shares(joined) if joined.leader == joined.member_id else []
        sync = SyncGroupRequest(self.group, joined.generation_id, self.member_id, shares, None, "consumer", "range")
        synced = await self._ask(ApiKey.SYNC_GROUP, 5, sync, f"{self.group} generation {joined.generation_id}")
        if not self.go_on(synced.error_code):
            return False
        self.generation = joined.generation_id
        self.joins += 1
        self._heartbeat_at_us = client.now_us + HEARTBEAT_US
        assignment = read_assignment(bytes(synced.assignment))
        partitions = {} if assignment is None else assignment.partitions
        self.assigned = frozenset((topic, index) for topic, indexes in partitions.items() for index in indexes)
        owned = ", ".join(f"{topic}-{index}" for topic, index in sorted(self.assigned))
        client.note(f"   has {owned or 'nothing'} in generation {self.generation} of {self.group}")
        client.history.synced(self.group, self.generation, self.member_id, self.assigned)
        return await self.load_positions()

    def _shares(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        """Assign the partitions to the members in turn."""
        members = sorted(each.member_id for each in joined.members)
        subscribed = [read_subscription(bytes(each.metadata)) for each in joined.members]
        topics = sorted({name for each in subscribed if each is not None for name in each.topics})
        places = [(topic, index) for topic in topics for index in range(self.client.world.topics[topic])]
        shares: dict[str, dict[str, list[int]]] = {member: {} for member in members}
        for number, (topic, index) in enumerate(places):
            shares[members[number % len(members)]].setdefault(topic, []).append(index)
        self.client.history.decided[self.group, joined.generation_id].append(
            {member: frozenset((t, i) for t, own in share.items() for i in own) for member, share in shares.items()}
        )
        return [SyncGroupRequestAssignment(member, write_assignment(share, 0)) for member, share in shares.items()]

    async def load_positions(self) -> bool:
        """Start at the committed offsets, or at the beginning without them; return whether that succeeded."""
        history = self.client.history
        floor = history.floor(self.group)
        names = sorted({topic for topic, _ in self.assigned})
        topics = [OffsetFetchRequestTopics(n, sorted(p for t, p in self.assigned if t == n)) for n in names]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(self.group, topics)], require_stable=True)
        answer = await self._ask(ApiKey.OFFSET_FETCH, 8, request, self.group)
        committed = {
            (topic.name, each.partition_index): each.committed_offset
            for group in answer.groups
            for topic in group.topics
            for each in topic.partitions
        }
        if first_error(answer) is not ErrorCode.NONE:
            history.violate(f"{self.client.name}: OffsetFetch got {first_error(answer).name}")
            return False
        history.offsets_fetched(self.group, committed, floor)
        self.fetcher.positions = {place: max(committed.get(place, -1), 0) for place in sorted(self.assigned)}
        return True

    async def commit(self, offsets: Mapping[Place, int]) -> bool:
        """Commit positions; return whether it still is a member."""
        history = self.client.history
        names = sorted({topic for topic, _ in offsets})
        topics = [
            OffsetCommitRequestTopic(n, [OffsetCommitRequestPartition(p, o) for (t, p), o in offsets.items() if t == n])
            for n in names
        ]
        for place, offset in offsets.items():
            history.tried[self.group, place].add(offset)
        request = OffsetCommitRequest(self.group, self.generation, self.member_id, -1, topics)
        what = f"{self.group} " + ", ".join(f"{topic}-{index}: {offset}" for (topic, index), offset in offsets.items())
        answer = await self._ask(
            ApiKey.OFFSET_COMMIT, 8, request, what, lost=lambda: history.note_doubtful(self.group, offsets)
        )
        if not self.go_on(first_error(answer)):
            return False
        history.note_committed({(self.group, place): offset for place, offset in offsets.items()})
        return True

    async def leave(self) -> None:
        """Leave the group."""
        if self.member_id:
            request = LeaveGroupRequest(self.group, members=[MemberIdentity(self.member_id)])
            await self._ask(ApiKey.LEAVE_GROUP, 4, request, self.group)


class GroupConsumer(Client):
    """A member that reads its partitions and commits from time to time."""

    def __init__(self, *arguments: object, group: str, topics: Sequence[str]) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.member = Member(self, group, topics)

    async def run(self) -> None:
        """Consume until the client is stopped, then leave the group."""
        member = self.member
        while not self.stopping:
            if not await member.keep():
                continue
            for place in sorted(member.assigned):
                if records := await member.fetcher.fetch(place):
                    self.history.saw(f"{self.name} join {member.joins}", place, records)
            # Less than half of the rounds, so that a rebalance finds records that were read and not committed.
            if member.fetcher.positions and self.chance.random() < 0.4:
                await member.commit(member.fetcher.positions)
            self.history.progress[self.name] += 1
            await self.pause(500)
        await member.leave()
