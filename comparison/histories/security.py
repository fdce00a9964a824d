"""Steps of an administrator of a cluster: SCRAM users, client quotas, ACLs, finalized features."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from comparison.histories.quiescence import wait_metadata
from comparison.histories.step_request import PATIENCE_MS, Builder, Settle, Step, StepRequest
from comparison.target import Target
from protocol.apis import ApiKey
from protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.create_acls import AclCreation, CreateAclsRequest
from protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from protocol.messages.describe_acls import DescribeAclsRequest
from protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

ANY = 1
"""ANY: the resource type, pattern type, operation and permission of a filter for all of them."""


def _called(target: Target, symbol: str | None) -> str | None:
    return None if symbol is None else target.called(symbol)


def _principal(target: Target, symbol: str | None) -> str | None:
    """``User:@alice`` is the history's own alice; anything without an at sign is taken literally."""
    if symbol is None:
        return None
    kind, mark, name = symbol.partition("@")
    return kind + target.called(name) if mark else symbol


# --- SCRAM users -----------------------------------------------------------------------------------------------------


def alter_users(target: Target, step: Step) -> StepRequest:
    """AlterUserScramCredentials: deletions are [user, mechanism], upsertions have iterations, salt and password too."""
    deletions = [ScramCredentialDeletion(target.called(name), mechanism) for name, mechanism in step["delete"]]
    upsertions = [
        ScramCredentialUpsertion(target.called(name), mechanism, iterations, salt.encode(), password.encode())
        for name, mechanism, iterations, salt, password in step["upsert"]
    ]
    request = AlterUserScramCredentialsRequest(deletions, upsertions)
    return StepRequest(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, step["v"], request, step["c"], settle=Settle.METADATA)


def describe_users(target: Target, step: Step) -> StepRequest:
    """DescribeUserScramCredentials of some users, or of all; the response is sorted if the step has `sorted`."""
    users = None if step.get("users") is None else [UserName(target.called(name)) for name in step["users"]]
    request = DescribeUserScramCredentialsRequest(users)
    view = _sorted_users if step.get("sorted") else None
    return StepRequest(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, step["v"], request, step["c"], reads=True, view=view)


def _sorted_users(answer: Any) -> Any:
    return answer.changed(results=sorted(answer.results, key=attrgetter("user")))


# --- client quotas ---------------------------------------------------------------------------------------------------


def alter_quotas(target: Target, step: Step) -> StepRequest:
    """AlterClientQuotas: each entry is an entity, [type, name] each, and operations, [key, value] or [key, null]."""
    entries = [
        EntryData(
            [EntityData(kind, _called(target, name)) for kind, name in entity],
            [OpData(key, 0.0 if value is None else value, value is None) for key, value in operations],
        )
        for entity, operations in step["entries"]
    ]
    request = AlterClientQuotasRequest(entries, step.get("validate", False))
    return StepRequest(ApiKey.ALTER_CLIENT_QUOTAS, step["v"], request, step["c"], settle=Settle.METADATA)


def describe_quotas(target: Target, step: Step) -> StepRequest:
    """DescribeClientQuotas: each component is [entity type, kind of match, name]."""
    components = [ComponentData(kind, match, _called(target, name)) for kind, match, name in step["components"]]
    request = DescribeClientQuotasRequest(components, step.get("strict", False))
    return StepRequest(ApiKey.DESCRIBE_CLIENT_QUOTAS, step["v"], request, step["c"], reads=True)


# --- ACLs ------------------------------------------------------------------------------------------------------------


def create_acls(target: Target, step: Step) -> StepRequest:
    """CreateAcls: each is [resource type, name, pattern type, principal, host, operation, permission]."""
    acls = [
        AclCreation(
            kind, target.called(name), pattern, _principal(target, principal) or "", host, operation, permission
        )
        for kind, name, pattern, principal, host, operation, permission in step["acls"]
    ]
    request = CreateAclsRequest(acls)
    return StepRequest(ApiKey.CREATE_ACLS, step["v"], request, step["c"], settle=Settle.METADATA)


