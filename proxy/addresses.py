"""Replace brokers' addresses in responses by those of the proxy's listeners.

Metadata, FindCoordinator and DescribeCluster always have addresses; Produce, Fetch, ShareFetch and ShareAcknowledge
have the new leader's with an error (KIP-951). ApiVersions must not offer versions of these APIs that the proxy cannot
read.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from protocol.apis import ApiKey
from protocol.codec import known_versions
from protocol.messages.api_versions import ApiVersionsResponse
from protocol.messages.describe_cluster import DescribeClusterResponse
from protocol.messages.find_coordinator import FindCoordinatorResponse
from protocol.messages.metadata import MetadataResponse
from protocol.types import Message

BROKERS, CONTROLLERS = 1, 2
"""Kinds of endpoints that DescribeCluster lists (KIP-919)."""

Place = Callable[[int, int, str, int], Awaitable[tuple[str, int]]]
"""Kind, id, host and port of an upstream broker -> host and port of its listener in the proxy, created if needed."""

_HINTS_FROM: Mapping[int, int] = {
    ApiKey.PRODUCE: 10,
    ApiKey.FETCH: 16,
    ApiKey.SHARE_FETCH: 0,
    ApiKey.SHARE_ACKNOWLEDGE: 0,
}
"""API -> the first version whose responses may contain the leader's endpoint (KIP-951)."""
ADDRESSED = frozenset({ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CLUSTER})
"""APIs whose responses always have addresses."""
_READ = frozenset({*ADDRESSED, *_HINTS_FROM, ApiKey.API_VERSIONS})


def has_addresses(key: int, version: int) -> bool:
    """Whether responses of this API and version may have addresses."""
    above_int16 = 1 << 15
    return key in ADDRESSED or key == ApiKey.API_VERSIONS or version >= _HINTS_FROM.get(key, above_int16)


async def rewritten(response: Message, place: Place) -> Message:
    """Return the response with the addresses of the proxy's listeners; the same object if nothing changes."""
    match response:
        case MetadataResponse():
            return response.changed(brokers=await _placed(response.brokers, place, id_field="node_id"))
        case DescribeClusterResponse():
            brokers = await _placed(response.brokers, place, id_field="broker_id", kind=response.endpoint_type)
            return response.changed(brokers=brokers)
        case FindCoordinatorResponse():
            if not response.coordinators:  # before v4, a response has one coordinator
                (changed,) = await _placed([response], place, id_field="node_id")
                return cast("Message", changed)
            return response.changed(coordinators=await _placed(response.coordinators, place, id_field="node_id"))
        case ApiVersionsResponse():
            return _readable(response)
    endpoints: Sequence[Any] = getattr(response, "node_endpoints", ())
    return (
        response.changed(node_endpoints=await _placed(endpoints, place, id_field="node_id")) if endpoints else response
    )


async def _placed(items: Sequence[Any], place: Place, *, id_field: str, kind: int = BROKERS) -> list[Any]:
    placed = []
    for item in items:
        if item.host and item.port >= 0:
            host, port = await place(kind, getattr(item, id_field), item.host, item.port)
            placed.append(item.changed(host=host, port=port))
        else:
            placed.append(item)
    return placed


def _readable(response: ApiVersionsResponse) -> ApiVersionsResponse:
    """Limit the offered versions of APIs with addresses to those that the proxy can read; keep all others."""
    offered, limited = [], False
    for api_range in response.api_keys:
        served = known_versions(api_range.api_key) if api_range.api_key in _READ else None
        if served is not None and api_range.max_version > served[1]:
            offered.append(api_range.changed(max_version=served[1]))
            limited = True
        else:
            offered.append(api_range)
    return response.changed(api_keys=offered) if limited else response
