"""UpdateFeatures: finalized levels up or down (KIP-584, KIP-778, KIP-1022).

Versions 0-2. Not done: kraft.version, which has no levels to move here.
"""

from broker.chain import Api
from broker.context import AclOperation, RequestContext
from broker.coordination.metadata.features import FeatureUpdate, UpgradeType
from broker.topology import may_on_cluster
from protocol import features
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


async def handle(request: UpdateFeaturesRequest, ctx: RequestContext) -> UpdateFeaturesResponse:
    """Core B.13: all of them or none."""
    if not may_on_cluster(ctx, AclOperation.ALTER):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    updates = [_update(each, ctx.version) for each in request.feature_updates]
    await ctx.cluster.metadata.ask(
        lambda machine, _now_ms, token: machine.update_features(updates, token, validate_only=request.validate_only)
    )
    # Quirk: each feature's message is the name of the code, as 4.3.1 answers.
    done = [UpdatableFeatureResult(update.name, error_message="NONE") for update in updates]
    each_told = features.update_features_tells_each(ctx.version)
    return UpdateFeaturesResponse(error_message=None, results=done if each_told else ())


def _update(each: FeatureUpdateKey, version: int) -> FeatureUpdate:
    kind = each.upgrade_type
    if not features.update_features_has_upgrade_types(version):
        kind = UpgradeType.SAFE_DOWNGRADE if each.allow_downgrade else UpgradeType.UPGRADE
    return FeatureUpdate(each.feature, each.max_version_level, kind)


def refuse(request: UpdateFeaturesRequest, error: KafkaError, version: int) -> UpdateFeaturesResponse:  # noqa: ARG001
    """At the top; no result of any feature."""
    return UpdateFeaturesResponse(error_code=error.code, error_message=error.message)


API = Api(ApiKey.UPDATE_FEATURES, (0, 2), handle, refuse)
