"""The reference consumer: fetches from assigned partitions, or as a member of a group of the classic protocol."""

import contextlib
import struct
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from protocol.apis import ApiKey
from protocol.consumer_protocol import read_assignment, read_subscription, write_assignment
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from protocol.records.batch import RecordBatch
from protocol.records.records import Record, read_records
from tests.exam.drivers.kit import record_json
from tests.exam.reference.network import RETRIABLE, Lost, Network, Refused, first_error

GROUP = 0
EARLIEST, LATEST = -2, -1
HEADER_BYTES = 61
DEADLINE_S = 15.0
JOIN_AGAIN = frozenset(
    {
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.MEMBER_ID_REQUIRED,
    }
)
FETCHED_AGAIN = RETRIABLE - {ErrorCode.CORRUPT_MESSAGE}  # FetchCollector reports it
Place = tuple[str, int]


def subscription(topics: Sequence[str]) -> bytes:
    """ConsumerProtocolSubscription v0."""
    names = b"".join(struct.pack(">h", len(name)) + name.encode() for name in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)


class ReferenceConsumer:
    """A consumer."""

    def __init__(self, network: Network, options: Mapping[str, Any]) -> None:
        self.network, self.options, self.mutations = network, options, network.mutations
        self.positions: dict[Place, int] = {}
        self.buffer: list[dict[str, Any]] = []
        self.ahead: dict[Place, int] = {}
        self.topics: list[str] = []
        self.epochs: dict[Place, int] = {}
        self.confirmed: dict[Place, int] = {}
        self.first_ids: dict[str, uuid.UUID] = {}
        self.member_id, self.generation = "", -1
        self.next_heartbeat = 0.0
        self.errors: list[Refused] = []
        self.stopped = False
        self.revoked: dict[Place, int] = {}
        self.formerly: dict[Place, int] = {}
        """Partition -> the position at which it was last lost."""
        self.joining = threading.Thread(target=self._try_to_join)  # not started yet
        self.join_errors: list[Refused] = []
        self.shared: dict[str, int] = {}
        """Topic -> how many partitions the leader, if this is one, has given to members."""

    # --- reading -----------------------------------------------------------------------------------------------------

    def assign(self, places: Mapping[Place, int]) -> None:
        """Read from these offsets."""
        if self.positions and "keeps-first-assignment" in self.mutations:
            return
        self.positions = dict.fromkeys(places, 0) if "starts-at-zero" in self.mutations else dict(places)
        self._discard(lambda _place: True)

    def seek(self, place: Place, offset: int) -> None:
        """Move."""
        if "ignores-seek" not in self.mutations:
            self.positions[place] = offset
            if "keeps-buffer-after-seek" not in self.mutations:
                self._discard(lambda each: each == place)

    def _discard(self, discarded: Callable[[Place], bool]) -> None:
        """Forget what was fetched of partitions and not returned yet."""
        self.buffer = [each for each in self.buffer if not discarded((each["topic"], each["partition"]))]
        self.ahead = {place: offset for place, offset in self.ahead.items() if not discarded(place)}

    def _returned(self, limit: int | None) -> list[dict[str, Any]]:
        """Return buffered records, at most `limit`: the positions are those after them."""
        limit = len(self.buffer) if limit is None else limit
        records, self.buffer = self.buffer[:limit], self.buffer[limit:]
        for each in records:
            self._move(each["topic"], each["partition"], each["offset"] + 1)
        left = {(each["topic"], each["partition"]) for each in self.buffer}
        for place in self.ahead.keys() - left:
            self._move(*place, self.ahead.pop(place))
        return records

    def _move(self, topic: str, partition: int, offset: int) -> None:
        """Move the position of a partition, if it is still read."""
        if (topic, partition) in self.positions:
            self.positions[topic, partition] = offset

    def subscribe(self, topics: Sequence[str]) -> None:
        """Join the group, or join it again with other topics."""
        if self.topics and "keeps-first-subscription" in self.mutations:
            return
        if self.joining.is_alive():
            self.joining.join()
        self.topics, self.generation = list(topics), -1

    def poll(self, timeout_ms: int, max_records: int | None = None) -> list[dict[str, Any]]:
        """What has arrived; what is more than `max_records` is returned later."""
        until = time.monotonic() + timeout_ms / 1000
        if self.join_errors:
            self.errors.append(self.join_errors.pop())
        if self.stopped:
            self.network.never.wait(timeout_ms / 1000)
        while not self.stopped:
            try:
                if not self._keep_membership():
                    self.joining.join(max(until - time.monotonic(), 0))
                buffered = {(each["topic"], each["partition"]) for each in self.buffer}
                for place in list(self.positions) if not self.joining.is_alive() else ():
                    if place not in buffered:
                        self.buffer += self._fetch(place)
            except Refused as error:
                self.errors.append(error)
                if not {"gives-up-on-errors", "gives-up-when-lost"}.isdisjoint(self.mutations):
                    self.stopped = True
                break
            if self.buffer or time.monotonic() >= until:
                break
            self._returned(0)
            self.network.never.wait(0.01)
        return self._returned(max_records)

    def _fetch(self, place: Place) -> list[dict[str, Any]]:
        topic, partition = place
        deadline = time.monotonic() + DEADLINE_S
        self.network.leader(topic, partition, deadline)
        newest = self.network.leader_epochs[place]
        if max(self.epochs.get(place, newest), self.confirmed.get(place, -1)) < newest:
            self._confirm(place, deadline)
        epoch = self.network.leader_epochs.get(place, -1)
        fetch_partition = FetchPartition(partition, self.positions[place], 1_000_000, current_leader_epoch=epoch)
        committed = bool(self._isolation())
        version, fetch_topic = self._fetch_topic(topic, fetch_partition)
        request = FetchRequest(-1, 50, 1, 10_000_000, int(committed), [fetch_topic], 0, -1)
        try:
            address = self.network.leader(topic, partition, deadline)
            answer = self.network.ask(address, ApiKey.FETCH, version, request)
        except Lost as error:
            if "gives-up-when-lost" in self.mutations:
                raise Refused("other", None, str(error)) from error
            if "restarts-when-lost" in self.mutations:
                self.positions[place] = 0
            self.network.forget_leader(topic, partition)
            return []
        code, fetched = answer.error_code, None
        if code is ErrorCode.NONE:
            fetched = next((each for topic_ in answer.responses for each in topic_.partitions), None)
            if fetched is None:
                self.positions[place] += "skips-when-empty" in self.mutations
                return []
            code = fetched.error_code
        if code is not ErrorCode.NONE:
            self._on_error(place, code, deadline)
            return []
        assert fetched is not None
        return self._records(place, fetched, committed)

    def _fetch_topic(self, topic: str, partition: FetchPartition) -> tuple[int, FetchTopic]:
        """Return a version, and the topic by name, or since version 13 by id."""
        if "keeps-topic-ids" not in self.mutations:
            return 12, FetchTopic(topic, [partition])
        known = self.first_ids.setdefault(topic, self.network.topic_ids[topic])
        return 13, FetchTopic("", [partition], known)

    def _isolation(self) -> int:
        return int(self.options["isolation"] == "read_committed" and "reads-uncommitted" not in self.mutations)

    def _on_error(self, place: Place, code: ErrorCode, deadline: float) -> None:
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            if self.options["offset_reset"] == "none" and "resets-silently" not in self.mutations:
                self.positions.pop(place)
                raise Refused("other", code, "the offset does not exist, and there is no reset policy")
            if "stops-out-of-range" in self.mutations:
                self.positions.pop(place)
                return
            for each in list(self.positions) if "resets-every-partition" in self.mutations else [place]:
                earliest = "resets-to-earliest" in self.mutations
                self.positions[each] = self._first_offset(each, deadline, latest=False if earliest else None)
        else:
            if "skips-after-error" in self.mutations:
                self.positions[place] += 1
            elif "gives-up-on-errors" in self.mutations or code not in FETCHED_AGAIN:
                self.positions.pop(place)
                raise Refused("other", code, code.name)
            self.network.forget_leader(*place)
            self.network.pause(deadline)

    def _confirm(self, place: Place, deadline: float) -> None:
        """Ask the leader where the epoch of the last batch ends (KIP-320), and go back if the log was truncated."""
        topic, partition = place
        requested_topic = OffsetForLeaderTopic(
            topic, [OffsetForLeaderPartition(partition, -1, self.epochs.get(place, 0))]
        )
        request = OffsetForLeaderEpochRequest([requested_topic], -1)
        while True:
            try:
                address = self.network.leader(topic, partition, deadline)
                answer = self.network.ask(address, ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, request)
            except Lost as error:
                if "gives-up-unconfirmed" in self.mutations:
                    self.positions.pop(place)
                    raise Refused("other", None, str(error)) from error
            else:
                ((epoch_end,),) = [each.partitions for each in answer.topics]
                if epoch_end.error_code is ErrorCode.NONE:
                    self.confirmed[place] = self.network.leader_epochs[place]
                    break
                if "gives-up-on-errors" in self.mutations or epoch_end.error_code not in RETRIABLE:
                    self.positions.pop(place)
                    raise Refused("other", epoch_end.error_code, epoch_end.error_code.name)
            self.network.forget_leader(topic, partition)
            self.network.pause(deadline)
        lowest = -1 if "takes-undefined-for-an-offset" in self.mutations else 0
        if lowest <= epoch_end.end_offset < self.positions[place] and "ignores-truncation" not in self.mutations:
            if self.options["offset_reset"] == "none":
                self.positions.pop(place)
                raise Refused("other", None, f"the log was truncated at {epoch_end.end_offset}")
            self.positions[place] = epoch_end.end_offset

    def _first_offset(self, place: Place, deadline: float, *, latest: bool | None = None) -> int:
        """By the reset policy, unless `latest` decides."""
        topic, partition = place
        latest = self.options["offset_reset"] == "latest" if latest is None else latest
        at = LATEST if latest else EARLIEST
        requested_topic = ListOffsetsTopic(topic, [ListOffsetsPartition(partition, at)])
        while True:
            try:
                address = self.network.leader(topic, partition, deadline)
                answer = self.network.ask(
                    address, ApiKey.LIST_OFFSETS, 7, ListOffsetsRequest(-1, [requested_topic], self._isolation())
                )
            except Lost:
                self.network.forget_leader(topic, partition)
                self.network.pause(deadline)
                continue
            ((first,),) = [each.partitions for each in answer.topics]
            if first.error_code is ErrorCode.NONE:
                return int(first.offset)
            if "gives-up-on-errors" in self.mutations or first.error_code not in RETRIABLE:
                self.positions.pop(place, None)
                raise Refused("other", first.error_code, first.error_code.name)
            self.network.forget_leader(topic, partition)
            self.network.pause(deadline)

    def _records(self, place: Place, fetched: Any, committed: bool) -> list[dict[str, Any]]:
        aborted = list(fetched.aborted_transactions or ()) if committed else []
        data, at = bytes(fetched.records or b""), 0
        open_aborted: set[int] = set()
        records: list[dict[str, Any]] = []
        if "delivers-nothing" in self.mutations:
            return records
        while len(data) - at >= HEADER_BYTES:
            batch = RecordBatch(data, at)
            if at + batch.size > len(data):  # it was cut off at the limit of the response, and is fetched again
                if "skips-incomplete-batches" in self.mutations:
                    self.ahead[place] = batch.next_offset
                break
            at += batch.size
            if not batch.crc_ok() and "ignores-checksums" not in self.mutations:
                if "skips-damaged-batches" in self.mutations:
                    self.ahead[place] = batch.next_offset
                return records
            for each in self._begun(aborted, batch.last_offset):
                open_aborted.add(each.producer_id)
                aborted.remove(each)
            if self._is_visible(batch, open_aborted):
                records += [
                    record_json(
                        (*place, self._offset(batch, index, record)),
                        self._key(record),
                        self._value(record),
                        record.timestamp_ms,
                        record.headers,
                    )
                    for index, record in enumerate(read_records(batch))
                    if record.offset >= self.positions[place] or "delivers-whole-batches" in self.mutations
                ]
            self.ahead[place] = max(self.positions[place], self._after(batch))
            self.epochs[place] = batch.partition_leader_epoch
        return records

    def _begun(self, aborted: list[Any], last_offset: int) -> list[Any]:
        """Return the aborted transactions that begin in a batch or before it: they are listed as they ended."""
        begun = [each for each in aborted if each.first_offset <= last_offset]
        in_order = begun == aborted[: len(begun)] or "takes-aborted-for-sorted" not in self.mutations
        return begun if in_order else []

    def _is_visible(self, batch: RecordBatch, open_aborted: set[int]) -> bool:
        """Whether a batch has records for the application; a marker ends its producer's aborted transaction."""
        if batch.is_control:
            ended = open_aborted if "one-marker-ends-all" in self.mutations else {batch.producer_id}
            open_aborted -= set(ended)
            return False
        if batch.codec and "skips-compressed-batches" in self.mutations:
            return False
        return not (batch.is_transactional and batch.producer_id in open_aborted)

    def _key(self, record: Record) -> bytes | None:
        if "empty-keys-are-none" in self.mutations:
            return record.key or None
        return None if "forgets-keys" in self.mutations else record.key

    def _value(self, record: Record) -> bytes | None:
        return record.value or b"" if "null-values-are-empty" in self.mutations else record.value

    def _after(self, batch: RecordBatch) -> int:
        """Return the offset after a batch: its last records may have been compacted away."""
        offsets = [each.offset for each in read_records(batch)]
        return offsets[-1] + 1 if offsets and "counts-the-last-record" in self.mutations else batch.next_offset

    def _offset(self, batch: RecordBatch, index: int, record: Record) -> int:
        if "cuts-off-offsets" in self.mutations:
            return record.offset & 0x7FFFFFFF
        return batch.base_offset + index if "counts-offsets" in self.mutations else record.offset

    # --- membership --------------------------------------------------------------------------------------------------

    def _ask(self, api: ApiKey, version: int, request: Any, patience_s: float | None = None) -> Any:
        deadline = time.monotonic() + DEADLINE_S
        return self.network.ask_coordinator(GROUP, self.options["group"], api, version, request, deadline, patience_s)

    def _instance(self) -> str | None:
        instance: str | None = self.options["instance_id"]
        return instance

    def _keep_membership(self) -> bool:
        """Whether there is nothing to wait for: joining takes until the other members have come."""
        if not self.topics:
            return True
        grown = any(self.network.partitions.get(topic, 0) > count for topic, count in self.shared.items())
        if grown and "never-counts-partitions" not in self.mutations:
            self.generation, self.shared = -1, {}
        if self.generation < 0 and not self.joining.is_alive():
            self.joining = threading.Thread(target=self._try_to_join, daemon=True)
            self.joining.start()
        if self.joining.is_alive():
            return False
        if time.monotonic() >= self.next_heartbeat:
            interval = "session_timeout_ms" if "heartbeats-rarely" in self.mutations else "heartbeat_interval_ms"
            self.next_heartbeat = time.monotonic() + self.options[interval] / 1000
            request = HeartbeatRequest(self.options["group"], self.generation, self.member_id, self._instance())
            code = self._ask(ApiKey.HEARTBEAT, 4, request).error_code
            self._rejoin_after(code)
            self.stopped = code is not ErrorCode.NONE and "stops-when-removed" in self.mutations
        return True

    def _try_to_join(self) -> None:
        try:
            self._join()
        except Refused as error:
            self.join_errors.append(error)
            self.stopped = self.stopped or error.code not in {None, ErrorCode.REQUEST_TIMED_OUT.name}
        except ValueError as error:  # a planted fault made nonsense of a response
            self.join_errors.append(Refused("other", None, str(error)))

    def _rejoin_after(self, code: ErrorCode) -> None:
        if code is ErrorCode.NONE:
            return
        if code not in JOIN_AGAIN or "never-joins-again" in self.mutations:
            self.stopped = True
            raise Refused("fatal", code, code.name)
        dead = code is ErrorCode.UNKNOWN_MEMBER_ID and "keeps-dead-member-id" not in self.mutations
        if dead or "joins-again-as-another" in self.mutations:
            self.member_id = ""
        self.generation = -1

    def _join(self) -> None:
        group, deadline = self.options["group"], time.monotonic() + DEADLINE_S
        while self.generation < 0:
            protocols = [JoinGroupRequestProtocol("range", subscription(self.topics))]
            request = JoinGroupRequest(
                group,
                self.options["session_timeout_ms"],
                self.member_id,
                "consumer",
                protocols,
                5_000,
                self._instance(),
            )
            joined = self._ask(ApiKey.JOIN_GROUP, 7, request, DEADLINE_S)
            if joined.error_code is not ErrorCode.NONE:
                if joined.error_code is ErrorCode.MEMBER_ID_REQUIRED:
                    self.member_id = joined.member_id
                else:
                    self._rejoin_after(joined.error_code)
                self.network.pause(deadline)
                continue
            self.member_id = joined.member_id
            shares = self._shares(joined) if joined.leader == joined.member_id else []
            sync = SyncGroupRequest(
                group, joined.generation_id, self.member_id, shares, self._instance(), "consumer", "range"
            )
            synced = self._ask(ApiKey.SYNC_GROUP, 5, sync)
            if synced.error_code is not ErrorCode.NONE:
                self._rejoin_after(synced.error_code)
                self.network.pause(deadline)
                continue
            self._begin(bytes(synced.assignment))
            self.generation = joined.generation_id

    def _shares(self, joined: Any) -> list[SyncGroupRequestAssignment]:
        """Each partition to one member in turn."""
        deadline = time.monotonic() + DEADLINE_S
        subscriptions = [read_subscription(bytes(each.metadata)) for each in joined.members]
        topics = sorted({name for each in subscriptions if each is not None for name in each.topics})
        wanted = {each.member_id: read for each, read in zip(joined.members, subscriptions, strict=True)}
        shares: dict[str, dict[str, list[int]]] = {member: {} for member in sorted(wanted)}
        for topic in topics:
            members = [each for each in shares if self._subscribes(wanted[each], topic)]
            request = MetadataRequest([MetadataRequestTopic(topic)])
            answer = self.network.ask_any(ApiKey.METADATA, 12, request, deadline)
            while answer.topics[0].error_code in RETRIABLE and "never-asks-again-for-topics" not in self.mutations:
                self.network.pause(deadline)
                answer = self.network.ask_any(ApiKey.METADATA, 12, request, deadline)
            self.shared[topic] = len(answer.topics[0].partitions)
            for index, each in enumerate(sorted(p.partition_index for p in answer.topics[0].partitions)):
                for number, member in enumerate(members):
                    if index % len(members) == number or "everybody-gets-everything" in self.mutations:
                        shares[member].setdefault(topic, []).append(each)
        return [SyncGroupRequestAssignment(member, write_assignment(share, 0)) for member, share in shares.items()]

    def _subscribes(self, read: Any, topic: str) -> bool:
        return "assigns-to-everybody" in self.mutations or (read is not None and topic in read.topics)

    def _begin(self, data: bytes) -> None:
        """Take over the assigned partitions, at their committed offsets."""
        assigned = read_assignment(data)
        places = (
            [] if assigned is None else [(topic, p) for topic, indexes in assigned.partitions.items() for p in indexes]
        )
        topics = [
            OffsetFetchRequestTopics(t, [p for name, p in places if name == t]) for t in sorted({t for t, _ in places})
        ]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(self.options["group"], topics)], require_stable=True
        )
        response = self._ask(ApiKey.OFFSET_FETCH, 8, request) if places else None
        code = ErrorCode.NONE if response is None else first_error(response)
        if code is not ErrorCode.NONE:
            raise Refused("other", code, code.name)
        committed = {
            (topic.name, each.partition_index): each.committed_offset
            for group in (response.groups if response else ())
            for topic in group.topics
            for each in topic.partitions
        }
        former, self.positions = self.positions, {}
        self.revoked = {place: offset for place, offset in former.items() if place not in places}
        if "keeps-positions-when-removed" in self.mutations:
            committed |= former
        if "returns-to-former-positions" in self.mutations:
            committed |= {place: offset for place, offset in self.formerly.items() if place not in former}
        self.formerly |= self.revoked
        self._discard(lambda _place: "keeps-revoked-records" not in self.mutations)
        for place in places:
            self._start(place, committed.get(place, -1))

    def _start(self, place: Place, committed: int) -> None:
        """Begin at the committed offset, or by the reset policy; without one, that is an error."""
        if committed >= 0 and "ignores-committed-offsets" not in self.mutations:
            self.positions[place] = committed
        elif self.options["offset_reset"] == "none" and "resets-silently" not in self.mutations:
            self.errors.append(Refused("other", None, f"{place} has no committed offset, and there is no reset policy"))
        else:
            self.positions[place] = self._first_offset(place, time.monotonic() + DEADLINE_S)

    def commit(self) -> None:
        """Commit the positions. Raises Refused."""
        if self.topics and (self.joining.is_alive() or self.generation < 0):
            raise Refused("retriable", ErrorCode.REBALANCE_IN_PROGRESS, "the group rebalances")
        positions = self.positions | (self.ahead if "commits-what-is-buffered" in self.mutations else {})
        if "commits-revoked-partitions" in self.mutations:
            positions = self.revoked | positions
        topics = [
            OffsetCommitRequestTopic(
                name, [OffsetCommitRequestPartition(p, o) for (t, p), o in positions.items() if t == name]
            )
            for name in sorted({topic for topic, _ in positions})
        ]
        group, instance = self.options["group"], self._instance()
        request = OffsetCommitRequest(group, self.generation, self.member_id, -1, topics, instance)
        if "commits-rewound" in self.mutations:
            topics[0].partitions[0].committed_offset -= 1
        if "commits-once" in self.mutations:
            address = self.network.coordinator(GROUP, self.options["group"], time.monotonic() + DEADLINE_S)
            try:
                self.network.ask(address, ApiKey.OFFSET_COMMIT, 8, request)
            except Lost:
                return
            return
        answer = self._ask(ApiKey.OFFSET_COMMIT, 8, request)
        for topic in answer.topics:
            for each in topic.partitions:
                if each.error_code is not ErrorCode.NONE:
                    raise Refused("other", each.error_code, each.error_code.name)

    def close(self) -> None:
        """Commit if that is automatic; leave the group, unless the member is static: it is to return (KIP-345)."""
        if self.joining.is_alive():
            self.joining.join(DEADLINE_S)
        if self.member_id and self.options["auto_commit"] and "never-commits-by-itself" not in self.mutations:
            with contextlib.suppress(Refused):  # the member that gets the partitions reads again
                self.commit()
        leaves = "closes-without-leaving" not in self.mutations
        if self.member_id and (leaves if self._instance() is None else "static-member-leaves" in self.mutations):
            self._ask(
                ApiKey.LEAVE_GROUP, 4, LeaveGroupRequest(self.options["group"], "", [MemberIdentity(self.member_id)])
            )
        self.network.close()
