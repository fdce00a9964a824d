"""Steps about delegation tokens (KIP-48, for other users KIP-373), on connections with a login.

A connection ``as:alice`` logs in as alice with her password; ``token:k0:7`` with the token k0, and is used once.
"""

from collections.abc import Iterable
from typing import Any

from comparison.histories.step_request import Builder, Settle, Step, StepRequest
from comparison.target import UNKNOWN_PROOF, Target
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from protocol.messages.describe_delegation_token import DescribeDelegationTokenOwner, DescribeDelegationTokenRequest
from protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from protocol.messages.renew_delegation_token import RenewDelegationTokenRequest

USERS = ("admin", "alice", "bob", "carol", "dave")
"""Users in the clusters' settings; the password is the name with `-secret`."""
AT_ONCE_MS = -1


def create_token(target: Target, step: Step) -> StepRequest:
    """CreateDelegationToken `token` for `owner` ([type, name] or null), with `renewers` and a `lifetime`."""
    owner = step.get("owner") or (None, None)
    renewers = [CreatableRenewers(*renewer) for renewer in step["renewers"]]
    request = CreateDelegationTokenRequest(renewers, step["lifetime"], *owner)

    def after(answer: Any) -> None:
        if answer.error_code is ErrorCode.NONE:
            target.tokens[step["token"]] = answer.token_id, bytes(answer.hmac)

    key = ApiKey.CREATE_DELEGATION_TOKEN
    return StepRequest(key, step["v"], request, step["c"], after=after, settle=Settle.METADATA)


def _proof(target: Target, step: Step) -> bytes:
    return target.tokens.get(step["token"], ("", UNKNOWN_PROOF))[1]


def renew_token(target: Target, step: Step) -> StepRequest:
    """RenewDelegationToken by a `period`."""
    request = RenewDelegationTokenRequest(_proof(target, step), step["period"])
    return StepRequest(ApiKey.RENEW_DELEGATION_TOKEN, step["v"], request, step["c"], settle=Settle.METADATA)


def expire_token(target: Target, step: Step) -> StepRequest:
    """ExpireDelegationToken after a `period`; a negative one removes it."""
    request = ExpireDelegationTokenRequest(_proof(target, step), step["period"])
    return StepRequest(ApiKey.EXPIRE_DELEGATION_TOKEN, step["v"], request, step["c"], settle=Settle.METADATA)


def describe_tokens(target: Target, step: Step) -> StepRequest:
    """DescribeDelegationToken of `owners`, [type, name] each, or of all, reduced to this history's tokens."""
    owners = None if step["owners"] is None else [DescribeDelegationTokenOwner(*owner) for owner in step["owners"]]

    def view(answer: Any) -> Any:
        token_ids = {token_id for token_id, _ in target.tokens.values()}
        return answer.changed(tokens=[token for token in answer.tokens if token.token_id in token_ids])

    request = DescribeDelegationTokenRequest(owners)
    return StepRequest(ApiKey.DESCRIBE_DELEGATION_TOKEN, step["v"], request, step["c"], reads=True, view=view)


STEPS: dict[str, Builder] = {
    "create_token": create_token,
    "renew_token": renew_token,
    "expire_token": expire_token,
    "describe_tokens": describe_tokens,
}


def clean_up(target: Target, steps: Iterable[Step]) -> None:
    """Remove the tokens that the steps may have left, each as its owner."""
    if not any(step["do"] == "create_token" for step in steps):
        return
    for user in USERS:
        for _, proof in target.tokens.values():
            request = ExpireDelegationTokenRequest(proof, AT_ONCE_MS)
            target.connection(f"as:{user}:aside").call(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, request)
