"""DescribeConfigs: effective configs, their sources and documentation (KIP-133, KIP-226).

Versions 1-4: synonyms from v1, types and documentation from v3. A broker answers only for itself. Differs from Kafka:
documentation in our own wording, listeners with their actual ports (GAPS.md, Settings), and a request whose response
would have more than 250,000 configs is refused.
"""

from collections.abc import Iterable

from broker.request.api import Api, per_item
from broker.request.configs import config_allowed
from broker.request.context import AclOperation, RequestContext
from broker.request.response_budget import Allowance
from broker.settings import ConfigResourceType
from broker.settings.describe import (
    Entry,
    broker_entries,
    client_metrics_entries,
    cluster_wide_entries,
    documentation,
    group_entries,
    logger_entries,
    topic_entries,
)
from broker.settings.model import ConfigSource, ConfigType
from broker.settings.names import as_broker_id
from broker.settings.releases import Behaviour
from broker.time.clock import Slices
from protocol.apis import ApiKey
from protocol.errors import MALFORMED_REQUEST, ErrorCode, KafkaError
from protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from protocol.topic_names import check_topic_name

_KNOWN = frozenset(ConfigResourceType) - {ConfigResourceType.UNKNOWN}

_UNAUTHORIZED = {
    ConfigResourceType.TOPIC: KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."),
    ConfigResourceType.GROUP: KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED, "Group authorization failed."),
}
_CLUSTER_UNAUTHORIZED = KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")


async def handle(request: DescribeConfigsRequest, ctx: RequestContext) -> DescribeConfigsResponse:
    """Describe each resource, denied ones last; an unknown resource type fails the whole request (core C.2)."""
    for resource in request.resources:
        if resource.resource_type not in _KNOWN:
            raise KafkaError(ErrorCode.INVALID_REQUEST, MALFORMED_REQUEST)
    allowed, refused, allowance, slices = [], [], Allowance(), Slices()
    for resource in request.resources:
        await slices.pause()
        operation, kind = AclOperation.DESCRIBE_CONFIGS, ConfigResourceType(resource.resource_type)
        if config_allowed(ctx, operation, kind, resource.resource_name):
            allowed.append(_result(resource, request, ctx))
            allowance.take(len(allowed[-1].configs))
        else:
            refused.append(_failed(resource, _UNAUTHORIZED.get(kind, _CLUSTER_UNAUTHORIZED)))
    return DescribeConfigsResponse(results=[*allowed, *refused])


def _result(
    resource: DescribeConfigsResource, request: DescribeConfigsRequest, ctx: RequestContext
) -> DescribeConfigsResult:
    kind = ConfigResourceType(resource.resource_type)
    try:
        entries = _entries(kind, resource.resource_name, resource.configuration_keys or None, ctx)
        configs = [_config(entry, kind, request, ctx) for entry in entries]
    except KafkaError as error:
        return _failed(resource, error)
    return DescribeConfigsResult(
        resource_type=resource.resource_type, resource_name=resource.resource_name, configs=configs
    )


def _failed(resource: DescribeConfigsResource, error: KafkaError) -> DescribeConfigsResult:
    return DescribeConfigsResult(error.code, error.message, resource.resource_type, resource.resource_name)


def _entries(kind: ConfigResourceType, name: str, keys: Iterable[str] | None, ctx: RequestContext) -> Iterable[Entry]:
    """Return the configs of one resource (core C.2.4, C.2.5, C.2.7, C.2.8)."""
    settings, image = ctx.node.settings, ctx.cluster.image
    match kind:
        case ConfigResourceType.TOPIC:
            # The name before existence: an invalid name is 17, not 3 (core C.2.4).
            check_topic_name(name)
            if name not in image.topics and ctx.release.has(Behaviour.UNKNOWN_TOPICS_NOT_DESCRIBED):
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
            return topic_entries(image.config(kind, name), settings, keys)
        case ConfigResourceType.BROKER:
            if not name:
                return cluster_wide_entries(settings, keys)
            _check_own_id(name, ctx, " or empty string,")
            return broker_entries(settings, keys)
        case ConfigResourceType.BROKER_LOGGER:
            if not name:
                raise _bad("Broker id must not be empty")
            _check_own_id(name, ctx, "")
            return logger_entries(settings.loggers.levels(), keys)
        case ConfigResourceType.CLIENT_METRICS:
            if not name:
                raise _bad("Client metrics subscription name must not be empty")
            return client_metrics_entries(image.config(kind, name), keys)
        case _:
            if not name:
                raise _bad("Group name must not be empty")
            return group_entries(image.config(kind, name), settings, keys)


def _bad(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _check_own_id(name: str, ctx: RequestContext, alternative: str) -> None:
    """Refuse what is no number, then what is not this broker's (core C.4 A5 has the same for alterations)."""
    broker_id = as_broker_id(name)
    if broker_id is None:
        raise _bad(f"Broker id must be an integer, but it is: {name}")
    if broker_id != ctx.node.id:
        raise _bad(f"Unexpected broker id, expected {ctx.node.id}{alternative} but received {name}")


def _config(
    entry: Entry, kind: ConfigResourceType, request: DescribeConfigsRequest, ctx: RequestContext
) -> DescribeConfigsResourceResult:
    synonyms = entry.synonyms if request.include_synonyms else ()
    text: str | None = None
    if kind is ConfigResourceType.BROKER_LOGGER:
        text = ""
    elif request.include_documentation and entry.type is not ConfigType.UNKNOWN:
        text = documentation(kind, entry.name)
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[DescribeConfigsSynonym(layer.name, layer.value, layer.source) for layer in synonyms],
        config_type=entry.type,
        documentation=text,
        is_default=entry.source is ConfigSource.DEFAULT and not ctx.release.has(Behaviour.DEFAULTS_NOT_MARKED),
    )


API: Api[DescribeConfigsRequest, DescribeConfigsResponse] = Api(
    ApiKey.DESCRIBE_CONFIGS,
    handle,
    per_item(lambda request: request.resources, _failed, lambda results: DescribeConfigsResponse(results=results)),
)
