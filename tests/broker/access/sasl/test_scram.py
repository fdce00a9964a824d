"""SCRAM against the examples of the RFCs."""

import base64

import pytest

from broker.access.sasl.exchange import Identity, Refused
from broker.access.sasl.scram import ScramExchange, Token, credential, salted
from protocol.log_records.metadata_security import UserScramCredentialRecord

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
CHALLENGE = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
FINAL = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SIGNATURE = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def stored(user: str = "user", iterations: int = 4096) -> UserScramCredentialRecord:
    """RFC 7677's user with the password "pencil"."""
    return credential(user, 1, SALT, salted(1, "pencil", SALT, iterations), iterations)


def exchange(**known: UserScramCredentialRecord) -> ScramExchange:
    """One that knows these users, with the RFC's nonce."""
    return ScramExchange(1, known.get, lambda: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")


def test_the_example_of_rfc_7677() -> None:
    """The exchange of RFC 7677 is reproduced byte by byte."""
    scram = exchange(user=stored())
    assert scram.step(FIRST) == CHALLENGE
    assert scram.identity is None
    assert scram.step(FINAL) == SIGNATURE
    assert scram.identity == Identity("user")


@pytest.mark.parametrize(
    "final",
    [
        FINAL.replace(b"dHz", b"dHy"),  # another proof
        FINAL.replace(b"r=rOpr", b"r=rOps"),  # another nonce
        FINAL.replace(b"p=dHzb", b"p=d"),  # no base64
        FINAL.replace(b"AndVQ=", b"AndVQA="),  # a byte more than the proof
        FINAL[:-48],
        b"",
        b"\xff",
    ],
)
def test_a_proof_that_proves_nothing(final: bytes) -> None:
    """A wrong proof of the password is refused without a reason, and gives no identity."""
    scram = exchange(user=stored())
    scram.step(FIRST)
    with pytest.raises(Refused) as refused:
        scram.step(final)
    assert (refused.value.message, scram.identity) == (None, None)


def test_names_are_unescaped() -> None:
    """=2C is a comma, =3D an equals sign."""
    scram = exchange(**{"a,b=c": stored("a,b=c")})
    assert scram.step(b"n,,n=a=2Cb=3Dc,r=x").startswith(b"r=x%hv")


def test_an_authorization_id_has_to_be_the_user_s() -> None:
    """Another one is refused; the same one goes on."""
    assert exchange(user=stored()).step(b"n,a=user,n=user,r=x").startswith(b"r=x")
    with pytest.raises(Refused) as refused:
        exchange(user=stored()).step(b"n,a=other,n=user,r=x")
    assert refused.value.message is not None


def test_too_few_iterations_are_not_taken() -> None:
    """Fewer iterations than the mechanism demands are refused, however they came to be stored."""
    with pytest.raises(Refused):
        exchange(user=stored(iterations=4095)).step(FIRST)


def test_a_token_is_looked_up_instead_of_a_user() -> None:
    """Its extension makes the name a token id; other extensions are ignored."""
    first = FIRST + b",tokenauth=true"
    assert exchange(user=stored()).step(FIRST + b",other=x").startswith(b"r=")
    with pytest.raises(Refused):
        exchange(user=stored()).step(first)
    tokens = {"user": Token("alice", b"proof", 7)}
    assert ScramExchange(1, lambda _: None, lambda: "n", tokens.get).step(first).endswith(b"i=4096")
