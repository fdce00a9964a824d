"""Fetch sessions: what a broker remembers between the fetches of a client (SES; core I.5)."""

from collections.abc import Sequence

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchResponse
from tests.conftest import BrokerWith
from tests.scenarios.core.asking import answers, created, fetch_all, fetch_request, interest, metadata, produced
from tests.scenarios.core.batches import batch
from tests.server import Server
from tests.wire import Wire

ONE = batch(b"x")
BOTH = [("foo", 0), ("foo", 1)]


def full(wire: Wire, partitions: Sequence[FetchPartition] = ()) -> FetchResponse:
    """A full fetch of foo's two partitions that asks for a session."""
    return fetch_all(wire, {"foo": partitions or [interest(0), interest(1)]}, session=(0, 0))


def with_session(broker: Server) -> tuple[Wire, int]:
    """A connection to a broker with the empty topic ``foo``, and the session that was granted."""
    wire = broker.wire()
    created(wire, "foo", 2)
    response = full(wire)
    assert response.session_id > 0
    assert answers(response) == BOTH
    return wire, response.session_id


def test_SES_01_a_full_fetch_opens_a_session(broker: Server) -> None:
    """From then on only changed partitions are returned: none, after the wait."""
    wire, session_id = with_session(broker)
    broker.freeze()
    wire.send(ApiKey.FETCH, 12, fetch_request({}, max_wait_ms=300, session=(session_id, 1)))
    metadata(broker.wire())
    assert not wire.has_answer()
    broker.advance(300)
    response = wire.answer()
    assert (response.error_code, response.session_id, response.responses) == (ErrorCode.NONE, session_id, ())


def test_SES_02_only_the_partition_with_new_records_is_returned(broker: Server) -> None:
    """The other one of the session is left out."""
    wire, session_id = with_session(broker)
    assert answers(fetch_all(wire, {}, session=(session_id, 1))) == []
    produced(wire, "foo", ONE, partition=1)
    assert answers(fetch_all(wire, {}, session=(session_id, 2))) == [("foo", 1)]


@pytest.mark.parametrize(
    ("session", "code"),
    [
        ((None, 9), ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        ((12345, 1), ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        ((0, 3), ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
    ],
)
def test_SES_03_a_session_must_be_known_and_its_epoch_right(
    broker: Server, session: tuple[int | None, int], code: ErrorCode
) -> None:
    """An error at the top and nothing else; the session lives on."""
    wire, session_id = with_session(broker)
    requested_id = session_id if session[0] is None else session[0]
    response = fetch_all(wire, {}, session=(requested_id, session[1]))
    assert (response.error_code, response.session_id, response.responses) == (code, 0, ())
    assert fetch_all(wire, {}, session=(session_id, 1)).error_code is ErrorCode.NONE


def test_SES_04_a_session_without_partitions_is_none(broker: Server) -> None:
    """Forgetting all of them is answered as without a session; then it is unknown."""
    wire, session_id = with_session(broker)
    response = fetch_all(wire, {}, session=(session_id, 1), forgotten={"foo": [0, 1]})
    assert (response.error_code, response.session_id, response.responses) == (ErrorCode.NONE, 0, ())
    assert fetch_all(wire, {}, session=(session_id, 2)).error_code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_SES_05_epoch_minus_one_closes_the_session(broker: Server) -> None:
    """And the request itself is served without one."""
    wire, session_id = with_session(broker)
    response = fetch_all(wire, {"foo": [interest(0), interest(1)]}, session=(session_id, -1))
    assert (response.session_id, answers(response)) == (0, BOTH)
    assert fetch_all(wire, {}, session=(session_id, 1)).error_code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_SES_06_a_broker_without_slots_grants_none(broker_with: BrokerWith) -> None:
    """max.incremental.fetch.session.cache.slots=0."""
    broker = broker_with(settings={"max.incremental.fetch.session.cache.slots": 0})
    wire = broker.wire()
    created(wire, "foo", 2)
    response = full(wire)
    assert (response.error_code, response.session_id, answers(response)) == (ErrorCode.NONE, 0, BOTH)


def test_SES_07_a_session_keeps_to_names_or_to_ids(broker: Server) -> None:
    """Opened by names in v12, it cannot go on by ids in v13."""
    wire, session_id = with_session(broker)
    response = fetch_all(wire, {}, version=13, session=(session_id, 1))
    assert response.error_code is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert fetch_all(wire, {}, version=12, session=(session_id, 1)).error_code is ErrorCode.NONE


def test_SES_08_a_partition_that_recovers_is_returned_again(broker: Server) -> None:
    """Unknown at first, in each response; once it exists its high watermark is new."""
    wire = broker.wire()
    created(wire, "foo", 2)
    opened = fetch_all(wire, {"foo": [interest(0)], "later": [interest(0)]}, session=(0, 0))
    codes = {each.topic: each.partitions[0].error_code for each in opened.responses}
    assert codes == {"foo": ErrorCode.NONE, "later": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    created(wire, "later")
    response = fetch_all(wire, {}, session=(opened.session_id, 1))
    ((answer,),) = [each.partitions for each in response.responses]
    assert answers(response) == [("later", 0)]
    assert (answer.error_code, answer.high_watermark) == (ErrorCode.NONE, 0)
    assert answers(fetch_all(wire, {}, session=(opened.session_id, 2))) == []
