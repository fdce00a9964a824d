"""ApiVersions: lists the APIs with their versions, and the features (KIP-35, KIP-511, KIP-584).

Versions 0-5; from v5 on the client may send the expected cluster id and node id (KIP-1242). Not done: nothing.
"""

import re
from functools import lru_cache

from broker.coordination.metadata.features import METADATA_VERSION
from broker.request.api import Api, top_level
from broker.request.connection import Versions
from broker.request.context import RequestContext, ServedVersions
from protocol import features
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.java import reserved_capacity, string_hash, table_order
from protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_NO_NODE = -1
_UNKNOWN = "unknown"
"""The software name and version of a connection whose last ApiVersions request had none."""
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


async def handle(request: ApiVersionsRequest, ctx: RequestContext) -> ApiVersionsResponse:
    """List the APIs that are served, in their versions for this connection (core A.5)."""
    elsewhere = features.api_versions_names_target(ctx.version) and _is_meant_for_another(request, ctx)
    if features.api_versions_names_software(ctx.version):
        for text in (request.client_software_name, request.client_software_version):
            if _SOFTWARE.fullmatch(text) is None:
                raise KafkaError(ErrorCode.INVALID_REQUEST)
    ctx.connection.software_name = request.client_software_name or _UNKNOWN
    ctx.connection.software_version = request.client_software_version or _UNKNOWN
    # After the names of the software, which are kept even then; an unknown version comes before both (core A.5.3).
    if elsewhere:
        raise KafkaError(ErrorCode.REBOOTSTRAP_REQUIRED)
    supported, levels = ctx.release.supported, ctx.cluster.quorum.levels(ctx.cluster.image.features)
    unstable = ctx.node.settings.boolean("unstable.api.versions.enable")
    return ApiVersionsResponse(
        api_keys=[
            _listed(api, ctx.connection.versions, unstable=unstable)
            for api in ctx.apis
            if api.listed and ctx.connection.versions.get(api.key, ()) is not None
        ],
        supported_features=[
            SupportedFeatureKey(name, low, high)
            for name in _supported(tuple(supported))
            for low, high in (supported[name],)
            if low > 0 or features.api_versions_allows_zero_minimum(ctx.version)
        ],
        finalized_features_epoch=_epoch(ctx) if supported else ctx.release.features_epoch,
        finalized_features=[
            FinalizedFeatureKey(name, level, level)
            for name in _finalized(tuple(levels))
            for level in (levels[name],)
            if name in supported
        ],
    )


@lru_cache(maxsize=16)  # releases differ in their features; a server emulates few
def _supported(names: tuple[str, ...]) -> list[str]:
    """Return features in the order of Java's HashMap."""
    return table_order(sorted(names), string_hash)


@lru_cache(maxsize=16)  # the same
def _finalized(names: tuple[str, ...]) -> list[str]:
    """Return features in the order of a copied HashMap to which metadata.version is added (FinalizedFeatures)."""
    others = sorted(name for name in names if name != METADATA_VERSION)
    added = [name for name in names if name == METADATA_VERSION]
    return table_order([*others, *added], string_hash, reserved_capacity(len(others)))


def _epoch(ctx: RequestContext) -> int:
    """Return the offset that a broker's metadata has reached; for a controller, that of the last feature change."""
    return ctx.cluster.image.features_offset if ctx.at_controller else ctx.cluster.image.offset


def _is_meant_for_another(request: ApiVersionsRequest, ctx: RequestContext) -> bool:
    """Whether the client expects another cluster or node at this address.

    Raises:
        KafkaError: INVALID_REQUEST if only one of the two ids is given.
    """
    if (request.cluster_id is None) != (request.node_id == _NO_NODE):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return request.cluster_id is not None and (request.cluster_id, request.node_id) != (
        ctx.cluster.cluster_id,
        ctx.node.id,
    )


def _listed(api: ServedVersions, steered: Versions, *, unstable: bool) -> ApiVersion:
    limits = steered.get(api.key)
    if limits is not None:
        return ApiVersion(api.key, *limits)
    low, high = api.range(unstable=unstable)
    # Quirk: Produce is listed from 0, for clients that infer features from its range (core A.5.4).
    return ApiVersion(api.key, 0 if api.key is ApiKey.PRODUCE else low, high)


API: Api[ApiVersionsRequest, ApiVersionsResponse] = Api(ApiKey.API_VERSIONS, handle, top_level(ApiVersionsResponse))
