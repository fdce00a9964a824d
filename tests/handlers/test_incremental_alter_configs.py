"""IncrementalAlterConfigs at the handler: what is allowed is stored and followed (core C.4, C.5)."""

from collections.abc import Sequence

from broker.handlers.incremental_alter_configs import API
from broker.request.context import ResourceType
from broker.settings import Operation
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
)
from tests.handlers.configs_harness import BROKER, GROUP, LOGGER, METRICS, TOPIC, Context

SET, DELETE, APPEND = Operation.SET, Operation.DELETE, Operation.APPEND
OK = ErrorCode.NONE


def resource(kind: int, name: str, *changes: tuple[str, int, str | None]) -> AlterConfigsResource:
    """One resource with its changes."""
    return AlterConfigsResource(int(kind), name, [AlterableConfig(key, int(op), value) for key, op, value in changes])


async def alter(
    context: Context,
    *resources: AlterConfigsResource,
    validate_only: bool = False,
    denied: tuple[ResourceType, ...] = (),
) -> Sequence[AlterConfigsResourceResponse]:
    """The responses of one request."""
    request = IncrementalAlterConfigsRequest(list(resources), validate_only)
    responses: Sequence[AlterConfigsResourceResponse] = (
        await API.handle(request, context.request(API, denied=denied))
    ).responses
    return responses


async def test_one_refusal_leaves_the_others_alone() -> None:
    """Answers come in the order of the request, and see each other's results only in the next one."""
    context = Context()
    answers = await alter(
        context,
        resource(TOPIC, "foo", ("retention.ms", SET, "1000")),
        resource(TOPIC, "zip", ("retention.ms", SET, "1000")),
        resource(BROKER, "1", ("node.id", SET, "5")),
        resource(GROUP, "g", ("share.isolation.level", SET, "read_committed")),
        resource(METRICS, "s", ("interval.ms", SET, "1000")),
    )
    assert [each.error_code for each in answers] == [
        OK,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
        OK,
        OK,
    ]
    assert context.stored(TOPIC, "foo") == {"retention.ms": "1000"}
    assert context.stored(GROUP, "g") == {"share.isolation.level": "read_committed"}
    assert context.stored(METRICS, "s") == {"interval.ms": "1000"}
    assert context.stored(BROKER, "1") == {}


async def test_validate_only_stores_nothing() -> None:
    """Not even levels of loggers (core C.4.4)."""
    context = Context()
    answers = await alter(
        context,
        resource(TOPIC, "foo", ("retention.ms", SET, "1000")),
        resource(LOGGER, "1", ("root", SET, "WARN")),
        resource(BROKER, "1", ("log.dirs", SET, "x")),
        validate_only=True,
    )
    assert [each.error_code for each in answers] == [OK, OK, ErrorCode.INVALID_REQUEST]
    assert context.stored(TOPIC, "foo") == {}
    assert context.settings.loggers.level("root") == "INFO"


async def test_CFG_14_levels_of_loggers_are_the_brokers_own() -> None:
    """Set, seen, deleted; nothing goes to the metadata."""
    context = Context()
    await alter(context, resource(LOGGER, "1", ("broker", SET, "DEBUG"), ("root", SET, "WARN")))
    assert context.settings.loggers.levels() == {
        "root": "WARN",
        "broker": "DEBUG",
        "protocol": "WARN",
        "storage": "WARN",
    }
    await alter(context, resource(LOGGER, "1", ("broker", DELETE, None)))
    assert context.settings.loggers.level("broker") == "WARN"
    (refused,) = await alter(context, resource(LOGGER, "1", ("root", SET, "DEBUG"), ("nosuch", SET, "INFO")))
    assert refused.error_code is ErrorCode.INVALID_CONFIG
    assert context.settings.loggers.level("root") == "WARN"
    assert context.stored(LOGGER, "1") == {}


async def test_altering_needs_the_permission() -> None:
    """Topics, groups and other resources have their own errors (core C.4 A10)."""
    everything = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER)
    answers = await alter(
        Context(),
        resource(TOPIC, "foo", ("retention.ms", SET, "1")),
        resource(GROUP, "g", ("share.isolation.level", SET, "x")),
        resource(BROKER, "", ("log.retention.ms", SET, "5")),
        resource(METRICS, "s", ("interval.ms", SET, "500")),
        resource(LOGGER, "1", ("root", SET, "INFO")),
        denied=everything,
    )
    assert [int(each.error_code) for each in answers] == [29, 30, 31, 31, 31]


def test_an_error_of_the_whole_request_is_answered_for_every_resource() -> None:
    """An error of the request is in each resource, because the API has none at the top."""
    request = IncrementalAlterConfigsRequest([resource(TOPIC, "a"), resource(TOPIC, "b")])
    answer = API.refuse(request, KafkaError(ErrorCode.NOT_CONTROLLER), 1)
    assert [(each.resource_name, each.error_code) for each in answer.responses] == [
        ("a", ErrorCode.NOT_CONTROLLER),
        ("b", ErrorCode.NOT_CONTROLLER),
    ]


async def test_a_value_is_limited_in_characters_although_the_message_has_bytes() -> None:
    """APPEND to 32,767 UTF-16 units is accepted, to one more is INVALID_CONFIG (core C.3)."""
    context = Context()
    longest = "x" * 32_765
    assert [each.error_code for each in await alter(context, resource(BROKER, "", _provider(SET, longest)))] == [OK]
    (answer,) = await alter(context, resource(BROKER, "", _provider(APPEND, "yz")))
    assert (answer.error_code, "maximum value size of 32767 bytes" in (answer.error_message or "")) == (
        ErrorCode.INVALID_CONFIG,
        True,
    )
    assert [each.error_code for each in await alter(context, resource(BROKER, "", _provider(APPEND, "y")))] == [OK]
    assert context.stored(BROKER, "")["config.providers"] == f"{longest},y"


async def test_a_value_that_no_record_can_hold_fails_all_that_the_controller_decides() -> None:
    """Few characters and many bytes: UNKNOWN_SERVER_ERROR for its neighbours too, and nothing is stored (core C.3)."""
    context = Context()
    await alter(context, resource(BROKER, "", _provider(SET, "é" * 16_383)))
    added = resource(BROKER, "", _provider(APPEND, "x" * 10))
    neighbour, own = resource(TOPIC, "foo", ("retention.ms", SET, "1000")), resource(BROKER, "1", ("node.id", SET, "5"))
    answers = await alter(context, added, neighbour, own)
    failed = ErrorCode.UNKNOWN_SERVER_ERROR
    assert [each.error_code for each in answers] == [failed, failed, ErrorCode.INVALID_REQUEST]
    assert (context.stored(TOPIC, "foo"), context.stored(BROKER, "")["config.providers"]) == ({}, "é" * 16_383)
    assert [each.error_code for each in await alter(context, added, validate_only=True)] == [OK]


def _provider(operation: int, value: str) -> tuple[str, int, str]:
    """A change of the one list that a broker stores unchecked (core C.4.8)."""
    return "config.providers", operation, value