def _filter(target: Target, wanted: Sequence[Any]) -> tuple[Any, ...]:
    kind, name, pattern, principal, host, operation, permission = wanted
    return kind, _called(target, name), pattern, _principal(target, principal), host, operation, permission


def delete_acls(target: Target, step: Step) -> StepRequest:
    """DeleteAcls: each filter as in `create_acls`; null is any."""
    request = DeleteAclsRequest([DeleteAclsFilter(*_filter(target, wanted)) for wanted in step["filters"]])
    return StepRequest(ApiKey.DELETE_ACLS, step["v"], request, step["c"], settle=Settle.METADATA)


def describe_acls(target: Target, step: Step) -> StepRequest:
    """DescribeAcls of a filter."""
    request = DescribeAclsRequest(*_filter(target, step["filter"]))
    return StepRequest(ApiKey.DESCRIBE_ACLS, step["v"], request, step["c"], reads=True)


# --- features --------------------------------------------------------------------------------------------------------


def update_features(_target: Target, step: Step) -> StepRequest:
    """UpdateFeatures: each is [feature, level, whether a downgrade is allowed, kind of change]."""
    updates = [FeatureUpdateKey(*update) for update in step["updates"]]
    request = UpdateFeaturesRequest(PATIENCE_MS, updates, step.get("validate", False))
    return StepRequest(ApiKey.UPDATE_FEATURES, step["v"], request, step["c"], settle=Settle.METADATA)


def features(_target: Target, step: Step) -> StepRequest:
    """ApiVersions, reduced to the features: their epoch is an offset of the cluster's own metadata log."""
    request = ApiVersionsRequest("comparison", "1")
    return StepRequest(ApiKey.API_VERSIONS, step["v"], request, step["c"], reads=True, view=_features)


def _features(answer: Any) -> Any:
    by_name = attrgetter("name")
    return {
        "error_code": answer.error_code,
        "supported": sorted(answer.supported_features, key=by_name),
        "finalized": sorted(answer.finalized_features, key=by_name),
    }


STEPS: dict[str, Builder] = {
    "alter_users": alter_users,
    "describe_users": describe_users,
    "alter_quotas": alter_quotas,
    "describe_quotas": describe_quotas,
    "create_acls": create_acls,
    "delete_acls": delete_acls,
    "describe_acls": describe_acls,
    "update_features": update_features,
    "features": features,
}


def clean_up(target: Target, steps: Sequence[Step]) -> None:
    """Remove all users, quotas and ACLs that the steps may have left: the next history describes all of them."""
    done = {step["do"] for step in steps}
    if "alter_users" in done:
        request = DescribeUserScramCredentialsRequest(None)
        users = target.call(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, request).results
        for user in users:  # one by one: a request has each user once
            for stored in user.credential_infos:
                gone = AlterUserScramCredentialsRequest([ScramCredentialDeletion(user.user, stored.mechanism)])
                target.call(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, gone)
    if "alter_quotas" in done:
        quotas = target.call(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, DescribeClientQuotasRequest([], False)).entries
        entries = [
            EntryData(
                [EntityData(part.entity_type, part.entity_name) for part in entry.entity],
                [OpData(value.key, 0.0, True) for value in entry.values],
            )
            for entry in quotas
        ]
        target.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest(entries))
    if "create_acls" in done and any("share" in name for name in done):  # others play at the same time
        acls = [acl for step in steps if step["do"] == "create_acls" for acl in step["acls"]]
        filters = [DeleteAclsFilter(acl[0], target.called(acl[1]), ANY, None, None, ANY, ANY) for acl in acls]
        target.call(ApiKey.DELETE_ACLS, 3, DeleteAclsRequest(filters))
    elif "create_acls" in done:
        every = DeleteAclsFilter(ANY, None, ANY, None, None, ANY, ANY)
        target.call(ApiKey.DELETE_ACLS, 3, DeleteAclsRequest([every]))
    if done & STEPS.keys():
        wait_metadata(target)
