"""Decisions about delegation tokens: creation, renewal, expiry, removal, description (core G.12; KIP-48, KIP-900).

After Kafka's ``DelegationTokenControlManager``. The handlers check authorization.
"""

import hmac
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from broker.coordination.metadata.image import ClusterImage
from protocol.deferred import dataclass
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.metadata_security import DelegationTokenRecord, RemoveDelegationTokenRecord

USER = "User"
_LONGEST = 2**63 - 1
"""Latest timestamp: larger sums are capped, as in Kafka's controller."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The broker's settings of tokens: the secret key, the maximum lifetime, and the time until a token expires."""

    secret_key: str
    max_lifetime_ms: int
    expiry_time_ms: int

    def hmac(self, token_id: str) -> bytes:
        """Return the HMAC that proves possession of the token. It is never stored."""
        return _hmac(self.secret_key, token_id)


@lru_cache(maxsize=16_384)  # ours: more tokens than tests have; a request computes the HMACs of all, to find its own
def _hmac(secret_key: str, token_id: str) -> bytes:
    return hmac.digest(secret_key.encode(), token_id.encode(), "sha512")


@dataclass(frozen=True, slots=True)
class NewToken:
    """A requested token; principals are in the form ``TYPE:NAME``."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    max_lifetime_ms: int


def create(rules: Rules, wanted: NewToken, token_id: str, now_ms: int) -> DelegationTokenRecord:
    """Return a new token (core G.12.2). The broker has checked that the renewers are users."""
    lifetime_ms = rules.max_lifetime_ms
    if wanted.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, wanted.max_lifetime_ms)
    max_ms = min(now_ms + lifetime_ms, _LONGEST)
    return DelegationTokenRecord(
        wanted.owner,
        wanted.requester,
        wanted.renewers,
        now_ms,
        max_ms,
        min(max_ms, now_ms + rules.expiry_time_ms),
        token_id,
    )


def renew(
    image: ClusterImage, rules: Rules, proof: bytes, who: str, period_ms: int, now_ms: int
) -> DelegationTokenRecord:
    """Return the renewed token (core G.12.3).

    Raises:
        KafkaError: DELEGATION_TOKEN_NOT_FOUND, DELEGATION_TOKEN_EXPIRED, DELEGATION_TOKEN_OWNER_MISMATCH.
    """
    token = _find(image, rules, proof)
    # Expired before foreign, the reverse of `expire`: core G.12.3 has 66 before 63, core G.12.4 63 before 66.
    _check_alive(token, now_ms)
    _check_theirs(token, who)
    period_ms = min(rules.expiry_time_ms, period_ms) if period_ms > 0 else rules.expiry_time_ms
    return replace(token, expiration_timestamp_ms=min(token.max_timestamp_ms, now_ms + period_ms))


def expire(
    image: ClusterImage, rules: Rules, proof: bytes, who: str, period_ms: int, now_ms: int
) -> DelegationTokenRecord | RemoveDelegationTokenRecord:
    """Return the token with a new expiry, or its removal (core G.12.4). Raises as :func:`renew`."""
    token = _find(image, rules, proof)
    _check_theirs(token, who)
    if period_ms < 0:
        return RemoveDelegationTokenRecord(token.token_id)
    _check_alive(token, now_ms)
    return replace(token, expiration_timestamp_ms=min(token.max_timestamp_ms, now_ms + period_ms))


def expired(image: ClusterImage, now_ms: int) -> list[RemoveDelegationTokenRecord]:
    """Return the removals of expired tokens."""
    late = (token for token in _all(image) if token.expiration_timestamp_ms < now_ms)
    return [RemoveDelegationTokenRecord(token.token_id) for token in late]


def owned(image: ClusterImage, owners: Iterable[str] | None) -> list[DelegationTokenRecord]:
    """Return the tokens that these principals own, requested or may renew, or all tokens (TokenInformation)."""
    wanted = None if owners is None else frozenset(owners)
    return [token for token in _all(image) if wanted is None or not wanted.isdisjoint(_people(token))]


def is_theirs(token: DelegationTokenRecord, who: str) -> bool:
    """Return whether a principal owns the token, requested it, or may renew it."""
    return who in _people(token)


def _people(token: DelegationTokenRecord) -> tuple[str, ...]:
    return token.owner, token.requester, *token.renewers


def _all(image: ClusterImage) -> Iterator[DelegationTokenRecord]:
    yield from image.tokens.values()


def _find(image: ClusterImage, rules: Rules, proof: bytes) -> DelegationTokenRecord:
    for token in _all(image):
        if hmac.compare_digest(rules.hmac(token.token_id), proof):
            return token
    raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)


def _check_alive(token: DelegationTokenRecord, now_ms: int) -> None:
    if now_ms > token.max_timestamp_ms or now_ms > token.expiration_timestamp_ms:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)


def _check_theirs(token: DelegationTokenRecord, who: str) -> None:
    """Raise DELEGATION_TOKEN_OWNER_MISMATCH unless the principal is owner or renewer; a requester is not (KIP-373)."""
    if who not in (token.owner, *token.renewers):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
