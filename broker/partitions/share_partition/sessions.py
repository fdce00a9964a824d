"""Share sessions of a broker: state between a member's fetches (groups D.4; Kafka's ``ShareSessionCache``)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from functools import partial
from typing import NamedTuple
from uuid import UUID

from broker.request.connection import Connection
from protocol.deferred import dataclass
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.share_fetch import PartitionData, ShareFetchRequest

INITIAL_EPOCH, FINAL_EPOCH, MAX_EPOCH = 0, -1, 2**31 - 1  # ShareRequestMetadata


class SessionKey(NamedTuple):
    """Group id and member id. Quirk: whether the group has the member is not checked (groups D.4.1)."""

    group_id: str
    member_id: str


class PartitionKey(NamedTuple):
    """Topic id and partition index, as in requests."""

    topic_id: UUID | None
    partition: int


@dataclass(slots=True)
class Interest:
    """A partition of a session, with the topic's name when it was added."""

    key: PartitionKey
    topic: str | None
    due: bool = False
    """Whether the next response has to list the partition."""

    def is_news(self, answer: PartitionData) -> bool:
        """Return whether a response after the first one lists the partition; notes whether the next one must."""
        news = bool(answer.records) or self.due
        self.due = answer.error_code is not ErrorCode.NONE
        return news or self.due


@dataclass(slots=True)
class ShareSession:
    """A share session; ``epoch`` is the expected epoch of the next request."""

    key: SessionKey
    connection: Connection
    interests: dict[PartitionKey, Interest] = field(default_factory=dict)
    epoch: int = 1

    def advance(self) -> None:
        """Increment the epoch; 2^31-1 is followed by 1."""
        self.epoch = next_epoch(self.epoch)


def next_epoch(epoch: int) -> int:
    """Return the epoch after this one."""
    return 1 if epoch == MAX_EPOCH else epoch + 1


@dataclass(slots=True)
class Round:
    """One ShareFetch within its session: the partitions to fetch, in order."""

    interests: Sequence[Interest]
    session: ShareSession | None = None
    expected_epoch: int = 0

    @property
    def overtaken(self) -> bool:
        """Whether another request has used the session meanwhile (groups D.5 SF12)."""
        return self.session is not None and self.session.epoch != self.expected_epoch

    def news(self, answers: Iterable[tuple[Interest, PartitionData]]) -> list[tuple[Interest, PartitionData]]:
        """Return the partitions of the response: all in the first one, later those with records or changed errors."""
        if self.session is None:
            return list(answers)
        listed = []
        for interest, data in answers:
            if interest.is_news(data):
                listed.append((interest, data))
                if data.records and self.session.interests.pop(interest.key, None) is not None:
                    self.session.interests[interest.key] = interest  # move to the end: others are first next time
        return listed


@dataclass(slots=True)
class _Newest:
    """The newest session of a connection, the only one that ends with the connection (quirk, groups D.4.3).

    ``stale``: a session of the connection was removed, so none ends with it (Kafka's ``SessionKeyAndState``).
    """

    key: SessionKey
    stale: bool = False


