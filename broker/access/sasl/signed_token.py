"""OAUTHBEARER with signed tokens (KIP-768).

Follows Kafka's `OAuthBearerValidatorCallbackHandler` and `BrokerJwtValidator`. PyJWT verifies the signature. The claims
are validated here, because they are compared with the cluster's clock.
"""

from collections.abc import Callable, Mapping
from typing import Any

from broker.access.sasl.exchange import Identity
from broker.access.sasl.key_set import KeySet
from broker.access.sasl.oauthbearer import InvalidToken, OAuthBearerExchange, principal_name, time_ms
from broker.settings import BrokerSettings
from protocol.deferred import dataclass

HANDLER = "OAuthBearerValidatorCallbackHandler"
"""The simple name of the handler class, which was in another package before 4.0."""
MECHANISM = "OAUTHBEARER"
_SETTING = "sasl.oauthbearer."
_ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})
_NO_CLAIMS: Any = {f"verify_{name}": False for name in ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")}


@dataclass(frozen=True, slots=True)
class Demands:
    """A listener's requirements on tokens."""

    url: str
    refresh_ms: int
    audiences: frozenset[str]
    issuer: str | None
    skew_ms: int
    scope_claim: str
    subject_claim: str


def demands_of(settings: BrokerSettings, listener: str) -> Demands | None:
    """Return a listener's requirements; ``None`` if its tokens are unsigned. Raises ValueError if it has no keys."""
    handler = settings.as_opened(listener, "sasl.server.callback.handler.class", MECHANISM)
    if handler is None or not str(handler).endswith(f".{HANDLER}"):
        return None

    def value(name: str) -> Any:
        return settings.as_opened(listener, _SETTING + name, MECHANISM)

    url = value("jwks.endpoint.url")
    if url is None:
        raise ValueError(f"set {_SETTING}jwks.endpoint.url to the file: or https: URL of the issuer's keys")
    return Demands(
        url=str(url),
        refresh_ms=int(value("jwks.endpoint.refresh.ms")),
        audiences=frozenset(map(str, value("expected.audience") or ())),
        issuer=value("expected.issuer"),
        skew_ms=int(value("clock.skew.seconds")) * 1000,
        scope_claim=str(value("scope.claim.name")),
        subject_claim=str(value("sub.claim.name")),
    )


class SignedTokenExchange(OAuthBearerExchange):
    """As for unsigned tokens, except for the token itself."""

    def __init__(self, demands: Demands, keys: KeySet, now_ms: Callable[[], int]) -> None:
        super().__init__({}, now_ms())
        self._demands, self._keys, self._clock_ms = demands, keys, now_ms

    async def prepare(self) -> None:
        """Load the issuer's keys if they are due."""
        await self._keys.refresh(self._clock_ms())

    def _authenticated(self, token: str) -> Identity:
        now_ms = self._clock_ms()
        return _identity(self._verified(token, now_ms), self._demands, now_ms)

    def _verified(self, token: str, now_ms: int) -> Mapping[str, Any]:
        """Return the claims of a token with a valid signature. Raises InvalidToken."""
        import jwt  # noqa: PLC0415 - optional, and slow to import

        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            raise InvalidToken from None
        algorithm, key_id = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in _ALGORITHMS:
            raise InvalidToken
        for key in self._keys.find(key_id, now_ms):
            if key.get("alg", algorithm) != algorithm:
                continue
            try:
                claims: Mapping[str, Any] = jwt.decode(
                    token, jwt.PyJWK(dict(key), algorithm), algorithms=[algorithm], options=_NO_CLAIMS
                )
            except (jwt.PyJWTError, ValueError, RecursionError):
                continue
            return claims
        raise InvalidToken


def _identity(claims: Mapping[str, Any], demands: Demands, now_ms: int) -> Identity:
    """Validate the claims (jose4j's checks, then those of `BrokerJwtValidator`). Raises InvalidToken."""
    expires_ms, issued_ms, not_before_ms = (time_ms(claims, name) for name in ("exp", "iat", "nbf"))
    if expires_ms is None or issued_ms is None or now_ms - demands.skew_ms >= expires_ms:
        raise InvalidToken
    if not_before_ms is not None and now_ms + demands.skew_ms < not_before_ms:
        raise InvalidToken
    audience = claims.get("aud", ())
    audiences = [audience] if isinstance(audience, str) else audience if isinstance(audience, list) else []
    if demands.audiences and not any(accepted in audiences for accepted in demands.audiences):
        raise InvalidToken
    if demands.issuer is not None and claims.get("iss") != demands.issuer:
        raise InvalidToken
    _check_scopes(claims.get(demands.scope_claim))
    return Identity(principal_name(claims, demands.subject_claim).strip(), expires_ms)


def _check_scopes(claim: Any) -> None:
    """Check that scopes are strings, none of them empty or repeated (`ClaimValidationUtils.validateScopes`)."""
    scopes = [claim] if isinstance(claim, str) else claim if isinstance(claim, list) else []
    stripped = [scope.strip() if isinstance(scope, str) else "" for scope in scopes]
    if not all(stripped) or len(set(stripped)) < len(stripped):
        raise InvalidToken
