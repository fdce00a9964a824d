"""PushTelemetry: core H.1, its checks in their order."""

from typing import Any
from uuid import UUID

import pytest

from broker.handlers import get_telemetry_subscriptions
from broker.handlers.push_telemetry import API
from protocol.errors import ErrorCode
from protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from protocol.messages.push_telemetry import PushTelemetryRequest
from protocol.records.compression import compress
from tests.handlers.admin_harness import AdminStage
from tests.versions import SERVED

ME = UUID(int=77)
OK, INVALID, THROTTLED = ErrorCode.NONE, ErrorCode.INVALID_REQUEST, ErrorCode.THROTTLING_QUOTA_EXCEEDED
INTERVAL_MS = 300_000
MOST = 40
ZEROES = bytes(compress(4, bytes(MOST + 1)))
"""Fewer bytes than are allowed, until they are decompressed."""


async def subscribed(stage: AdminStage) -> int:
    """The id of the client's subscription, asked for again if there is one; 0 if the client may not ask."""
    answer = await stage.ask(get_telemetry_subscriptions.API, GetTelemetrySubscriptionsRequest(ME))
    return int(answer.subscription_id)


async def pushed(stage: AdminStage, subscription: int, instance: UUID | None = ME, **more: Any) -> ErrorCode:
    """The code of a push."""
    code = (await stage.ask(API, PushTelemetryRequest(instance, subscription, **more))).error_code
    assert isinstance(code, ErrorCode)
    return code


@pytest.mark.parametrize("instance", [None, UUID(int=1)])
async def test_a_push_needs_a_real_client_id(instance: UUID | None) -> None:
    """INVALID_REQUEST for the two reserved ones."""
    assert await pushed(AdminStage(), 0, instance) is INVALID


async def test_TEL_02_TEL_03_one_push_per_interval() -> None:
    """The first after asking is always taken; a terminating one may come at any time, and is the last."""
    stage = AdminStage()
    number = await subscribed(stage)
    assert [await pushed(stage, number), await pushed(stage, number)] == [OK, THROTTLED]
    stage.cluster.clock.advance(INTERVAL_MS)
    assert [await pushed(stage, number), await pushed(stage, number)] == [OK, THROTTLED]
    assert await pushed(stage, number, terminating=True) is OK
    stage.cluster.clock.advance(INTERVAL_MS)
    assert [await pushed(stage, number, terminating=True), await pushed(stage, number)] == [INVALID, INVALID]
    assert SERVED[API.key].listed is False


async def test_a_client_that_terminated_may_go_on_after_its_first_refused_push() -> None:
    """Quirk: that push alone makes it a client that does not terminate."""
    stage = AdminStage()
    number = await subscribed(stage)
    pushes = [await pushed(stage, number, terminating=terminating) for terminating in (True, False, False)]
    assert pushes == [OK, INVALID, THROTTLED]


@pytest.mark.parametrize(
    ("wrong", "code", "may_ask"),
    [
        ({"subscription": 4711}, ErrorCode.UNKNOWN_SUBSCRIPTION_ID, True),
        ({"compression_type": 9}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, True),
        ({"metrics": b"x" * (MOST + 1)}, ErrorCode.TELEMETRY_TOO_LARGE, False),
        ({"metrics": b"x" * MOST}, OK, False),
        ({"compression_type": 4}, OK, False),
        ({"compression_type": 4, "metrics": b"x"}, ErrorCode.INVALID_RECORD, False),
        ({"compression_type": 4, "metrics": ZEROES}, ErrorCode.INVALID_RECORD, False),
    ],
)
async def test_TEL_03_what_a_push_must_be(wrong: dict[str, Any], code: ErrorCode, may_ask: bool) -> None:
    """After an unknown subscription or compression the client may ask for its subscription at once."""
    stage = AdminStage(1, {"telemetry.max.bytes": str(MOST)})
    number = wrong.pop("subscription", await subscribed(stage))
    assert await pushed(stage, number, **wrong) is code
    assert (await subscribed(stage) != 0) is may_ask


async def test_a_client_that_never_asked_may_push_what_it_knows() -> None:
    """Its subscription is looked up then; the id decides."""
    stage = AdminStage()
    number = await subscribed(AdminStage())
    assert await pushed(stage, number) is OK
    assert await pushed(AdminStage(), number + 1) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID


async def test_a_client_that_asks_before_its_time_may_not_push() -> None:
    """Quirk: what allows it to ask again, a wrong push, does not allow the right one before the interval is over."""
    stage = AdminStage()
    number = await subscribed(stage)
    assert await pushed(stage, number + 1) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert await subscribed(stage) == number
    assert await pushed(stage, number) is THROTTLED
    stage.cluster.clock.advance(INTERVAL_MS)
    assert await pushed(stage, number) is OK
