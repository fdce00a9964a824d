"""What a listener needs before it may be opened."""

import pytest

from broker.access.sasl.mechanisms import KNOWN, offered, problem
from broker.options import OptionError, parse
from broker.settings import BrokerSettings
from understudy.serve import gather

OF = "listener.name.inside"
PLAIN = {"sasl.enabled.mechanisms": "PLAIN", f"{OF}.plain.sasl.jaas.config": 'a.B required user_alice="secret";'}


def test_a_listener_has_its_own_mechanisms() -> None:
    """A listener has the mechanisms of its own setting, else those of all listeners."""
    settings = BrokerSettings(1, {"sasl.enabled.mechanisms": "PLAIN", f"{OF}.sasl.enabled.mechanisms": "SCRAM-SHA-256"})
    assert offered(settings, "INSIDE") == ["SCRAM-SHA-256"]
    assert offered(settings, "OUTSIDE") == ["PLAIN"]
    assert problem(settings, "INSIDE") is None


def test_a_missing_setting_is_named_with_what_to_write() -> None:
    """Kerberos needs a keytab; PLAIN needs passwords; a value has to be valid."""
    answer = problem(BrokerSettings(1, {}), "INSIDE")
    assert answer is not None
    assert "GSSAPI" in answer
    assert all(name in answer for name in KNOWN)
    assert problem(BrokerSettings(1, PLAIN), "INSIDE") is None
    answer = problem(BrokerSettings(1, PLAIN), "OUTSIDE")
    assert answer is not None
    assert "listener.name.outside.plain.sasl.jaas.config=" in answer
    answer = problem(BrokerSettings(1, {**PLAIN, f"{OF}.plain.sasl.jaas.config": "a.B"}), "INSIDE")
    assert answer is not None
    assert answer.startswith(f"{OF}.plain.sasl.jaas.config is invalid: ")


def test_the_command_line_refuses_such_a_listener() -> None:
    """A listener without a usable mechanism is refused in one sentence."""
    listener = ("--listener", "SASL_PLAINTEXT://127.0.0.1:0")
    with pytest.raises(OptionError, match="GSSAPI"):
        parse(gather(listener, {}))
    options = parse(gather((*listener, "--set", "sasl.enabled.mechanisms=SCRAM-SHA-512"), {}))
    assert options.listeners[0][1].has_sasl


def test_a_listener_keeps_what_it_was_opened_with() -> None:
    """As in Kafka, no change is checked and none has an effect: a wrong one would fail each client that comes."""
    settings = BrokerSettings(1, PLAIN)
    changes = {f"{OF}.plain.sasl.jaas.config": "a.B", f"{OF}.sasl.enabled.mechanisms": "NONE,PLAIN"}
    settings.set_dynamic({}, changes)
    assert settings.value(f"{OF}.plain.sasl.jaas.config") == "a.B"
    assert (offered(settings, "INSIDE"), problem(settings, "INSIDE")) == (["PLAIN"], None)


@pytest.mark.parametrize("skew", ["x", "-1", "9" * 20, "1.5"])
def test_a_clock_skew_is_a_number(skew: str) -> None:
    """It is an option of the login module."""
    login = f'a.B required unsecuredValidatorAllowableClockSkewMs="{skew}";'
    answer = problem(
        BrokerSettings(1, {"sasl.enabled.mechanisms": "OAUTHBEARER", f"{OF}.oauthbearer.sasl.jaas.config": login}),
        "INSIDE",
    )
    assert answer is not None
    assert answer.endswith(f"needs a number of milliseconds, not {skew!r}")
