"""Fetch sessions without a broker: which requests are granted one, what it remembers, what it returns (core E.5)."""

from typing import Any
from uuid import UUID

import pytest

from broker.request import fetch_sessions as sessions
from broker.request.fetch_sessions import MAX_EPOCH, Fetching, Interest, SessionCache, resolve
from broker.time.rng import seeded
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)

TWO_MINUTES_MS = 120_000
ID = UUID(int=7)


def cache(slots: int = 8) -> SessionCache:
    """With eight slots each shard holds one session."""
    return SessionCache(slots, seeded(1))


def request(
    *partitions: int, session: tuple[int, int] = (0, 0), forgotten: tuple[int, ...] = (), replica: int = -1
) -> FetchRequest:
    """A fetch of some partitions of ``foo``."""
    topics = [FetchTopic("foo", [FetchPartition(index) for index in partitions])] if partitions else []
    left = [ForgottenTopic("foo", forgotten)] if forgotten else []
    return FetchRequest(
        topics=topics,
        session_id=session[0],
        session_epoch=session[1],
        forgotten_topics_data=left,
        replica_state=ReplicaState(replica),
    )


def ask(known: SessionCache, request: FetchRequest, now_ms: int = 0) -> Fetching:
    """Resolve a request by names."""
    return resolve(known, request, uses_topic_ids=False, now_ms=now_ms)


def answered(known: SessionCache, fetching: Fetching, now_ms: int = 0, **fields: Any) -> tuple[int, list[int]]:
    """Session id and the partitions in the answer, where each has these fields."""
    answers = [(each, PartitionData(each.wanted.partition, **fields)) for each in fetching.interests]
    session_id, reported = fetching.answer(known, answers, now_ms)
    return session_id, [each.wanted.partition for each, _ in reported]


def opened(known: SessionCache, *partitions: int, now_ms: int = 0, replica: int = -1) -> int:
    """The id of a new session, 0 where none is granted."""
    fetching = ask(known, request(*partitions, replica=replica), now_ms)
    return answered(known, fetching, now_ms)[0]


def check_refused(known: SessionCache, request: FetchRequest, code: ErrorCode) -> None:
    """The request fails at the top."""
    with pytest.raises(KafkaError) as caught:
        ask(known, request)
    assert caught.value.code is code


# --- the life of a session -------------------------------------------------------------------------------------------


def test_a_session_without_partitions_is_granted_too() -> None:
    """A full fetch of nothing gets a session id (core E.5.1)."""
    assert opened(cache()) > 0


def test_ids_are_positive_and_differ() -> None:
    """Session ids are random numbers from 1 to 2^31-1, and differ."""
    known = cache(800)
    ids = {opened(known, 0) for _ in range(100)}
    assert len(ids) == len(known) == 100
    assert all(1 <= each <= MAX_EPOCH for each in ids)


def test_the_epoch_after_the_last_one_is_one() -> None:
    """2147483647 is followed by 1 (core E.5.4)."""
    known = cache()
    session_id = opened(known, 0)
    session = known.get(session_id)
    assert session is not None
    session.epoch = MAX_EPOCH
    ask(known, request(session=(session_id, MAX_EPOCH)))
    assert session.epoch == 1


