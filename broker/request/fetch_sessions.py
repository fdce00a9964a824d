"""Fetch sessions: what a broker remembers between a client's incremental fetches (KIP-227, core E.5).

Follows Kafka's ``FetchSession`` and ``FetchSessionCache``: eight shards, used in turn, each with its own eviction.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from broker.time.rng import Random
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, PartitionData

SHARDS: Final = 8
"""Of the session cache; each evicts for itself, so a session may be refused while others are free (core E.5.8)."""
MIN_EVICTION_MS: Final = 120_000
"""The idle time after which a session may be evicted, and the age that protects it from consumers (core E.5.8)."""
MAX_EPOCH: Final = 2**31 - 1  # an int32; 1 comes after it (core E.5.4)
MOST_INTERESTS = 100_000
"""The maximum of partitions in all sessions of a broker. Kafka limits only the number of sessions.

Ours, as each is an object in memory.
"""
SESSIONLESS_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
CONSUMER: Final = -1
"""The replica id of a consumer."""

Key = tuple[str | UUID, int]
"""Topic name or id, as the client sends it, and partition."""


class Interest:
    """One partition of a fetch session, with the offsets last sent to the fetcher."""

    __slots__ = ("sent_high_watermark", "sent_log_start", "topic", "topic_id", "wanted")

    def __init__(self, topic: str, topic_id: UUID | None, wanted: FetchPartition) -> None:
        self.topic, self.topic_id, self.wanted = topic, topic_id, wanted
        self.sent_high_watermark = self.sent_log_start = -1

    @property
    def key(self) -> Key:
        """Its key within a session."""
        return (self.topic_id or self.topic, self.wanted.partition)

    def is_news(self, answer: PartitionData) -> bool:
        """Whether an incremental response would have to include the partition."""
        return (
            bool(answer.records)
            or answer.error_code is not ErrorCode.NONE
            or answer.preferred_read_replica != -1
            or answer.diverging_epoch.epoch != -1
            or (answer.high_watermark, answer.log_start_offset) != (self.sent_high_watermark, self.sent_log_start)
        )

    def update(self, answer: PartitionData) -> bool:
        """Note the offsets that will be sent; return whether an incremental response must include them (core E.5.5)."""
        included = bool(answer.records) or answer.preferred_read_replica != -1 or answer.diverging_epoch.epoch != -1
        if answer.error_code is not ErrorCode.NONE:
            self.sent_high_watermark = -1
            return True
        if (answer.high_watermark, answer.log_start_offset) != (self.sent_high_watermark, self.sent_log_start):
            self.sent_high_watermark, self.sent_log_start = answer.high_watermark, answer.log_start_offset
            included = True
        return included


@dataclass(slots=True)
class Session:
    """A fetch session; ``epoch`` is the one that the next request must carry."""

    id: int
    follower: bool
    uses_topic_ids: bool
    interests: dict[Key, Interest]
    created_ms: int
    used_ms: int
    epoch: int = 1

    def advance(self) -> None:
        """Advance the epoch; 1 follows 2^31-1."""
        self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1

    def merge(self, wanted: Iterable[Interest], forgotten: Iterable[Key]) -> None:
        """Add or change partitions, then remove forgotten ones."""
        for interest in wanted:
            known = self.interests.get(interest.key)
            if known is None:
                self.interests[interest.key] = interest
            else:
                known.wanted = interest.wanted
        for key in forgotten:
            self.interests.pop(key, None)


class SessionCache:
    """The fetch sessions of one broker. All together hold at most :data:`MOST_INTERESTS` partitions."""

    def __init__(self, slots: int, chance: Random) -> None:
        self._capacity = slots // SHARDS  # with fewer than eight slots: 0 (core E.5.8)
        self._chance = chance
        self._shards: list[dict[int, Session]] = [{} for _ in range(SHARDS)]
        self._turn = 0

    def __len__(self) -> int:
        return sum(map(len, self._shards))

    def get(self, session_id: int) -> Session | None:
        """Return the session with this id, if there is one."""
        for shard in self._shards:
            if session := shard.get(session_id):
                return session
        return None

    def has_capacity(self, more: int) -> bool:
        """Whether this number of further partitions may be added."""
        kept = sum(len(session.interests) for shard in self._shards for session in shard.values())
        return kept + more <= MOST_INTERESTS

    def remove(self, session_id: int) -> None:
        """Close a session."""
        for shard in self._shards:
            shard.pop(session_id, None)

    def create(self, follower: bool, uses_topic_ids: bool, interests: dict[Key, Interest], now_ms: int) -> int:
        """Create a session and return its id; 0 if it is refused."""
        if not self._capacity or not self.has_capacity(len(interests)):
            return 0
        shard = self._shards[self._turn % SHARDS]
        self._turn += 1
        if len(shard) >= self._capacity and not self._evict(shard, follower, len(interests), now_ms):
            return 0
        session_id = self._chance.randint(1, MAX_EPOCH)
        while self.get(session_id) is not None:
            session_id = self._chance.randint(1, MAX_EPOCH)
        shard[session_id] = Session(session_id, follower, uses_topic_ids, interests, now_ms, now_ms)
        return session_id

    @staticmethod
    def _evict(shard: dict[int, Session], follower: bool, size: int, now_ms: int) -> bool:
        """Evict the least recently used session if it was idle for two minutes, else one of lower priority.

        A new session of a consumer may only evict sessions that were older than two minutes when they were last used;
        that of a follower any consumer's.
        """
        oldest = min(shard.values(), key=lambda session: session.used_ms)
        if now_ms - oldest.used_ms > MIN_EVICTION_MS:
            del shard[oldest.id]
            return True
        evictable = [
            session
            for session in shard.values()
            if session.used_ms - session.created_ms > MIN_EVICTION_MS or (follower and not session.follower)
        ]
        least = min(evictable, key=lambda session: (session.follower, len(session.interests)), default=None)
        if least is None or (least.follower, len(least.interests)) >= (follower, size):
            return False
        del shard[least.id]
        return True


class Fetching:
    """One fetch request with its session resolved: the partitions to read, and how to answer."""

    def __init__(
        self,
        interests: Sequence[Interest],
        session: Session | None = None,
        *,
        wants_session: bool = False,
        expected_epoch: int = 0,
        uses_topic_ids: bool = False,
        follower: bool = False,
    ) -> None:
        self.interests, self.session, self.wants_session = interests, session, wants_session
        self.expected_epoch, self.uses_topic_ids, self.follower = expected_epoch, uses_topic_ids, follower

    def answer(
        self, cache: SessionCache, answers: Sequence[tuple[Interest, PartitionData]], now_ms: int
    ) -> tuple[int, Sequence[tuple[Interest, PartitionData]]]:
        """Return the session id and the partitions of the response.

        Raises:
            KafkaError: INVALID_FETCH_SESSION_EPOCH: another request used the session meanwhile (core E.5.7).
        """
        if self.session is not None:
            return self._incremental(self.session, answers)
        for interest, data in answers:
            interest.update(data)
        if not self.wants_session:
            return 0, answers
        interests = {interest.key: interest for interest, _ in answers}
        return cache.create(self.follower, self.uses_topic_ids, interests, now_ms), answers

    def news(self, answers: Sequence[tuple[Interest, PartitionData]]) -> Sequence[tuple[Interest, PartitionData]]:
        """Return the partitions that :meth:`answer` would include, without noting them as sent."""
        if self.session is None:
            return answers
        if self.session.epoch != self.expected_epoch:
            return ()
        return [(interest, data) for interest, data in answers if interest.is_news(data)]

    def throttled(self, throttle_ms: int) -> FetchResponse:
        """Build the response to a throttled client: no partitions, no new session, session unchanged (core E.2)."""
        if self.session is None:
            return FetchResponse(throttle_ms)
        moved_on = self.session.epoch != self.expected_epoch
        code = ErrorCode.INVALID_FETCH_SESSION_EPOCH if moved_on else ErrorCode.NONE
        return FetchResponse(throttle_ms, error_code=code, session_id=self.session.id)

    def _incremental(
        self, session: Session, answers: Sequence[tuple[Interest, PartitionData]]
    ) -> tuple[int, Sequence[tuple[Interest, PartitionData]]]:
        if session.epoch != self.expected_epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        included = []
        for interest, data in answers:
            if interest.update(data):
                included.append((interest, data))
                if data.records and session.interests.pop(interest.key, None) is not None:
                    session.interests[interest.key] = interest  # move to the end: the next response begins with others
        return session.id, included


def replica_of(request: FetchRequest) -> int:
    """Return the replica id, negative for a consumer; v15 moved the field (KIP-903, FetchRequest.replicaId)."""
    return request.replica_state.replica_id if request.replica_id == CONSUMER else request.replica_id


def resolve(cache: SessionCache, request: FetchRequest, uses_topic_ids: bool, now_ms: int) -> Fetching:
    """Resolve the session of a request (core E.5).

    Raises:
        KafkaError: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR.
    """
    wanted = _wanted(request)
    follower = replica_of(request) >= 0
    distinct = list({interest.key: interest for interest in wanted}.values()) if len(wanted) > 1 else wanted
    if request.session_epoch in (SESSIONLESS_EPOCH, INITIAL_EPOCH):
        if request.session_id:
            cache.remove(request.session_id)
        wants = request.session_epoch == INITIAL_EPOCH
        return Fetching(distinct, wants_session=wants, uses_topic_ids=uses_topic_ids, follower=follower)
    session = cache.get(request.session_id)
    if session is None:
        raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    if session.epoch != request.session_epoch:
        raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    if session.uses_topic_ids != uses_topic_ids:
        raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
    new = {interest.key for interest in wanted if interest.key not in session.interests}
    if new and not cache.has_capacity(len(new)):
        cache.remove(session.id)  # the client sends a full fetch, and gets no session for it
        raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    session.merge(wanted, _forgotten(request))
    session.used_ms = now_ms
    if not session.interests:
        cache.remove(session.id)  # a partition that the request both adds and forgets is still answered
        return Fetching(distinct, uses_topic_ids=uses_topic_ids, follower=follower)
    session.advance()
    return Fetching(list(session.interests.values()), session, expected_epoch=session.epoch, follower=follower)


def _wanted(request: FetchRequest) -> list[Interest]:
    return [
        Interest(topic.topic, topic.topic_id, partition) for topic in request.topics for partition in topic.partitions
    ]


def _forgotten(request: FetchRequest) -> list[Key]:
    return [
        (topic.topic_id or topic.topic, partition)
        for topic in request.forgotten_topics_data
        for partition in topic.partitions
    ]
