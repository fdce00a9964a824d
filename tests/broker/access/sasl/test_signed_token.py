"""Signed tokens: which are accepted, and where the keys come from."""

import asyncio
import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pytest

from broker.access.sasl.exchange import Identity
from broker.access.sasl.key_set import MISSING_MS, KeySet
from broker.access.sasl.signed_token import Demands, SignedTokenExchange, demands_of
from broker.settings import BrokerSettings
from tests.broker.access.sasl.issuer import Issuer

NOW_MS = 1_000_000_000
REFRESH_MS = 3_600_000
GOOD: dict[str, Any] = {
    "sub": "alice", "iss": "https://issuer.example", "aud": ["other", "kafka"], "scope": "kafka",
    "iat": 999_990, "exp": 1_000_060,
}  # fmt: skip
INVALID = b'{"status":"invalid_token"}'
DEMANDS = Demands("", REFRESH_MS, frozenset({"kafka"}), "https://issuer.example", 30_000, "scope", "sub")


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    """Keys take time to make."""
    return Issuer()


@pytest.fixture
def keys(issuer: Issuer, tmp_path: Path) -> KeySet:
    """The issuer's keys in a file."""
    (tmp_path / "keys.json").write_text(issuer.key_set())
    return KeySet((tmp_path / "keys.json").as_uri(), REFRESH_MS)


async def answered(
    token: str, keys: KeySet, demands: Demands = DEMANDS, now_ms: Callable[[], int] = lambda: NOW_MS
) -> tuple[bytes, Identity | None]:
    """The server's first token, and whose token it was."""
    exchange = SignedTokenExchange(demands, keys, now_ms)
    await exchange.prepare()
    return exchange.step(b"n,,\x01auth=Bearer " + token.encode() + b"\x01\x01"), exchange.identity


async def test_a_signed_token_names_its_subject(issuer: Issuer, keys: KeySet) -> None:
    """Until it expires; within the allowed skew also a little later."""
    assert await answered(issuer.token(GOOD), keys) == (b"", Identity("alice", 1_000_060_000))
    late = issuer.token({**GOOD, "exp": 999_971, "nbf": 1_000_029})
    assert await answered(late, keys) == (b"", Identity("alice", 999_971_000))
    renamed = DEMANDS.__class__("", REFRESH_MS, frozenset(), None, 0, "scope", "client")
    assert (await answered(issuer.token({**GOOD, "client": "bob"}), keys, renamed))[1] == Identity("bob", 1_000_060_000)


@pytest.mark.parametrize(
    "change",
    [
        {"exp": 999_970}, {"exp": None}, {"iat": None}, {"nbf": 1_000_031}, {"aud": "other"}, {"aud": None},
        {"iss": "https://other.example"}, {"iss": None}, {"sub": None}, {"sub": " "}, {"sub": 7},
        {"scope": ""}, {"scope": ["a", "a"]}, {"exp": "soon"},
    ],
)  # fmt: skip
async def test_a_wrong_claim_is_refused(issuer: Issuer, keys: KeySet, change: dict[str, Any]) -> None:
    """Each alone; without the change the token is accepted."""
    claims = {name: value for name, value in {**GOOD, **change}.items() if value is not None}
    private: Any = issuer._keys["first"]
    token = jwt.api_jws.encode(json.dumps(claims).encode(), private, "RS256", {"kid": "first"})
    assert await answered(token, keys) == (INVALID, None)


async def test_a_wrong_signature_is_refused(issuer: Issuer, keys: KeySet) -> None:
    """By another key of the same name, by a shared secret, by none, changed afterwards."""
    good = issuer.token(GOOD)
    head, claims, signature = good.split(".")
    tokens = [
        Issuer().token(GOOD),
        jwt.encode(GOOD, "x" * 32, "HS256", {"kid": "first"}),
        jwt.encode(GOOD, "", "none", {"kid": "first"}),
        f"{head}.{claims}.{signature[:-6]}AAAAAA",
        f"{head}.{claims}.",
        "nonsense",
    ]
    for token in tokens:
        assert await answered(token, keys) == (INVALID, None)
    assert (await answered(good, keys))[1] is not None


async def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    """A new key is known with the next token; a file that is damaged changes nothing."""
    issuer, path = Issuer(), tmp_path / "keys.json"
    path.write_text(issuer.key_set())
    keys = KeySet(path.as_uri(), REFRESH_MS)
    assert (await answered(issuer.token(GOOD), keys))[1] is not None
    issuer.add("second", curve=True)
    assert await answered(issuer.token(GOOD), keys) == (INVALID, None)
    path.write_text(issuer.key_set())
    assert (await answered(issuer.token(GOOD), keys))[1] is not None
    path.write_text("nonsense")
    assert (await answered(issuer.token(GOOD), keys))[1] is not None


