"""Error responses of older releases, where code or message differ: null, empty or another text.

Middleware for the APIs in which releases differ; responses of the newest release pass unchanged. `tests/releases`
compares them with real brokers of all releases.
"""

from collections.abc import Callable, Mapping
from typing import Any

from broker.request.api import AnyHandler, Middleware
from broker.request.context import RequestContext
from broker.settings.releases import Behaviour, Release
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.types import Message

_UNKNOWN_NAME = "Unknown topic config name"
_NULL_VALUE = "Null value not supported"


def _configs(response: Any, release: Release) -> None:
    """Rewrite responses of AlterConfigs and IncrementalAlterConfigs."""
    for result in response.responses:
        code, message = result.error_code, result.error_message or ""
        if code is ErrorCode.INVALID_CONFIG and not message.startswith(_UNKNOWN_NAME):
            if not release.has(Behaviour.BAD_VALUES_ARE_BAD_CONFIGS):
                resource = f"ConfigResource(type=TOPIC, name='{result.resource_name}')"
                result.error_code = ErrorCode.INVALID_REQUEST
                result.error_message = f"Invalid config value for resource {resource}: {message}"
        elif code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            if not release.has(Behaviour.UNKNOWN_TOPICS_OF_CONFIGS):
                shows_exception = not release.has(Behaviour.UNEXPECTED_ERRORS_HIDDEN)
                result.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
                result.error_message = f'Topic "{result.resource_name}" does not exist.' if shows_exception else None
        elif message.startswith(_NULL_VALUE) and not release.has(Behaviour.UNEXPECTED_ERRORS_HIDDEN):
            result.error_code, result.error_message = ErrorCode.UNKNOWN_SERVER_ERROR, None


def _described_configs(response: Any, release: Release) -> None:
    if not release.has(Behaviour.UNKNOWN_TOPICS_OF_CONFIGS):
        for result in response.results:
            result.error_message = result.error_message or None


def _deleted_topics(response: Any, release: Release) -> None:
    if not release.has(Behaviour.REFUSALS_OF_KRAFT):
        for result in response.responses:
            if result.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                result.error_message = None


def _partitions(response: Any, release: Release) -> None:
    if not release.has(Behaviour.REFUSALS_OF_KRAFT):
        for result in response.results:
            if result.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                result.error_message = f"The topic '{result.name}' does not exist."


def _reassignments(response: Any, release: Release) -> None:
    if not release.has(Behaviour.REFUSALS_OF_KRAFT):
        for topic in response.responses:
            for result in topic.partitions:
                if result.error_code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS:
                    result.error_message = "No partition reassignment is in progress."


def _elections(response: Any, release: Release) -> None:
    if not release.has(Behaviour.ELECTIONS_NOT_NEEDED):
        for topic in response.replica_election_results:
            for result in topic.partition_result:
                if result.error_code is ErrorCode.ELECTION_NOT_NEEDED:
                    result.error_code, result.error_message = ErrorCode.NONE, None


def _quotas(response: Any, release: Release) -> None:
    if not release.has(Behaviour.QUOTAS_WITH_EMPTY_MESSAGES):
        response.error_message = response.error_message or None


def _coordinators(response: Any, release: Release) -> None:
    if not release.has(Behaviour.COORDINATORS_NAMED_NONE):
        for result in response.coordinators:
            if result.error_code is ErrorCode.NONE:
                result.error_message = None


_RULES: Mapping[ApiKey, Callable[[Any, Release], None]] = {
    ApiKey.ALTER_CONFIGS: _configs,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _configs,
    ApiKey.DESCRIBE_CONFIGS: _described_configs,
    ApiKey.DELETE_TOPICS: _deleted_topics,
    ApiKey.CREATE_PARTITIONS: _partitions,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _reassignments,
    ApiKey.ELECT_LEADERS: _elections,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: _quotas,
    ApiKey.FIND_COORDINATOR: _coordinators,
}


def _middleware(rule: Callable[[Any, Release], None]) -> Middleware:
    async def rewrite(request: Any, ctx: RequestContext, handle: AnyHandler) -> Message | None:
        response = await handle(request, ctx)
        if response is not None and not ctx.release.newest:
            rule(response, ctx.release)
        return response

    return rewrite


OLD_REFUSALS: Mapping[ApiKey, Middleware] = {key: _middleware(rule) for key, rule in _RULES.items()}
"""The middleware of each API whose error responses changed."""
