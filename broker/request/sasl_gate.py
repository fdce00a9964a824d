"""The requests that a SASL connection may send, by state: Kafka's ``SaslServerAuthenticator`` (core G.2, G.5).

The gate keeps the state and decides; requests pass the dispatcher and its handlers like all others, so that the journal
has them and faults can match them.
"""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from broker.access.sasl import mechanisms
from broker.access.sasl.exchange import Exchange, Refused
from broker.access.sasl.mechanisms import Credentials
from broker.access.sasl.signed_token import SignedTokenExchange
from broker.request.answers import Disconnect
from broker.settings import BrokerSettings
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.java import HashMap

LEAST_BETWEEN_MS = 1000  # between the beginnings of two re-authentications (core G.5.1)


def _as_user(name: str, _mechanism: str) -> str:
    """Return the principal of a user (DefaultKafkaPrincipalBuilder)."""
    return f"User:{name}"


class State(Enum):
    """The authentication state of a connection."""

    NEW = "new"
    VERSIONS_SENT = "versions sent"
    RAW = "tokens in frames of their own"
    TOKENS = "tokens in SaslAuthenticate"
    READY = "ready"
    OVER = "over"
    """Refused; the connection is closed after the response."""


class Passed(NamedTuple):
    """The response to a token."""

    token: bytes
    lifetime_ms: int


class Gate:
    """The gate of one connection. Time, nonces and credentials come from :class:`Credentials`.

    ``build`` makes a principal of a user's name and the mechanism, or fails with KafkaError.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        listener: str,
        credentials: Credentials,
        build: Callable[[str, str], str] = _as_user,
    ) -> None:
        self._settings, self._listener, self._credentials, self._build = settings, listener, credentials, build
        self.state = State.NEW
        self.principal: str | None = None
        self.refusal: KafkaError | None = None
        """The error for the request that :meth:`admit` has just admitted; the connection is closed after it."""
        self.by_token = False
        self._exchange: Exchange | None = None
        self._mechanism = ""
        self._expires_at_ms: int | None = None
        self._again_since_ms: int | None = None  # when the latest re-authentication began
        self._other_mechanism = False

    @property
    def expects_token(self) -> bool:
        """Whether the next frame is a token without Kafka's headers."""
        return self.state is State.RAW

    @property
    def ready(self) -> bool:
        """Whether the client has authenticated at least once; from then on the usual request size limit applies."""
        return self.principal is not None

    # --- what may come -----------------------------------------------------------------------------------------------

    def admit(self, key: int) -> None:
        """Check a request before its version is; one that gets only an error sets :attr:`refusal`.

        Raises:
            Disconnect: it is not answered at all.
        """
        match self.state:
            case State.READY:
                if key != ApiKey.SASL_HANDSHAKE and self._expired():
                    raise Disconnect("its authentication has expired")
            case State.NEW | State.VERSIONS_SENT:
                # A second ApiVersions after a successful one closes the connection (core G.2 S1).
                allowed = {ApiKey.SASL_HANDSHAKE}
                if self.state is State.NEW:
                    allowed.add(ApiKey.API_VERSIONS)
                if key not in allowed:
                    raise Disconnect("a request before authentication")
            case State.TOKENS:
                if self._other_mechanism:
                    raise Disconnect("re-authentication by another mechanism")
                # Only here a wrong request gets an error; in other states the connection just closes (core G.2 S5).
                if key != ApiKey.SASL_AUTHENTICATE:
                    self.state = State.OVER
                    self.refusal = KafkaError(ErrorCode.ILLEGAL_SASL_STATE)
            case _:
                raise Disconnect("a request after a failed authentication")

    def _expired(self) -> bool:
        return self._expires_at_ms is not None and self._credentials.now_ms() >= self._expires_at_ms

    def versions_sent(self) -> None:
        """Note that ApiVersions was answered without an error."""
        if self.state is State.NEW:
            self.state = State.VERSIONS_SENT

    # --- SaslHandshake -----------------------------------------------------------------------------------------------

    def handshake(self, mechanism: str, version: int) -> list[str]:
        """Choose a mechanism; return those on offer, in the iteration order of a Java set.

        After version 0, tokens come without Kafka's headers.

        Raises:
            KafkaError: ILLEGAL_SASL_STATE if no (re-)authentication is due.
        """
        now_ms = self._credentials.now_ms()
        if self.ready:
            recent = self._again_since_ms is not None and now_ms - self._again_since_ms < LEAST_BETWEEN_MS
            if self._expires_at_ms is None or recent:
                raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE)
            self._again_since_ms = now_ms
        names = list(HashMap((name, None) for name in mechanisms.offered(self._settings, self._listener)))
        if mechanism not in names:
            self.state = State.OVER
            return names
        if self.ready:
            # Quirk: the handshake is answered, and the connection closed at the next frame (core G.5.3).
            self._other_mechanism = mechanism != self._mechanism
        self._mechanism = mechanism
        self._exchange = mechanisms.begin(mechanism, self._settings, self._listener, self._credentials)
        self.state = State.RAW if version == 0 else State.TOKENS
        return names

    async def prepare(self) -> None:
        """Load what the mechanism needs for its next token."""
        if isinstance(self._exchange, SignedTokenExchange):
            await self._exchange.prepare()

    # --- tokens ------------------------------------------------------------------------------------------------------

    def token(self, token: bytes) -> Passed:
        """Process a token and return the response.

        Raises:
            KafkaError: SASL_AUTHENTICATION_FAILED, with a message for the client; the connection is to be closed.
        """
        exchange = self._exchange
        assert exchange is not None
        try:
            answer = exchange.step(token)
            if exchange.identity is None:
                return Passed(answer, 0)
            try:
                principal = self._build(exchange.identity.name, self._mechanism)
            except KafkaError:  # Kafka calls the builder at the next request, and closes the connection then
                self.state = State.OVER
                return Passed(answer, 0)
            self._complete(principal)
            self.by_token = exchange.identity.by_token
        except Refused as refused:
            self.state = State.OVER
            raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, refused.message or self._generic()) from None
        return Passed(answer, self._lifetime(exchange.identity.expires_at_ms))

    def _generic(self) -> str:
        what = "re-authentication" if self.ready else "authentication"
        return f"Authentication failed during {what} due to invalid credentials with SASL mechanism {self._mechanism}"

    def _complete(self, principal: str) -> None:
        if self.principal not in (None, principal):
            before, now = (str(name).replace(":", ".", 1) for name in (self.principal, principal))
            raise Refused(f"Cannot change principals during re-authentication from {before}: {now}")
        self.principal, self.state, self._exchange = principal, State.READY, None

    def _lifetime(self, expires_at_ms: int | None) -> int:
        """Return the session lifetime in ms: the shorter of the credential's and the listener's.

        0: unlimited, or the credential has already expired (quirk: SaslServerAuthenticator accepts it, core G.4.7).
        """
        now_ms = self._credentials.now_ms()
        most = self._settings.as_opened(self._listener, "connections.max.reauth.ms", self._mechanism)
        lifetimes = [int(str(most))] if int(str(most)) > 0 else []
        if expires_at_ms is not None:
            lifetimes.append(max(expires_at_ms - now_ms, 0))
        lifetime_ms = min(lifetimes, default=0)
        self._expires_at_ms = now_ms + lifetime_ms if lifetimes else None
        return lifetime_ms
