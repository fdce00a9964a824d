"""The SASL mechanisms of a listener, and their configuration."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import Protocol

from broker.access.sasl.exchange import Exchange
from broker.access.sasl.jaas import USER, JaasError, options_of
from broker.access.sasl.kerberos import BadRule, KerberosNames
from broker.access.sasl.key_set import KeySet
from broker.access.sasl.oauthbearer import CLOCK_SKEW, OAuthBearerExchange
from broker.access.sasl.plain import PlainExchange
from broker.access.sasl.scram import ScramExchange, Token
from broker.access.sasl.signed_token import SignedTokenExchange, demands_of
from broker.coordination.metadata.scram import MECHANISMS as SCRAM
from broker.settings import BrokerSettings
from protocol.log_records.metadata_security import UserScramCredentialRecord

PLAIN, OAUTHBEARER, GSSAPI = "PLAIN", "OAUTHBEARER", "GSSAPI"
KNOWN = (PLAIN, *SCRAM, OAUTHBEARER, GSSAPI)
_ENABLED, _JAAS = "sasl.enabled.mechanisms", "sasl.jaas.config"
_NEEDS_JAAS = (PLAIN, OAUTHBEARER)
_KEYTAB = (
    "'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true "
    'keyTab="kafka.keytab" principal="kafka/HOST@REALM";\''
)


class Credentials(Protocol):
    """The credentials in the cluster's metadata, as mechanisms use them."""

    def scram(self, user: str, mechanism: int) -> UserScramCredentialRecord | None:
        """Return a user's stored credential, if there is one."""
        ...

    def token(self, token_id: str) -> Token | None:
        """Return a delegation token, if it exists."""
        ...

    def nonce(self) -> str:
        """Return an unpredictable nonce, printable and without a comma."""
        ...

    def now_ms(self) -> int:
        """Return the cluster's time in ms since 1970."""
        ...

    def keys(self, url: str, refresh_ms: int) -> KeySet:
        """Return the keys of an issuer, shared by the broker's connections."""
        ...


def offered(settings: BrokerSettings, listener: str) -> list[str]:
    """Return the mechanisms that a listener offers, in configured order."""
    written = settings.as_opened(listener, _ENABLED)
    return [str(name).upper() for name in written] if isinstance(written, list | tuple) else []


def problem(settings: BrokerSettings, listener: str) -> str | None:
    """Return why a listener cannot be opened and the remedy, in one sentence; ``None``: it can."""
    names = offered(settings, listener)
    where = f"listener.name.{listener.lower()}"
    unknown = [name for name in names if name not in KNOWN]
    if unknown or not names:
        others = ", ".join(unknown) or "nothing"
        return (
            f"listener {listener} offers {others} by {_ENABLED}, which is not supported: set it to one or more of "
            f"{', '.join(KNOWN)}"
        )
    for name in names:
        try:
            options = _options(settings, listener, name)
        except JaasError as error:
            return f"{where}.{name.lower()}.{_JAAS} is invalid: {error}"
        if name == GSSAPI and (trouble := _problem_of_tickets(settings, listener, options)) is not None:
            return trouble
        if name in _NEEDS_JAAS and options is None:
            example = _example(name)
            return f"listener {listener} offers {name} but has no users: set {where}.{name.lower()}.{_JAAS}={example}"
        if name == OAUTHBEARER and (trouble := _problem_of_tokens(settings, listener, options or {})) is not None:
            return trouble
    return None


def _problem_of_tickets(settings: BrokerSettings, listener: str, options: Mapping[str, str] | None) -> str | None:
    """Return why a listener cannot verify Kerberos tickets; ``None``: it can."""
    where = f"listener {listener} offers {GSSAPI}"
    if options is None:
        return (
            f"{where} but has no keytab: set listener.name.{listener.lower()}.gssapi.{_JAAS}={_KEYTAB}, "
            f"or set {_ENABLED} to one or more of {', '.join(KNOWN)}"
        )
    if not find_spec("gssapi"):
        return f"{where}: pip install 'understudy-kafka[gssapi]'"
    from broker.access.sasl import gssapi_tickets  # noqa: PLC0415 - few listeners offer it

    try:
        gssapi_tickets.check(options)
        _kerberos_names(settings, listener)
    except (gssapi_tickets.NoKeys, BadRule) as error:
        return f"{where}: {error}"
    return None


def _kerberos_names(settings: BrokerSettings, listener: str) -> KerberosNames:
    from broker.access.sasl.gssapi_tickets import default_realm  # noqa: PLC0415

    rules = settings.as_opened(listener, "sasl.kerberos.principal.to.local.rules")
    assert isinstance(rules, list | tuple)
    return KerberosNames([str(rule) for rule in rules], default_realm)


def _problem_of_tokens(settings: BrokerSettings, listener: str, options: Mapping[str, str]) -> str | None:
    """Return why a listener cannot verify bearer tokens, signed or not; ``None``: it can."""
    skew = options.get(CLOCK_SKEW, "")
    if not re.fullmatch(r"\s*\d{0,9}\s*", skew, re.ASCII):
        return f"listener {listener} verifies tokens: {CLOCK_SKEW} needs a number of milliseconds, not {skew!r}"
    try:
        if demands_of(settings, listener) is not None and not find_spec("jwt"):
            return f"listener {listener} verifies signed tokens: pip install 'understudy-kafka[security]'"
    except ValueError as error:
        return f"listener {listener} verifies signed tokens: {error}"
    return None


def begin(name: str, settings: BrokerSettings, listener: str, credentials: Credentials) -> Exchange:
    """Begin an authentication by one of the offered mechanisms."""
    if name in SCRAM:
        mechanism = SCRAM[name]
        find = partial(credentials.scram, mechanism=mechanism)
        return ScramExchange(mechanism, find, credentials.nonce, credentials.token)
    if name == OAUTHBEARER and (demands := demands_of(settings, listener)) is not None:
        keys = credentials.keys(demands.url, demands.refresh_ms)
        return SignedTokenExchange(demands, keys, credentials.now_ms)
    options = _options(settings, listener, name) or {}
    if name == GSSAPI:
        from broker.access.sasl.gssapi_tickets import GssapiExchange  # noqa: PLC0415

        return GssapiExchange(options, _kerberos_names(settings, listener))
    return _WITH_OPTIONS[name](options, credentials)


def _plain(options: Mapping[str, str], _credentials: Credentials) -> Exchange:
    return PlainExchange(
        {name.removeprefix(USER): password for name, password in options.items() if name.startswith(USER)}
    )


def _bearer(options: Mapping[str, str], credentials: Credentials) -> Exchange:
    return OAuthBearerExchange(options, credentials.now_ms())


_WITH_OPTIONS: Mapping[str, Callable[[Mapping[str, str], Credentials], Exchange]] = {
    PLAIN: _plain,
    OAUTHBEARER: _bearer,
}


def _options(settings: BrokerSettings, listener: str, mechanism: str) -> dict[str, str] | None:
    written = settings.as_opened(listener, _JAAS, mechanism)
    return None if written is None else options_of(str(written))


def _example(mechanism: str) -> str:
    if mechanism == PLAIN:
        return "'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice=\"secret\";'"
    return "'org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;'"