async def test_a_url_is_asked_again_when_it_is_due_or_a_key_is_missing() -> None:
    """Once an interval; a missing key makes it due once a minute."""
    issuer, now_ms = Issuer(), NOW_MS
    with issuer.served(NOW_MS // 1000) as address:
        keys = KeySet(f"{address}/keys", REFRESH_MS)

        async def accepted() -> bool:
            return (await answered(issuer.token({**GOOD, "exp": 2_000_000}), keys, now_ms=lambda: now_ms))[
                1
            ] is not None

        assert await accepted()
        assert await accepted()
        assert len(issuer.requested_paths) == 1
        now_ms += REFRESH_MS
        assert await accepted()
        assert len(issuer.requested_paths) == 2
        issuer.add("second")
        assert [await accepted(), await accepted()] == [False, True]
        assert len(issuer.requested_paths) == 3
        stranger = Issuer()
        stranger.add("stranger")
        for _ in range(5):
            assert await answered(stranger.token(GOOD), keys, now_ms=lambda: now_ms) == (INVALID, None)
        assert len(issuer.requested_paths) == 4
        now_ms += MISSING_MS
        for _ in range(5):
            assert await answered(stranger.token(GOOD), keys, now_ms=lambda: now_ms) == (INVALID, None)
        assert len(issuer.requested_paths) == 5
    assert await accepted()


async def test_the_first_tokens_wait_for_the_same_keys() -> None:
    """All clients that come while the keys are asked for the first time are let in, and the URL is asked once."""
    issuer = Issuer()
    with issuer.served(NOW_MS // 1000) as address:
        keys = KeySet(f"{address}/keys", REFRESH_MS)
        responses = await asyncio.gather(*(answered(issuer.token(GOOD), keys) for _ in range(3)))
    assert [token for token, _ in responses] == [b""] * 3
    assert len(issuer.requested_paths) == 1


async def test_tokens_that_wait_for_keys_in_vain_are_refused() -> None:
    """Tokens that wait for keys which never come are all refused, and none hangs."""
    issuer = Issuer()
    with issuer.served(NOW_MS // 1000) as address:
        pass
    keys = KeySet(f"{address}/keys", REFRESH_MS)
    responses = await asyncio.gather(*(answered(issuer.token(GOOD), keys) for _ in range(3)))
    assert responses == [(INVALID, None)] * 3


def test_the_demands_are_those_of_the_settings() -> None:
    """Per listener and mechanism. Without Kafka's validator tokens are unsigned; without keys it is refused."""
    of = "listener.name.outside.oauthbearer"
    texts = {
        f"{of}.sasl.server.callback.handler.class":
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
        "sasl.oauthbearer.expected.audience": "kafka,other",
    }  # fmt: skip
    assert demands_of(BrokerSettings(1, texts), "INSIDE") is None
    with pytest.raises(ValueError, match=r"jwks\.endpoint\.url"):
        demands_of(BrokerSettings(1, texts), "OUTSIDE")
    texts["sasl.oauthbearer.jwks.endpoint.url"] = "file:///keys.json"
    demands = demands_of(BrokerSettings(1, texts), "OUTSIDE")
    assert demands is not None
    assert (demands.url, demands.audiences, demands.issuer) == (
        "file:///keys.json",
        frozenset({"kafka", "other"}),
        None,
    )
    assert (demands.skew_ms, demands.refresh_ms) == (30_000, REFRESH_MS)


@pytest.mark.parametrize(
    "header",
    [
        b'{"alg":["RS256"]}',
        b'{"alg":{}}',
        b'{"alg":"RS256","kid":[]}',
        b"[]",
        b'{"alg":"RS256","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
async def test_a_header_may_be_any_json(header: bytes, keys: KeySet) -> None:
    """The token is invalid, and nothing else happens."""
    token = b".".join(base64.urlsafe_b64encode(each).rstrip(b"=") for each in (header, b"{}", b"x"))
    assert await answered(token.decode(), keys) == (INVALID, None)


async def test_keys_that_are_missing_are_not_remembered_without_end(keys: KeySet) -> None:
    """Clients make up the ids: Kafka remembers sixteen, and none of more than a thousand characters."""
    await keys.refresh(NOW_MS)
    assert not any(keys.find(each, NOW_MS) for each in ("x" * 1001, *map(str, range(1000))))
    assert len(keys._missing) == 16
