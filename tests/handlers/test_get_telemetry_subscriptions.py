"""GetTelemetrySubscriptions: core H.1."""

from typing import Any
from uuid import UUID

import pytest

from broker.coordination.metadata.configs import NewConfigs
from broker.handlers import push_telemetry
from broker.handlers.get_telemetry_subscriptions import API
from broker.request.connection import Connection
from broker.request.telemetry import Client, Subscriptions
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from tests.handlers.admin_harness import AdminStage
from tests.versions import SERVED

ME = UUID(int=77)
METRICS = 16


async def subscriptions_of(
    stage: AdminStage, instance: UUID | None = ME, **more: Any
) -> GetTelemetrySubscriptionsResponse:
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
    answer = await subscriptions_of(AdminStage())
    assert (answer.error_code, answer.client_instance_id) == (ErrorCode.NONE, ME)
    assert (answer.push_interval_ms, answer.requested_metrics) == (300_000, ())
    assert (answer.accepted_compression_types, answer.telemetry_max_bytes) == ((4, 3, 1, 2), 1_048_576)
    assert answer.delta_temporality is True
    assert SERVED[API.key].listed is False


async def test_a_client_without_an_id_gets_one() -> None:
    """A client without an instance id gets one, another each time."""
    stage = AdminStage()
    first, second = await subscriptions_of(stage, None), await subscriptions_of(stage, None)
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
    answer = await subscriptions_of(stage)
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
    """A subscription applies to clients whose attributes match all its patterns in full."""
    stage = AdminStage()
    subscribe(stage, "one", "a", match=match)
    assert bool((await subscriptions_of(stage)).requested_metrics) is matches


async def test_asking_again_too_early_is_throttled() -> None:
    """THROTTLING_QUOTA_EXCEEDED and no other field, until the interval is over or the subscriptions change."""
    stage = AdminStage()
    subscribe(stage, "one", "a")
    first = await subscriptions_of(stage)
    assert await subscriptions_of(stage) == GetTelemetrySubscriptionsResponse(
        error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED
    )
    stage.cluster.clock.advance(1000)
    again = await subscriptions_of(stage)
    assert (again.error_code, again.subscription_id) == (ErrorCode.NONE, first.subscription_id)
    subscribe(stage, "one", "a,b")
    changed = await subscriptions_of(stage)
    assert (changed.error_code, changed.requested_metrics) == (ErrorCode.NONE, ("a", "b"))
    assert changed.subscription_id != first.subscription_id


async def test_state_outlives_other_connections_and_ends_with_its_own() -> None:
    """Then a client may ask at once; over another connection it is the same client."""
    stage = AdminStage()
    own, other = (Connection(f"c{number}", "PLAINTEXT", "127.0.0.1", 40_000 + number) for number in (1, 2))
    await subscriptions_of(stage, connection=own)
    await subscriptions_of(stage, UUID(int=78), connection=other)
    other.lose()
    assert (await subscriptions_of(stage, connection=other)).error_code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert (await subscriptions_of(stage, UUID(int=78), connection=own)).error_code is ErrorCode.NONE
    own.lose()
    assert (await subscriptions_of(stage, UUID(int=78), connection=own)).error_code is ErrorCode.NONE


async def test_state_outlives_a_connection_that_the_broker_closes() -> None:
    """As in Kafka, which notifies no one of its own closing: a client that sent nonsense must wait as before."""
    stage = AdminStage()
    own = Connection("c1", "PLAINTEXT", "127.0.0.1", 40_001)
    await subscriptions_of(stage, connection=own)
    own.refused = True
    own.lose()
    assert (await subscriptions_of(stage)).error_code is ErrorCode.THROTTLING_QUOTA_EXCEEDED


async def test_a_connection_ends_the_instance_that_was_made_on_it_last() -> None:
    """An earlier one stays: as in Kafka, a connection is thought to have one client."""
    stage = AdminStage()
    own = Connection("c1", "PLAINTEXT", "127.0.0.1", 40_001)
    await subscriptions_of(stage, connection=own)
    await subscriptions_of(stage, UUID(int=78), connection=own)
    own.lose()
    assert (await subscriptions_of(stage)).error_code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert (await subscriptions_of(stage, UUID(int=78))).error_code is ErrorCode.NONE


@pytest.mark.parametrize(("interval_ms", "silence_ms"), [(1000, 60_000), (300_000, 900_000)])
async def test_state_ends_after_a_long_silence(interval_ms: int, silence_ms: int) -> None:
    """A minute, or three intervals if those are longer, since any request, even a refused one."""
    stage = AdminStage()
    subscribe(stage, "one", "a", interval_ms)
    number = (await subscriptions_of(stage)).subscription_id
    assert (await pushed(stage, number, terminating=True)).error_code is ErrorCode.NONE
    for silent_ms, code in ((silence_ms - 1, ErrorCode.INVALID_REQUEST), (silence_ms, ErrorCode.NONE)):
        stage.cluster.clock.advance(silent_ms)
        assert (await pushed(stage, number, terminating=True)).error_code is code


async def pushed(stage: AdminStage, subscription: int, *, terminating: bool) -> PushTelemetryResponse:
    """The answer to a push."""
    answer = await stage.ask(push_telemetry.API, PushTelemetryRequest(ME, subscription, terminating))
    assert isinstance(answer, PushTelemetryResponse)
    return answer


async def test_subscription_ids_are_kafkas() -> None:
    """A checksum of what is wanted and of the interval, and the client's id: as Kafka 4.3.1 and 4.4.0 answered."""
    ids = {(await subscriptions_of(AdminStage(), UUID(int=n))).subscription_id for n in range(2, 20)}
    assert len(ids) == 18
    assert (await subscriptions_of(AdminStage(), UUID(int=2))).subscription_id == -725132322 ^ 2


async def test_no_interval_is_longer_than_five_minutes() -> None:
    """A subscription may have an hour: Kafka starts from its default."""
    stage = AdminStage()
    subscribe(stage, "one", "a", 3_600_000)
    assert (await subscriptions_of(stage)).push_interval_ms == 300_000


async def test_metrics_come_in_the_order_of_a_hash_table() -> None:
    """Not in the order in which the subscriptions name them."""
    stage = AdminStage()
    subscribe(stage, "one", "zz,c,a,org.apache.kafka.producer.,b")
    assert (await subscriptions_of(stage)).requested_metrics == ("zz", "org.apache.kafka.producer.", "a", "b", "c")


async def test_many_clients_are_not_remembered_for_ever() -> None:
    """The one that spoke longest ago is forgotten first."""
    stage = AdminStage()
    throttled, numbers = 0, range(2, 16_390)
    for number in numbers:
        throttled += await asked_directly(stage, UUID(int=number))
        throttled += await asked_directly(stage, UUID(int=3))
    assert (await subscriptions_of(stage, UUID(int=2))).error_code is ErrorCode.NONE
    assert (await subscriptions_of(stage, UUID(int=3))).error_code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert throttled == len(numbers)  # 3, but for its first time, and once more when it was its turn


async def asked_directly(stage: AdminStage, instance: UUID) -> bool:
    """As ``subscriptions_of``, past the codec; whether it was refused."""
    client = Client(instance, "c1", "test", "a", "1", "127.0.0.1", 1)
    try:
        stage.cluster.nodes[1].telemetry.ask(client, lambda _: None, Subscriptions(), stage.cluster.clock.now_ms())
    except KafkaError:
        return True
    return False
