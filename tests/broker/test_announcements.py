"""What a server says of itself when it starts."""

from broker.endpoints import Endpoint
from broker.options import ServeOptions, not_there_yet


def test_what_has_no_effect_yet_is_said() -> None:
    """A listener that should speak TLS: in one sentence."""
    listeners = ((Endpoint("PLAINTEXT", "PLAINTEXT", "", 0), Endpoint("OUTSIDE", "SASL_SSL", "", 0)),)
    told = not_there_yet(ServeOptions(listeners=listeners))
    assert told == ["listener OUTSIDE is not encrypted: TLS is not there yet"]
    assert not_there_yet(ServeOptions()) == []
