"""GetTelemetrySubscriptions: core H.1."""

from typing import Any
from uuid import UUID

import pytest

from broker.connection import Connection
from broker.coordination.metadata.configs import NewConfigs
from broker.handlers.get_telemetry_subscriptions import API
from broker.telemetry import Client
from protocol.errors import ErrorCode
from protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from tests.handlers.admin_harness import AdminStage

ME = UUID(int=77)
METRICS = 16


async def asked(stage: AdminStage, instance: UUID | None = ME, **more: Any) -> GetTelemetrySubscriptionsResponse:
    """The answer to the client."""
    answer = await stage.ask(API, GetTelemetrySubscriptionsRequest(instance), **more)
    assert isinstance(answer, GetTelemetrySubscriptionsResponse)
    return answer


def subscribe(stage: AdminStage, name: str, metrics: str, interval_ms: int = 1000, match: str = "") -> None:
    """A CLIENT_METRICS resource."""
    configs = {"metrics": metrics, "interval.ms": str(interval_ms), "match": match}
    stage.cluster.metadata.submit(lambda _now_ms: stage.machine.alter_configs([NewConfigs(METRICS, name, configs)]))


async def test_TEL_01_without_subscriptions_a_client_has_nothing_to_push() -> None:
    """It asks again after five minutes."""
    answer = await asked(AdminStage())
    assert (answer.error_code, answer.client_instance_id) == (ErrorCode.NONE, ME)
    assert (answer.push_interval_ms, answer.requested_metrics) == (300_000, ())
    assert (answer.accepted_compression_types, answer.telemetry_max_bytes) == ((4, 3, 1, 2), 1_048_576)
    assert answer.delta_temporality is True
    assert API.listed is False


async def test_a_client_without_an_id_gets_one() -> None:
    """Another one each time."""
    stage = AdminStage()
    first, second = await asked(stage, None), await asked(stage, None)
    assert first.client_instance_id is not None
    assert first.client_instance_id != second.client_instance_id


@pytest.mark.parametrize(
    ("first", "second", "union", "interval_ms"),
    [
        ("a,b", "b,c", ("a", "b", "c"), 500),
        ("a", "*", ("*",), 500),
        ("a", None, ("a",), 1000),
    ],
)
async def test_matching_subscriptions_are_joined(
    first: str, second: str | None, union: tuple[str, ...], interval_ms: int
) -> None:
    """The union of their metrics, the shortest of their intervals."""
    stage = AdminStage()
    subscribe(stage, "one", first)
    if second is not None:
        subscribe(stage, "two", second, 500)
    answer = await asked(stage)
    assert (answer.requested_metrics, answer.push_interval_ms) == (union, interval_ms)


@pytest.mark.parametrize(
    ("match", "matches"),
    [
        ("client_id=te.t", True),
        ("client_id=te", False),
        ("client_id=test,client_source_port=40000", True),
        ("client_id=test,client_source_port=1", False),
        ("client_source_address=127\\.0\\.0\\.1", True),
        ("client_software_name=unknown,client_software_version=unknown", True),
        ("client_instance_id=AAAAAAAAAAAAAAAAAAAATQ", True),
    ],
)
async def test_subscriptions_choose_their_clients(match: str, matches: bool) -> None:
    """All patterns must match in full."""
    stage = AdminStage()
    subscribe(stage, "one", "a", match=match)
    assert bool((await asked(stage)).requested_metrics) is matches


async def test_asking_again_too_early_is_throttled() -> None:
    """THROTTLING_QUOTA_EXCEEDED and no other field, until the interval is over or the subscriptions change."""
    stage = AdminStage()
    subscribe(stage, "one", "a")
    first = await asked(stage)
    assert await asked(stage) == GetTelemetrySubscriptionsResponse(error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    stage.cluster.clock.advance(1000)
    again = await asked(stage)
    assert (again.error_code, again.subscription_id) == (ErrorCode.NONE, first.subscription_id)
    subscribe(stage, "one", "a,b")
    changed = await asked(stage)
    assert (changed.error_code, changed.requested_metrics) == (ErrorCode.NONE, ("a", "b"))
    assert changed.subscription_id != first.subscription_id


@pytest.mark.parametrize("silence_ms", [None, 60_001])
async def test_state_ends_with_the_connection_or_after_silence(silence_ms: int | None) -> None:
    """Then a client may ask at once."""
    stage = AdminStage()
    subscribe(stage, "one", "a")
    await asked(stage)
    other = None
    if silence_ms is None:
        other = Connection("c2", "PLAINTEXT", "127.0.0.1", 40_001)
    else:
        stage.cluster.clock.advance(silence_ms)
    assert (await asked(stage, connection=other)).error_code is ErrorCode.NONE


async def test_subscription_ids_differ_between_clients() -> None:
    """They are opaque, and not negative here."""
    stage = AdminStage()
    ids = {(await asked(stage, UUID(int=n))).subscription_id for n in range(2, 20)}
    assert len(ids) == 18
    assert min(ids) >= 0


async def test_many_clients_are_not_remembered_for_ever() -> None:
    """The one that spoke first is forgotten first."""
    stage = AdminStage()
    for number in range(2, 16_390):
        await asked_directly(stage, UUID(int=number))
    assert (await asked(stage, UUID(int=2))).error_code is ErrorCode.NONE
    assert (await asked(stage, UUID(int=16_389))).error_code is ErrorCode.THROTTLING_QUOTA_EXCEEDED


async def asked_directly(stage: AdminStage, instance: UUID) -> None:
    """As ``asked``, past the codec."""
    client = Client(instance, "c1", "test", "a", "1", "127.0.0.1", 1)
    stage.cluster.nodes[1].telemetry.ask(client, {}, stage.cluster.clock.now_ms())
