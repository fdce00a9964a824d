"""UpdateFeatures: upgrades or downgrades finalized feature levels (KIP-584, KIP-778, KIP-1022).

Versions 0-2. Not done: nothing.
"""

from broker.coordination.metadata.features import SUPPORTED, FeatureUpdate, UpgradeType
from broker.request.api import Api, top_level_with_message
from broker.request.context import AclOperation, RequestContext
from broker.request.topology import check_on_cluster
from protocol import features
from protocol.apis import ApiKey
from protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


async def handle(request: UpdateFeaturesRequest, ctx: RequestContext) -> UpdateFeaturesResponse:
    """Change feature levels, all of them or none (core B.13)."""
    check_on_cluster(ctx, AclOperation.ALTER)
    updates = [_update(each, ctx.version) for each in request.feature_updates]
    await ctx.cluster.metadata.ask(
        lambda machine, _now_ms, token: machine.update_features(
            updates,
            token,
            kraft_version=ctx.cluster.quorum.version,
            supported=ctx.release.supported or SUPPORTED,
            validate_only=request.validate_only,
        )
    )
    # Quirk: each feature's message is the name of the code, as in 4.3.1.
    done = [UpdatableFeatureResult(each.feature, error_message="NONE") for each in request.feature_updates]
    has_results = features.update_features_has_results(ctx.version)
    return UpdateFeaturesResponse(error_message=None, results=done if has_results else ())


def _update(each: FeatureUpdateKey, version: int) -> FeatureUpdate:
    # Quirk: a KRaft controller ignores AllowDowngrade of v0, so that v0 never lowers a level.
    kind = each.upgrade_type if features.update_features_has_upgrade_types(version) else UpgradeType.UPGRADE
    return FeatureUpdate(each.feature, each.max_version_level, kind)


API: Api[UpdateFeaturesRequest, UpdateFeaturesResponse] = Api(
    ApiKey.UPDATE_FEATURES, handle, top_level_with_message(UpdateFeaturesResponse)
)
