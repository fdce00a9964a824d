"""AlterConfigs at the handler: the whole mapping of a resource is replaced (core C.4.1)."""

from broker.handlers.alter_configs import API
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
)
from tests.handlers.configs_harness import BROKER, LOGGER, TOPIC, Context


async def alter(
    context: Context, kind: int, name: str, *, validate_only: bool = False, **values: str | None
) -> AlterConfigsResourceResponse:
    """The response for one resource (underscores for dots)."""
    configs = [AlterableConfig(key.replace("_", "."), value) for key, value in values.items()]
    request = AlterConfigsRequest([AlterConfigsResource(int(kind), name, configs)], validate_only)
    (response,) = (await API.handle(request, context.request(API))).responses
    assert isinstance(response, AlterConfigsResourceResponse)
    return response


async def test_a_refusal_changes_nothing() -> None:
    """Unknown names, loggers, and a cluster default that may not go."""
    context = Context()
    await alter(context, TOPIC, "foo", retention_ms="1000")
    refused = [
        await alter(context, TOPIC, "foo", nosuch="1"),
        await alter(context, LOGGER, "1", root="INFO"),
        await alter(context, BROKER, "", log_retention_ms="5"),
    ]
    assert [int(each.error_code) for each in refused] == [40, 42, 40]
    assert context.stored(TOPIC, "foo") == {"retention.ms": "1000"}


async def test_validate_only_stores_nothing() -> None:
    """The checks are made, the write is not (core C.4.4)."""
    context = Context()
    assert (await alter(context, TOPIC, "foo", validate_only=True, retention_ms="1")).error_code is ErrorCode.NONE
    assert context.stored(TOPIC, "foo") == {}


def test_an_error_of_the_whole_request_is_answered_for_every_resource() -> None:
    """An error of the request is in each resource, because the API has none at the top."""
    request = AlterConfigsRequest([AlterConfigsResource(2, "a"), AlterConfigsResource(2, "b")])
    answer = API.refuse(request, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR), 2)
    assert [each.error_code for each in answer.responses] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