def test_an_epoch_is_used_once() -> None:
    """The second request with it is refused, and the session stays (core SES-03)."""
    known = cache()
    session_id = opened(known, 0)
    ask(known, request(session=(session_id, 1)))
    check_refused(known, request(session=(session_id, 1)), ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    assert known.get(session_id) is not None


def test_a_request_that_finds_its_session_used_meanwhile_is_refused() -> None:
    """A request waits, another one goes on with the session (core E.5.7)."""
    known = cache()
    session_id = opened(known, 0)
    waiting = ask(known, request(session=(session_id, 1)))
    ask(known, request(session=(session_id, 2)))
    with pytest.raises(KafkaError) as caught:
        answered(known, waiting)
    assert caught.value.code is ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_a_session_by_names_is_not_one_by_ids() -> None:
    """A request by topic ids in a session by names is refused, and the session stays (core SES-07)."""
    known = cache()
    session_id = opened(known, 0)
    with pytest.raises(KafkaError) as caught:
        resolve(known, request(session=(session_id, 1)), uses_topic_ids=True, now_ms=0)
    assert caught.value.code is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert known.get(session_id) is not None


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_full_fetch_closes_the_session_that_it_names(epoch: int) -> None:
    """With epoch 0 for a new one, with -1 for none."""
    known = cache()
    session_id = opened(known, 0)
    fetching = ask(known, request(0, session=(session_id, epoch)))
    assert known.get(session_id) is None
    assert (answered(known, fetching)[0] > 0) is (epoch == 0)


# --- what it remembers and returns -----------------------------------------------------------------------------------


def test_partitions_are_added_changed_and_forgotten() -> None:
    """In this order: what is forgotten in the same request is gone (core E.5.3)."""
    known = cache()
    session_id = opened(known, 0, 1)
    fetch = request(1, 2, 3, session=(session_id, 1), forgotten=(0, 3))
    fetch.topics[0].partitions[0].fetch_offset = 9
    fetching = ask(known, fetch)
    assert [(each.wanted.partition, each.wanted.fetch_offset) for each in fetching.interests] == [(1, 9), (2, 0)]


def test_a_session_by_ids_goes_by_ids() -> None:
    """The same partition number of two topics is two partitions."""
    known = cache()
    request = FetchRequest(
        topics=[FetchTopic("", [FetchPartition(0)], ID), FetchTopic("", [FetchPartition(0)], UUID(int=8))],
        session_epoch=0,
    )
    fetching = resolve(known, request, uses_topic_ids=True, now_ms=0)
    assert [each.key for each in fetching.interests] == [(ID, 0), (UUID(int=8), 0)]


def test_a_partition_twice_in_a_full_fetch_counts_once() -> None:
    """Of a partition twice in a full fetch request, the later entry counts."""
    fetch = request(0, 0)
    fetch.topics[0].partitions[1].fetch_offset = 5
    (interest,) = ask(cache(), fetch).interests
    assert interest.wanted.fetch_offset == 5


def test_an_unchanged_partition_is_left_out() -> None:
    """Until the high watermark or the log's start moves."""
    known = cache()
    fetching = ask(known, request(0, 1))
    session_id, reported = answered(known, fetching, high_watermark=4, log_start_offset=0)
    assert reported == [0, 1]
    assert answered(known, ask(known, request(session=(session_id, 1))), high_watermark=4, log_start_offset=0)[1] == []
    assert answered(known, ask(known, request(session=(session_id, 2))), high_watermark=5, log_start_offset=0)[1] == [
        0,
        1,
    ]
    assert answered(known, ask(known, request(session=(session_id, 3))), high_watermark=5, log_start_offset=2)[1] == [
        0,
        1,
    ]


@pytest.mark.parametrize(
    "news",
    [
        {"records": b"x"},
        {"preferred_read_replica": 2},
        {"diverging_epoch": EpochEndOffset(1, 5)},
        {"error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER, "high_watermark": -1},
    ],
)
def test_a_partition_with_news_is_returned_each_time(news: dict[str, Any]) -> None:
    """Records, a redirect, a divergence, an error (core E.5.5)."""
    known = cache()
    same: dict[str, Any] = {"high_watermark": 4, "log_start_offset": 0}
    session_id, _ = answered(known, ask(known, request(0)), **same)
    for epoch in (1, 2):
        fetching = ask(known, request(session=(session_id, epoch)))
        assert answered(known, fetching, **(same | news))[1] == [0]


def test_a_partition_that_recovers_is_returned() -> None:
    """Its high watermark counts as news after an error, though it has not moved (core SES-08)."""
    interest = Interest("foo", None, FetchPartition(0))
    assert interest.update(PartitionData(0, high_watermark=4, log_start_offset=0))
    assert interest.update(PartitionData(0, ErrorCode.KAFKA_STORAGE_ERROR, high_watermark=-1))
    assert interest.update(PartitionData(0, high_watermark=4, log_start_offset=0))
    assert not interest.update(PartitionData(0, high_watermark=4, log_start_offset=0))


def test_who_had_records_comes_last_next_time() -> None:
    """So that a busy partition does not fill each answer by itself (core E.5.6)."""
    known = cache()
    session_id = opened(known, 0, 1, 2)
    fetching = ask(known, request(session=(session_id, 1)))
    answers = [
        (each, PartitionData(each.wanted.partition, records=b"x" if each.wanted.partition == 0 else b""))
        for each in fetching.interests
    ]
    fetching.answer(known, answers, 0)
    later = ask(known, request(session=(session_id, 2)))
    assert [each.wanted.partition for each in later.interests] == [1, 2, 0]


# --- eviction --------------------------------------------------------------------------------------------------------


def filled(now_ms: int = 0, replica: int = -1) -> tuple[SessionCache, list[int]]:
    """A cache whose eight shards hold one session each, of two partitions."""
    known = cache()
    return known, [opened(known, 0, 1, now_ms=now_ms, replica=replica) for _ in range(8)]


@pytest.mark.parametrize(("slots", "sessions_granted"), [(0, 0), (7, 0), (8, 8), (17, 16)])
def test_slots_are_divided_over_eight_shards(slots: int, sessions_granted: int) -> None:
    """A quirk: fewer than eight slots are none (core E.5.8)."""
    known = cache(slots)
    granted = [opened(known, 0) for _ in range(20)]
    assert sum(each > 0 for each in granted) == len(known) == sessions_granted


def test_a_full_cache_grants_no_session() -> None:
    """Where all are young and as valuable as the new one would be."""
    known, ids = filled()
    assert opened(known, 0, 1, 2, now_ms=1000) == 0
    assert all(known.get(each) for each in ids)


def test_a_session_unused_for_two_minutes_is_evicted() -> None:
    """However valuable it is; not a millisecond earlier."""
    known, ids = filled()
    assert opened(known, 0, now_ms=TWO_MINUTES_MS) == 0
    assert opened(known, 0, now_ms=TWO_MINUTES_MS + 1) > 0
    assert sum(known.get(each) is None for each in ids) == 1


def old_and_used() -> tuple[SessionCache, list[int]]:
    """Eight sessions that were old when they were used, just now."""
    known, ids = filled()
    for each in ids:
        ask(known, request(session=(each, 1)), now_ms=TWO_MINUTES_MS + 1)
    return known, ids


@pytest.mark.parametrize(("partitions", "granted"), [((0,), False), ((0, 1), False), ((0, 1, 2), True)])
def test_a_consumer_takes_the_place_of_an_old_session_of_less_value(partitions: tuple[int, ...], granted: bool) -> None:
    """More partitions are more value; as many are not enough."""
    known, _ = old_and_used()
    assert (opened(known, *partitions, now_ms=TWO_MINUTES_MS + 2) > 0) is granted


def test_a_session_is_as_old_as_at_its_last_use() -> None:
    """One that was used at a minute keeps its place until two minutes after that, or until it is used again."""
    known, ids = filled()
    for each in ids:
        ask(known, request(session=(each, 1)), now_ms=TWO_MINUTES_MS // 2)
    assert opened(known, 0, 1, 2, now_ms=TWO_MINUTES_MS + 4000) == 0
    for each in ids:
        ask(known, request(session=(each, 2)), now_ms=TWO_MINUTES_MS + 5000)
    assert opened(known, 0, 1, 2, now_ms=TWO_MINUTES_MS + 5001) > 0


def test_a_younger_session_of_less_value_protects_no_older_one() -> None:
    """The older one is taken although the younger is worth less: it is too young to go."""
    known = SessionCache(16, seeded(1))
    old = [opened(known, 0, 1) for _ in range(8)]
    young = [opened(known, 0, now_ms=TWO_MINUTES_MS) for _ in range(8)]
    for each in old:
        ask(known, request(session=(each, 1)), now_ms=TWO_MINUTES_MS + 1)
    assert opened(known, 0, 1, 2, now_ms=TWO_MINUTES_MS + 2) > 0
    assert sum(known.get(each) is None for each in old) == 1
    assert all(known.get(each) for each in young)


def test_a_follower_takes_the_place_of_any_consumer() -> None:
    """Young ones and those with more partitions too."""
    known, _ = filled()
    assert opened(known, 0, now_ms=1, replica=2) > 0


def test_a_follower_does_not_take_the_place_of_another_one() -> None:
    """Unless that is old and of less value."""
    known, _ = filled(replica=2)
    assert opened(known, 0, 1, 2, now_ms=1, replica=3) == 0


def test_what_all_sessions_hold_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that would grow beyond it is closed; a new one is not granted."""
    monkeypatch.setattr(sessions, "MOST_INTERESTS", 3)
    known = cache()
    session_id = opened(known, 0, 1)
    assert opened(known, 0, 1) == 0
    ask(known, request(2, session=(session_id, 1)))
    check_refused(known, request(3, session=(session_id, 2)), ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    assert known.get(session_id) is None


def test_a_session_that_does_not_grow_stays_at_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """New offsets of partitions that it has need no further place, however many they are."""
    monkeypatch.setattr(sessions, "MOST_INTERESTS", 3)
    known = cache()
    session_id = opened(known, 0, 1)
    ask(known, request(0, 1, session=(session_id, 1)))
    ask(known, request(0, 1, 2, session=(session_id, 2)))
    assert known.get(session_id) is not None
