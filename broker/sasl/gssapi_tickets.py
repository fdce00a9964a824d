"""GSSAPI: Kerberos tickets (RFC 4752; Java's ``GssKrb5Server`` and Kafka's ``SaslServerAuthenticator``, core G.3).

The broker needs a keytab, and nothing of the key distribution centre. Imported only where a listener offers GSSAPI.
"""

from collections.abc import Mapping

import gssapi
from gssapi.raw.misc import GSSError

from broker.sasl.exchange import Identity, Refused
from broker.sasl.kerberos import KerberosNames, NoRule

_NO_LAYER = 1
_OFFER = bytes([_NO_LAYER, 0, 0, 0])
"""Authentication only, so no size of wrapped messages either."""


class GssapiExchange:
    """The ticket, an offer to protect what follows by nothing, and the client's consent."""

    def __init__(self, options: Mapping[str, str], names: KerberosNames) -> None:
        self._options, self._names = options, names
        self._context: gssapi.SecurityContext | None = None
        self._offered = False
        self.identity: Identity | None = None

    def step(self, token: bytes) -> bytes:
        """See :class:`~broker.sasl.exchange.Exchange`."""
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
        """The client's choice; a name that it would rather have is ignored, as by Kafka."""
        chosen = context.unwrap(token).message
        if len(chosen) < len(_OFFER) or chosen[0] != _NO_LAYER:
            raise Refused
        try:
            self.identity = Identity(self._names.short_name(str(context.initiator_name)))
        except NoRule as error:
            raise Refused from error


class NoKeys(Exception):
    """There are no keys of the broker; the message is one sentence."""


def check(options: Mapping[str, str]) -> None:
    """Raise NoKeys where the login module's options name no keys."""
    try:
        credentials(options)
    except GSSError as error:
        raise NoKeys(f"no keys of {options.get('principal', 'the broker')} are found: {error.gen_message()}") from error


def credentials(options: Mapping[str, str]) -> gssapi.Credentials:
    """The keys of the broker, by the options of its login module. Raises GSSError where there are none."""
    name = None
    if principal := options.get("principal"):
        name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
    store: dict[bytes | str, bytes | str] | None = {"keytab": options["keyTab"]} if "keyTab" in options else None
    return gssapi.Credentials(name=name, usage="accept", store=store)


def default_realm() -> str:
    """The realm of the machine's `krb5.conf`; empty where it names none."""
    try:
        name = gssapi.Name("any", gssapi.NameType.kerberos_principal).canonicalize(gssapi.MechType.kerberos)
    except GSSError:
        return ""
    return str(name).partition("@")[2]
