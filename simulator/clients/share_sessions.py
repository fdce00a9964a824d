"""Share sessions: a member's fetches from one broker, acquisition locks, and acknowledgements (KIP-932)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages import share_acknowledge, share_fetch
from protocol.records.batch import RecordBatch
from protocol.records.records import read_records
from simulator.clients.client import REQUEST_TIMEOUT_MS, RETRIABLE, Client, Lost
from simulator.clients.consumer import FETCH_WAIT_MS, HEADER_BYTES
from simulator.deliveries import Lock
from simulator.history import LATEST_US, Place

GAP, ACCEPT, RELEASE, REJECT, RENEW = 0, 1, 2, 3, 4  # AcknowledgeType
FATES = {GAP: "gap", ACCEPT: "accepted", RELEASE: "released", REJECT: "rejected"}
LOCK_MS = 5_000
"""The group's share.record.lock.duration.ms: short, so that locks end within a run."""
SHARE_TIMEOUT_MS = 30_000
"""The default of request.timeout.ms: longer than a leader repeats a write of share state."""
_SESSION_LOST = frozenset(
    {ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH, ErrorCode.SHARE_SESSION_LIMIT_REACHED}
)
_DISTURBED = frozenset(
    {
        *RETRIABLE,
        ErrorCode.INVALID_RECORD_STATE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.FENCED_STATE_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
"""Errors that an acknowledgement may get after a fault of a broker: locks are lost with the leader."""
Answers = dict[Place, dict[int, int]]
"""Partition -> offset -> acknowledgement type."""


@dataclass
class Session:
    """One share session: its epoch, its partitions that the broker knows, and its acquisition locks."""

    client: Client
    group: str
    broker: int
    version: int
    epoch: int = 0
    known: set[Place] = field(default_factory=set)
    locks: dict[Place, dict[int, Lock]] = field(default_factory=dict)
    gaps: dict[Place, set[int]] = field(default_factory=dict)
    lives: dict[Place, int] = field(default_factory=dict)
    """Partition -> number of the share partition in its leader's memory when the last request was sent."""

    @property
    def channel(self) -> str:
        """The session's connection, with which it ends."""
        return f"share {self.group}"

    # --- requests ----------------------------------------------------------------------------------------------------

    async def fetch(self, wanted: Collection[Place], answers: Answers, most: int, *, limited: bool) -> bool:
        """Fetch from these partitions, with acknowledgements; return whether the session continues.

        ``limited``: acquire strictly no more than ``most`` records (version 2).
        """
        self._see_connection()
        client, first = self.client, self.epoch == 0
        names = await client.topic_names(sorted({topic for topic, _ in wanted}))
        ids = {name: topic_id for topic_id, name in names.items()}
        if first:
            answers = {}
        listed = [place for place in sorted(wanted) if first or place not in self.known or place in answers]
        listed += [place for place in sorted(answers) if place not in listed]
        gone = self.known - set(wanted)
        request = share_fetch.ShareFetchRequest(
            self.group,
            client.name,
            self.epoch,
            FETCH_WAIT_MS,
            min_bytes=1,
            max_bytes=1_000_000,  # more than a run writes between two fetches: records are the limit
            max_records=most,
            batch_size=most,
            topics=[
                share_fetch.FetchTopic(
                    ids[name],
                    [
                        share_fetch.FetchPartition(p, _batches(share_fetch, answers, (t, p)))
                        for t, p in listed
                        if t == name
                    ],
                )
                for name in sorted({topic for topic, _ in listed})
            ],
            forgotten_topics_data=[
                share_fetch.ForgottenTopic(ids[name], [p for t, p in sorted(gone) if t == name])
                for name in sorted({topic for topic, _ in gone})
            ],
            share_acquire_mode=1 if limited and self.version >= 2 else 0,
        )
        asked_us, sent_ms = client.now_us, client.world.elapsed_ms()
        fetched = set(wanted) | self.known
        answer = await self._ask(ApiKey.SHARE_FETCH, request, f"session epoch {self.epoch}", answers, fetched)
        if answer is None:
            return False
        self.known = set(wanted) | set(answers)
        self._advance()
        done: set[Place] = set()
        for topic in answer.responses:
            for each in topic.partitions:
                place = names[topic.topic_id], each.partition_index
                if place in answers:
                    done.add(place)
                    self._settle(place, answers[place], ErrorCode(each.acknowledge_error_code))
                self._take(place, each, asked_us, sent_ms + LOCK_MS)
        for place in answers.keys() - done:
            client.history.violate(f"{client.name}: ShareFetch returned no result for the acknowledgements of {place}")
        return True

    async def acknowledge(self, answers: Answers) -> bool:
        """Acknowledge without a fetch; return whether the session continues."""
        self._see_connection()
        client = self.client
        answers = {place: own for place, own in answers.items() if own.keys() <= self.locks.get(place, {}).keys()}
        if self.epoch == 0 or not answers:
            return True
        renews = any(kind == RENEW for own in answers.values() for kind in own.values())
        request = share_acknowledge.ShareAcknowledgeRequest(
            self.group, client.name, self.epoch, self._topics(answers), renews and self.version >= 2
        )
        sent_ms = client.world.elapsed_ms()
        answer = await self._ask(ApiKey.SHARE_ACKNOWLEDGE, request, f"session epoch {self.epoch}", answers, ())
        if answer is None:
            return False
        self._advance()
        names, done = client.known_topics, set[Place]()
        for topic in answer.responses:
            for each in topic.partitions:
                place = names[topic.topic_id], each.partition_index
                done.add(place)
                self._settle(place, answers[place], each.error_code, sent_ms)
        for place in answers.keys() - done:
            client.history.violate(f"{client.name}: ShareAcknowledge returned no result for {place}")
        return True

    async def close(self, answers: Answers) -> None:
        """Close the session with its last acknowledgements, which releases the remaining locks."""
        self._see_connection()
        client = self.client
        answers = {place: own for place, own in answers.items() if own.keys() <= self.locks.get(place, {}).keys()}
        for own in answers.values():  # a lock cannot be renewed beyond the session
            own.update({offset: RELEASE for offset, kind in own.items() if kind == RENEW})
        if self.epoch != 0:
            request = share_acknowledge.ShareAcknowledgeRequest(self.group, client.name, -1, self._topics(answers))
            self._release()
            answer = await self._ask(ApiKey.SHARE_ACKNOWLEDGE, request, "session ends", answers, ())
            for topic in () if answer is None else answer.responses:
                for each in topic.partitions:
                    place = client.known_topics[topic.topic_id], each.partition_index
                    self._settle(place, answers[place], each.error_code)
        self.drop()
        client.hang_up(self.broker, self.channel)

    async def _ask(self, key: ApiKey, request: Any, what: str, answers: Answers, fetched: Collection[Place]) -> Any:
        """Send a request; return the response, None if the session is lost: then the acknowledgements are in doubt."""
        client, deliveries = self.client, self.client.history.deliveries
        self._answer_for(answers)
        shown = "".join(f", {t}-{p}: {_shown(own)}" for (t, p), own in sorted(answers.items()))
        what = f"{self.group} {what}{shown}"
        answer = None
        timeout_ms = SHARE_TIMEOUT_MS if client.world.coordinators_wait else REQUEST_TIMEOUT_MS
        self.lives = {place: client.world.share_life(self.group, place) for place in answers}
        try:
            with deliveries.under_way(self.group, fetched, answers):
                answer = await client.ask(
                    self.broker, key, self.version, request, what, channel=self.channel, timeout_ms=timeout_ms
                )
        except Lost:
            pass
        finally:  # also if the client is killed while it waits
            if answer is None:
                self._doubt(answers)
                deliveries.lose(self.group, fetched)
        if answer is not None:
            code = answer.error_code
            if code is ErrorCode.NONE:
                return answer
            expected = code in RETRIABLE or (client.unanswered and code in _SESSION_LOST)
            calm = client.world.calm and self._alive() and not expected
            if code not in _SESSION_LOST and code not in RETRIABLE:
                client.history.violate(f"{client.name}: {key.title} of {self.group} got {code.name}")
            elif calm:
                client.history.violate(
                    f"{client.name}: {key.title} of {self.group} got {code.name} although no fault is under way"
                )
        self._doubt(answers)
        for own in self.locks.values():
            for lock in own.values():
                lock.session_lost = True
        self.drop()
        client.hang_up(self.broker, self.channel)
        return None

    def _doubt(self, answers: Answers) -> None:
        for place, own in answers.items():
            self.client.history.deliveries.doubt(self.group, place, own)

    def _answer_for(self, answers: Answers) -> None:
        """Mark locks as acknowledged: from when it is sent, an acknowledgement, unless a renewal, may end the lock."""
        for place, own in answers.items():
            for offset, kind in own.items():
                if kind != RENEW and offset in self.locks.get(place, {}):
                    self.locks[place][offset].open = False

    # --- state -------------------------------------------------------------------------------------------------------

    def drop(self) -> None:
        """Drop the session and all its locks, which the broker releases sooner or later."""
        self._release()
        self.epoch = 0
        self.known.clear()
        self.locks.clear()
        self.gaps.clear()

    def _release(self) -> None:
        for own in self.locks.values():
            for lock in own.values():
                lock.open = False

    def _alive(self) -> bool:
        return self.client.connected(self.broker, self.channel)

    def _certain(self) -> bool:
        """Whether the session surely exists: no request that was given up before can end it any more."""
        lost_us = self.client.unanswered.get(self.channel)
        return self._alive() and (lost_us is None or self.client.now_us - lost_us > LATEST_US)

    def _see_connection(self) -> None:
        """Drop the session if its connection has ended."""
        if self.epoch and not self._alive():
            self.drop()

    def _advance(self) -> None:
        self.epoch += 1

    def _topics(self, answers: Answers) -> list[share_acknowledge.AcknowledgeTopic]:
        ids: dict[str, UUID] = {name: topic_id for topic_id, name in self.client.known_topics.items()}
        return [
            share_acknowledge.AcknowledgeTopic(
                ids[name],
                [
                    share_acknowledge.AcknowledgePartition(p, _batches(share_acknowledge, answers, (t, p)))
                    for t, p in sorted(answers)
                    if t == name
                ],
            )
            for name in sorted({topic for topic, _ in answers})
        ]

    def _take(self, place: Place, data: share_fetch.PartitionData, asked_us: int, until_ms: int) -> None:
        """Note the acquired offsets: records, and gaps (markers, compacted and aborted records)."""
        client, deliveries = self.client, self.client.history.deliveries
        code = data.error_code
        if code is not ErrorCode.NONE:
            since_us = min(asked_us, client.leader_read_us(place))
            if code not in _DISTURBED or (client.world.calm and deliveries.undisturbed(since_us)):
                client.history.violate(f"{client.name}: a share fetch of {place[0]}-{place[1]}: {code.name}")
            client.forget_leader(place)
            return
        values = dict(_values(bytes(cast("bytes", data.records or b""))))
        locks = self.locks.setdefault(place, {})
        gaps = self.gaps.setdefault(place, set())
        for each in data.acquired_records:
            span = f"{each.first_offset} to {each.last_offset}"
            client.note(f"   has {place[0]}-{place[1]} {span}, delivery {each.delivery_count}")
            for offset in range(each.first_offset, each.last_offset + 1):
                lock = locks[offset] = Lock(
                    client.name, each.delivery_count, asked_us, client.now_us, until_ms, self._certain
                )
                deliveries.note_delivery(self.group, place, offset, lock, client.world.elapsed_ms())
                if offset in values:
                    deliveries.read(self.group, place, offset, values[offset])
                else:
                    gaps.add(offset)

    def _settle(self, place: Place, own: Mapping[int, int], code: ErrorCode, renewed_ms: int = 0) -> None:
        """Note the result of a partition's acknowledgements: all of them count, or none."""
        client, deliveries = self.client, self.client.history.deliveries
        locks = self.locks.get(place, {})
        if code is ErrorCode.NONE:
            for offset, kind in own.items():
                if kind == RENEW:
                    locks[offset].lasts_until_ms = renewed_ms + LOCK_MS
                    continue
                deliveries.answered(self.group, place, offset, FATES[kind])
                locks.pop(offset, None)
            return
        deliveries.doubt(self.group, place, own)
        if code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
            life = self.lives.get(place, 0)
            if life == client.world.share_life(self.group, place):
                records = [each for each, kind in own.items() if kind not in (GAP, RENEW)]
                deliveries.refuse(self.group, place, records, life)
        acknowledged = [locks[offset] for offset in own if offset in locks]
        # A lock that may end on the way of the request.
        expired = any(client.world.elapsed_ms() >= each.lasts_until_ms - 100 for each in acknowledged)
        sure = acknowledged and not expired and all(deliveries.undisturbed(each.asked_us) for each in acknowledged)
        if code not in _DISTURBED or sure:
            client.history.violate(
                f"{client.name}: an acknowledgement of {place[0]}-{place[1]} {_shown(own)} got {code.name}"
            )
        for offset in own:
            locks.pop(offset, None)


def _batches(module: Any, answers: Answers, place: Place) -> list[Any]:
    """Build acknowledgement batches: runs of offsets with one type for all, or one type for each offset."""
    own = answers.get(place, {})
    batches: list[Any] = []
    for offset in sorted(own):
        if batches and batches[-1].last_offset == offset - 1:
            batches[-1].last_offset = offset
            batches[-1].acknowledge_types.append(own[offset])
        else:
            batches.append(module.AcknowledgementBatch(offset, offset, [own[offset]]))
    for each in batches:
        if len(set(each.acknowledge_types)) == 1:
            each.acknowledge_types = each.acknowledge_types[:1]
    return batches


def _values(data: bytes) -> list[tuple[int, bytes]]:
    """Return offsets and values of the records in whole batches."""
    values: list[tuple[int, bytes]] = []
    at = 0
    while len(data) - at >= HEADER_BYTES:
        batch = RecordBatch(data, at)
        if at + batch.size > len(data):
            break
        at += batch.size
        if not batch.is_control:
            values += [(each.offset, bytes(each.value or b"")) for each in read_records(batch)]
    return values


def _shown(own: Mapping[int, int]) -> str:
    shown: Sequence[str] = [f"{offset}{'garjn'[kind]}" for offset, kind in sorted(own.items())]
    return " ".join(shown)
