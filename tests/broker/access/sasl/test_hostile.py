"""A mechanism answers or refuses any bytes of a client."""

import base64
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.access.sasl.exchange import Exchange, Refused
from broker.access.sasl.oauthbearer import OAuthBearerExchange
from broker.access.sasl.plain import PlainExchange
from broker.access.sasl.scram import ScramExchange, credential, salted
from tests.broker.access.sasl.test_oauthbearer import GOOD, NOW_MS, message

SALT = b"salt"
STORED = credential("user", 1, SALT, salted(1, "pencil", SALT, 4096), 4096)
MAKERS: tuple[Callable[[], Exchange], ...] = (
    lambda: PlainExchange({"user": "pencil"}),
    lambda: ScramExchange(1, lambda _: STORED, lambda: "nonce"),
    lambda: OAuthBearerExchange({}, NOW_MS),
)
PIECES = st.sampled_from([
    b"n,", b"n=user,", b"user", b"r=x", b"a=user", b"c=biws,", b"r=xnonce", b",p=", b"dGVzdA==", b",", b"=2C", b"=",
    b",tokenauth=true", b"\x01auth=Bearer ", b"eyJ9.", b"\x01\x01", b"\0", b"\xff", message(GOOD),
])  # fmt: skip
TOKENS = st.one_of(st.binary(max_size=200), st.lists(PIECES, max_size=8).map(b"".join))


@pytest.mark.slow
@pytest.mark.parametrize("make", MAKERS)
@given(tokens=st.lists(TOKENS, min_size=1, max_size=3))
def test_any_bytes_are_answered_or_refused(make: Callable[[], Exchange], tokens: list[bytes]) -> None:
    """Nothing else happens, and no client authenticates without the password."""
    exchange = make()
    try:
        for token in tokens:
            assert isinstance(exchange.step(token), bytes)
            if exchange.identity is not None:
                break
    except Refused:
        pass
    known = exchange.identity is not None and not isinstance(exchange, OAuthBearerExchange)
    assert not (known and not any(b"pencil" in token for token in tokens))


@pytest.mark.parametrize("exp", ["NaN", "Infinity", "-Infinity", "1e400", "9" * 5000, "[]", "null", '"1"'])
def test_times_that_are_none(exp: str) -> None:
    """JSON as Python reads it knows more numbers than there are."""
    claims = f'{{"sub": "alice", "exp": {exp}}}'
    exchange = OAuthBearerExchange({}, NOW_MS)
    written = message(GOOD).split(b".")
    written[1] = base64.urlsafe_b64encode(claims.encode()).rstrip(b"=")
    assert exchange.step(b".".join(written)) == b'{"status":"invalid_token"}'
