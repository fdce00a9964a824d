"""Fetch sessions in forwarded requests (KIP-227): the partitions of an incremental fetch, for faults that name them.

For clients without sessions, such as librdkafka, only eight bytes are read; for others each request is read, since a
fault may be added in the middle of a session.
"""

import struct
from collections import OrderedDict
from dataclasses import dataclass, field

from broker.request.fetch_sessions import MOST_INTERESTS, Interest, Key
from protocol.apis import ApiKey
from protocol.codec import BadFrame, RequestHeader, decode_request, is_flexible
from protocol.messages.fetch import FetchRequest

_FIRST_WITH_SESSIONS, _LAST_WITH_REPLICA_ID = 7, 14  # versions of Fetch
_IDS = struct.Struct(">ii")
_ID = struct.Struct(">i")
_MOST_SESSIONS = 10_000  # ten times what a broker keeps by default; the oldest has ended there


@dataclass(slots=True)
class Session:
    """A fetch session: its partitions, in the order in which the client added them."""

    interests: dict[Key, Interest] = field(default_factory=dict)


class Sessions:
    """The fetch sessions of one broker; if there are too many, the least recently used one is dropped."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[int, Session] = OrderedDict()

    def get(self, session_id: int) -> Session | None:
        """Return the session with this id."""
        return self._sessions.get(session_id)

    def note(self, header: RequestHeader, frame: bytes | bytearray, answer: bytes | bytearray) -> None:
        """Apply the partitions that a fetch adds to its session and removes from it."""
        session_id, epoch = self._ids(header, frame)
        if epoch < 0:
            if epoch == -1 and session_id:
                self._sessions.pop(session_id, None)
            return
        answered = self._answered(header, answer)
        if not answered:
            return
        try:
            request = decode_request(frame, header)
        except BadFrame:
            return
        session = self._sessions.get(answered) if epoch else None
        if session is None:
            session = Session()
        self._sessions[answered] = session
        self._sessions.move_to_end(answered)
        if len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        _update(session, request)

    @staticmethod
    def _ids(header: RequestHeader, frame: bytes | bytearray) -> tuple[int, int]:
        """Return session id and epoch of a request; (0, -1) if it has none."""
        if header.api_version < _FIRST_WITH_SESSIONS:
            return 0, -1
        # 13 bytes: max_wait_ms, min_bytes and max_bytes (4 each), isolation_level (1); all there before sessions were.
        at = header.body_at + (4 if header.api_version <= _LAST_WITH_REPLICA_ID else 0) + 13
        if at + _IDS.size > len(frame):
            return 0, -1
        session_id, epoch = _IDS.unpack_from(frame, at)
        return session_id, epoch

    @staticmethod
    def _answered(header: RequestHeader, answer: bytes | bytearray) -> int:
        """Return the session id of a response; 0 for none."""
        # Correlation id, tagged fields, throttle time and error code.
        at = 4 + is_flexible(ApiKey.FETCH, header.api_version) + 6
        return int(_ID.unpack_from(answer, at)[0]) if at + _ID.size <= len(answer) else 0


def _update(session: Session, request: FetchRequest) -> None:
    interests = session.interests
    for gone in request.forgotten_topics_data:
        for index in gone.partitions:
            interests.pop((gone.topic_id or gone.topic, index), None)
    for topic in request.topics:
        for partition in topic.partitions:
            if len(interests) < MOST_INTERESTS:
                interests[topic.topic_id or topic.topic, partition.partition] = Interest(
                    topic.topic, topic.topic_id, partition
                )
