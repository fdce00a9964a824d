"""The listeners with TLS and SASL of the exam's cluster, and the matching fields for drivers."""

import base64
import json
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

USER: Final = "alice"
PASSWORD: Final = "secret"  # noqa: S105 - of a cluster on this machine
SESSION_MS: Final = 3_000
"""connections.max.reauth.ms of the listener SESSIONS. Kafka rejects re-authentication within a second.

Ours, so that two end within a case.
"""
CERTIFICATES: Final = Path(__file__).with_name("certificates")
"""A CA and broker certificates, valid until 2120 except one. The keys are not secret."""
AUTHORITY: Final = str(CERTIFICATES / "authority.pem")
PASSWORDS, SESSIONS, CERTIFIED = "PASSWORDS", "SESSIONS", "CERTIFIED"
OTHER_HOST, EXPIRED, UNKNOWN_AUTHORITY = "OTHERHOST", "EXPIRED", "STRANGER"
KEYSTORES: Final = MappingProxyType(
    {
        CERTIFIED: "broker.pem",
        OTHER_HOST: "other-host.pem",
        EXPIRED: "expired.pem",
        UNKNOWN_AUTHORITY: "unknown-authority.pem",
    }
)
MODULES: Final = "org.apache.kafka.common.security"


def listeners() -> list[str]:
    """Return the additional listeners of each broker."""
    return [
        *(f"{name}://127.0.0.1:0,protocol=SASL_PLAINTEXT" for name in (PASSWORDS, SESSIONS)),
        *(f"{name}://127.0.0.1:0,protocol=SSL" for name in KEYSTORES),
    ]


def users() -> list[str]:
    """Return users of SCRAM, as `--add-scram` takes them."""
    return [f"SCRAM-SHA-{size}=[name={USER},password={PASSWORD}]" for size in (256, 512)]


def settings() -> dict[str, object]:
    """Return the brokers' settings for these listeners."""
    broker_settings: dict[str, object] = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,OAUTHBEARER",
        f"listener.name.{SESSIONS.lower()}.plain.connections.max.reauth.ms": SESSION_MS,
    }
    for name in (PASSWORDS, SESSIONS):
        prefix = f"listener.name.{name.lower()}"
        plain = f'{MODULES}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
        broker_settings[f"{prefix}.plain.sasl.jaas.config"] = plain
        bearer = f"{MODULES}.oauthbearer.OAuthBearerLoginModule required;"
        broker_settings[f"{prefix}.oauthbearer.sasl.jaas.config"] = bearer
    for name, file in KEYSTORES.items():
        broker_settings[f"listener.name.{name.lower()}.ssl.keystore.type"] = "PEM"
        broker_settings[f"listener.name.{name.lower()}.ssl.keystore.location"] = str(CERTIFICATES / file)
    return broker_settings


def password(mechanism: str, *, secret: str = PASSWORD, listener: str = PASSWORDS) -> Mapping[str, Any]:
    """Return the options of a producer or consumer that authenticates with a password."""
    return {"listener": listener, "sasl_mechanism": mechanism, "sasl_username": USER, "sasl_password": secret}


def bearer(*, lifetime_s: int) -> Mapping[str, Any]:
    """Return the options for an unsigned token with this lifetime; negative: it has expired."""
    now = int(time.time())
    # Issued an hour ago: before the end of a token that has expired for half an hour.
    return {"listener": PASSWORDS, "sasl_mechanism": "OAUTHBEARER", "sasl_token": token(now + lifetime_s, now - 3_600)}


def token(expires: int, issued: int) -> str:
    """Return an unsecured JSON web token, with an empty signature."""
    parts = ({"alg": "none"}, {"sub": USER, "iat": issued, "exp": expires})
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    return ".".join([*encoded, ""])


def tls(listener: str = CERTIFIED) -> Mapping[str, Any]:
    """Return the options for TLS that trusts only the exam's CA."""
    return {"listener": listener, "tls_ca": AUTHORITY}