class ShareSessions:
    """The sessions of one broker.

    ``closed`` is called with a session whose connection was closed, ``emptied`` with a group that then has none left.
    """

    def __init__(
        self, most: Callable[[], int], closed: Callable[[ShareSession], None], emptied: Callable[[str], None]
    ) -> None:
        self._most, self._closed, self._emptied = most, closed, emptied
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._newest: dict[int, _Newest] = {}
        self._watched: dict[int, tuple[Connection, Callable[[], None]]] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def open(self) -> list[SessionKey]:
        """The keys of all sessions."""
        return list(self._sessions)

    def of_group(self, group_id: str) -> list[ShareSession]:
        """Return the sessions of a group's members."""
        return [session for key, session in self._sessions.items() if key.group_id == group_id]

    def begin(
        self,
        request: ShareFetchRequest,
        key: SessionKey,
        connection: Connection,
        name_of: Callable[[UUID | None], str | None],
    ) -> Round:
        """Find or create the session of a ShareFetch, and return its round (groups D.5).

        Raises:
            KafkaError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH, INVALID_REQUEST,
                SHARE_SESSION_LIMIT_REACHED, UNKNOWN_SERVER_ERROR.
        """
        epoch = request.share_session_epoch
        wanted = [
            Interest(PartitionKey(topic.topic_id, each.partition_index), name_of(topic.topic_id))
            for topic in request.topics
            for each in topic.partitions
        ]
        if epoch == FINAL_EPOCH:
            self._existing(key)
            return Round(())
        if epoch == INITIAL_EPOCH:
            if any(each.acknowledgement_batches for topic in request.topics for each in topic.partitions):
                raise KafkaError(ErrorCode.INVALID_REQUEST)
            return Round(list(self._create(key, connection, wanted).interests.values()))
        session = self._existing(key)
        self._check_epoch(session, epoch)
        for interest in wanted:
            if interest.key not in session.interests:
                interest.due = True
                session.interests[interest.key] = interest
        for topic in request.forgotten_topics_data:
            for partition in topic.partitions:
                session.interests.pop(PartitionKey(topic.topic_id, partition), None)
        session.advance()
        return Round(list(session.interests.values()), session, session.epoch)

    def acknowledge(self, key: SessionKey, epoch: int) -> None:
        """Check the epoch of a ShareAcknowledge, and increment it (groups D.6).

        Raises:
            KafkaError: INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_NOT_FOUND.
        """
        if epoch == INITIAL_EPOCH:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session = self._existing(key)
        if epoch != FINAL_EPOCH:
            self._check_epoch(session, epoch)
            session.advance()

    def remove(self, key: SessionKey) -> ShareSession | None:
        """Remove a session; the caller releases the member's acquired records."""
        session = self._sessions.pop(key, None)
        newest = None if session is None else self._newest.get(id(session.connection))
        if newest is not None:
            newest.stale = True
        return session

    def close(self) -> None:
        """Remove all sessions, and stop watching connections."""
        for connection, call in self._watched.values():
            connection.unwatch(call)
        self._sessions.clear()
        self._newest.clear()
        self._watched.clear()

    def _existing(self, key: SessionKey) -> ShareSession:
        session = self._sessions.get(key)
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        return session

    @staticmethod
    def _check_epoch(session: ShareSession, epoch: int) -> None:
        if session.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)

    def _create(self, key: SessionKey, connection: Connection, wanted: Sequence[Interest]) -> ShareSession:
        # Even if the new session is refused, the old one is gone (groups D.5 SF1).
        self.remove(key)
        if len({each.key for each in wanted}) < len(wanted):
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # duplicate partition in a new session (mustAdd)
        if len(self._sessions) >= self._most():
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = ShareSession(key, connection, {interest.key: interest for interest in wanted})
        if connection.lost:  # the request is served, but no event would end a stored session
            return session
        self._sessions[key], self._newest[id(connection)] = session, _Newest(key)
        if id(connection) not in self._watched:
            call = partial(self._lose, connection)
            self._watched[id(connection)] = connection, call
            connection.watch(call)
        return session

    def _lose(self, connection: Connection) -> None:
        connection.unwatch(self._watched.pop(id(connection))[1])
        newest = self._newest.pop(id(connection))
        session = None if newest.stale else self.remove(newest.key)
        if session is not None:
            self._closed(session)
        if not self.of_group(newest.key.group_id):
            self._emptied(newest.key.group_id)


def rotated(interests: list[Interest], epoch: int) -> list[Interest]:
    """Return the partitions rotated by the epoch, so that each fetch begins with another one (groups D.5 SF3)."""
    if not interests or epoch < 1:
        return interests
    turn = epoch % len(interests)
    return interests[turn:] + interests[:turn]
