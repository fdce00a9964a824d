"""UpdateFeatures: core B.13; which levels are possible is tested at the machine."""

import pytest

from broker.handlers.update_features import API
from broker.request.context import AclOperation, ResourceType
from protocol.errors import ErrorCode
from protocol.messages.update_features import FeatureUpdateKey, UpdatableFeatureResult, UpdateFeaturesRequest
from tests.handlers.admin_harness import AdminStage

FEATURE = "transaction.version"


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_a_downgrade_has_to_be_marked_as_one(version: int) -> None:
    """By its type since v1, while v0 cannot; results per feature before v2, with the message of 4.3.1."""
    stage = AdminStage()
    update = FeatureUpdateKey(FEATURE, 1, allow_downgrade=True, upgrade_type=2)
    answer = await stage.ask(API, UpdateFeaturesRequest(feature_updates=[update]), version)
    if version == 0:
        assert answer.error_code is ErrorCode.INVALID_UPDATE_VERSION
        assert "without setting the upgrade type" in answer.error_message
        assert stage.image.features[FEATURE] == 2
        return
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
    assert answer.results == ((UpdatableFeatureResult(FEATURE, error_message="NONE"),) if version < 2 else ())
    assert stage.image.features[FEATURE] == 1


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_an_impossible_update_is_refused_at_the_top(version: int) -> None:
    """INVALID_UPDATE_VERSION with the reason, no result of any feature, nothing changed."""
    stage = AdminStage()
    updates = [FeatureUpdateKey("share.version", 1), FeatureUpdateKey(FEATURE, 99)]
    answer = await stage.ask(API, UpdateFeaturesRequest(feature_updates=updates), version)
    assert answer.error_code is ErrorCode.INVALID_UPDATE_VERSION
    assert answer.error_message.startswith(
        "The update failed for all features since the following feature had an error"
    )
    assert answer.results == ()
    assert stage.image.features[FEATURE] == 2


async def test_validate_only_changes_nothing() -> None:
    """validate_only gets the same response as a change, and changes nothing."""
    stage = AdminStage()
    update = FeatureUpdateKey(FEATURE, 1, upgrade_type=3)
    answer = await stage.ask(API, UpdateFeaturesRequest(feature_updates=[update], validate_only=True), 1)
    assert answer.error_code is ErrorCode.NONE
    assert stage.image.features[FEATURE] == 2


async def test_it_needs_alter_on_the_cluster() -> None:
    """CLUSTER_AUTHORIZATION_FAILED at the top level."""
    denied = {(AclOperation.ALTER, ResourceType.CLUSTER)}
    answer = await AdminStage().ask(API, UpdateFeaturesRequest(), denied=denied)
    assert answer.error_code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
