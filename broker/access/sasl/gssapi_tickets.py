"""GSSAPI: Kerberos tickets (RFC 4752; Java's ``GssKrb5Server`` and Kafka's ``SaslServerAuthenticator``, core G.3).

The broker needs a keytab, but no connection to the KDC. Imported only if a listener offers GSSAPI.
"""

from collections.abc import Mapping

import gssapi
from gssapi.raw.misc import GSSError

from broker.access.sasl.exchange import Identity, Refused
from broker.access.sasl.kerberos import KerberosNames, NoRule

_NO_LAYER = 1
_OFFER = bytes([_NO_LAYER, 0, 0, 0])
"""Offers authentication only, so the maximum size of wrapped messages is 0."""


class GssapiExchange:
    """The client's ticket, an offer of no security layer, and the client's choice."""

    def __init__(self, options: Mapping[str, str], names: KerberosNames) -> None:
        self._options, self._names = options, names
        self._context: gssapi.SecurityContext | None = None
        self._offered = False
        self.identity: Identity | None = None

    def step(self, token: bytes) -> bytes:
        """See :class:`~broker.access.sasl.exchange.Exchange`."""
        try:
            return self._step(token)
        except GSSError as error:
            raise Refused from error

    def _step(self, token: bytes) -> bytes:
        if self._context is None:
            self._context = gssapi.SecurityContext(creds=credentials(self._options), usage="accept")
        if not self._context.complete:
            answer = self._context.step(token)
            if answer or not self._context.complete:
                return bytes(answer or b"")
        elif self._offered:
            self._consent(self._context, token)
            return b""
        self._offered = True
        return bytes(self._context.wrap(_OFFER, encrypt=False).message)

    def _consent(self, context: gssapi.SecurityContext, token: bytes) -> None:
        """Check the client's choice of security layer; like Kafka, ignore the authorization id in it."""
        chosen = context.unwrap(token).message
        if len(chosen) < len(_OFFER) or chosen[0] != _NO_LAYER:
            raise Refused
        try:
            self.identity = Identity(self._names.short_name(str(context.initiator_name)))
        except NoRule as error:
            raise Refused from error


class NoKeys(Exception):
    """The broker has no keys; the message is one sentence."""


def check(options: Mapping[str, str]) -> None:
    """Raise NoKeys if the login module's options lead to no keys."""
    try:
        credentials(options)
    except GSSError as error:
        raise NoKeys(f"no keys of {options.get('principal', 'the broker')} found: {error.gen_message()}") from error


def credentials(options: Mapping[str, str]) -> gssapi.Credentials:
    """Return the broker's keys, by the options of its login module. Raises GSSError if there are none."""
    name = None
    if principal := options.get("principal"):
        name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
    store: dict[bytes | str, bytes | str] | None = {"keytab": options["keyTab"]} if "keyTab" in options else None
    return gssapi.Credentials(name=name, usage="accept", store=store)


def default_realm() -> str:
    """Return the default realm of the machine's `krb5.conf`; empty if it has none."""
    try:
        name = gssapi.Name("any", gssapi.NameType.kerberos_principal).canonicalize(gssapi.MechType.kerberos)
    except GSSError:
        return ""
    return str(name).partition("@")[2]
