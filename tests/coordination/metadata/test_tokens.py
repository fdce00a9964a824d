"""Delegation tokens: who may do what with one (KIP-48, KIP-373)."""

import pytest

from broker.coordination.metadata import tokens
from broker.coordination.metadata.image import ClusterImage
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.metadata import decode, encode
from protocol.log_records.metadata_security import DelegationTokenRecord

RULES = tokens.Rules("key", 1_000_000, 1000)
NOW_MS = 5_000


@pytest.mark.parametrize(
    ("who", "refused"),
    [("User:owner", False), ("User:renewer", False), ("User:requester", True), ("User:other", True)],
)
def test_owner_and_renewers_renew_and_expire_a_token(who: str, refused: bool) -> None:
    """Who requested it for another user may see it, no more (seen on 4.3.1)."""
    wanted = tokens.NewToken("User:owner", "User:requester", ("User:renewer",), -1)
    token = tokens.create(RULES, wanted, "id", NOW_MS)
    image = ClusterImage()
    image.tokens["id"] = token
    proof = RULES.hmac("id")
    if not refused:
        assert tokens.renew(image, RULES, proof, who, 500, NOW_MS).expiration_timestamp_ms == NOW_MS + 500
        tokens.expire(image, RULES, proof, who, -1, NOW_MS)
        return
    for change in (tokens.renew, tokens.expire):
        with pytest.raises(KafkaError) as raised:
            change(image, RULES, proof, who, 500, NOW_MS)
        assert raised.value.code is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert tokens.is_theirs(token, who) == (who == "User:requester")


def test_a_lifetime_without_end_can_be_written() -> None:
    """delegation.token.max.lifetime.ms may be the largest number: the token ends at the latest time there is."""
    rules = tokens.Rules("key", 2**63 - 1, 2**63 - 1)
    token = tokens.create(rules, tokens.NewToken("User:owner", "User:owner", (), -1), "id", NOW_MS)
    assert (token.max_timestamp_ms, token.expiration_timestamp_ms) == (2**63 - 1, 2**63 - 1)
    assert decode(*encode(token)) == token


@pytest.mark.parametrize(("lifetime_ms", "lives_ms"), [(1, 1), (999, 999), (1001, 1000), (0, 1000), (-1, 1000)])
def test_a_token_lives_to_its_last_millisecond(lifetime_ms: int, lives_ms: int) -> None:
    """It ends with its period or its lifetime, the earlier of both; after that it is neither renewed nor expired."""
    wanted = tokens.NewToken("User:owner", "User:owner", (), lifetime_ms)
    image = ClusterImage()
    image.tokens["id"] = token = tokens.create(RULES, wanted, "id", NOW_MS)
    assert token.expiration_timestamp_ms == NOW_MS + lives_ms
    longest_ms = NOW_MS + (lifetime_ms if lifetime_ms > 0 else RULES.max_lifetime_ms)
    for change in (tokens.renew, tokens.expire):
        changed = change(image, RULES, RULES.hmac("id"), "User:owner", 0, NOW_MS + lives_ms)
        assert isinstance(changed, DelegationTokenRecord)
        assert changed.expiration_timestamp_ms == min(
            longest_ms, NOW_MS + lives_ms + (RULES.expiry_time_ms if change is tokens.renew else 0)
        )
        with pytest.raises(KafkaError) as raised:
            change(image, RULES, RULES.hmac("id"), "User:owner", 0, NOW_MS + lives_ms + 1)
        assert raised.value.code is ErrorCode.DELEGATION_TOKEN_EXPIRED


def test_many_owners_of_many_tokens_are_found_in_one_pass() -> None:
    """Each of a hundred thousand owners was compared with each renewer of each token."""
    image = ClusterImage()
    renewers = tuple(f"User:r{number}" for number in range(20_000))
    for number in range(20):
        wanted = tokens.NewToken(f"User:{number}", "User:requester", renewers, -1)
        image.tokens[f"id{number}"] = tokens.create(RULES, wanted, f"id{number}", NOW_MS)
    strangers = [f"User:stranger{number}" for number in range(100_000)]
    assert tokens.owned(image, strangers) == []
    assert [token.token_id for token in tokens.owned(image, [*strangers, "User:7"])] == ["id7"]
    assert len(tokens.owned(image, ["User:r0"])) == 20
