"""The secrets, by field of a message and by setting, that journal, capture, logs and errors must hide.

Settings are secret by their type, as in Kafka's ConfigDef (Password). A name that is in no table may be secret too, as
in Kafka, which reports settings of unknown type as sensitive.
"""

from typing import Final

from broker.settings.model import ConfigType
from broker.settings.names import base_name, broker_row
from broker.settings.tables import BROKER, CLIENT_METRICS, GROUP, TOPIC

FIELDS: Final = frozenset({"auth_bytes", "salt", "salted_password", "hmac"})
"""Secret fields of messages: SASL tokens, SCRAM credentials, HMACs of delegation tokens."""
REMOVED_PASSWORDS: Final = frozenset(
    {
        "delegation.token.master.key",
        "password.encoder.old.secret",
        "password.encoder.secret",
        "zookeeper.ssl.keystore.password",
        "zookeeper.ssl.truststore.password",
    }
)
"""Password settings of older releases."""
HIDDEN: Final = "[hidden]"
"""The replacement for a secret value (Kafka: Password.HIDDEN)."""


def is_password(name: str) -> bool:
    """Whether a broker setting has the type Password, with or without a listener prefix."""
    row = BROKER.get(base_name(name))
    return name in REMOVED_PASSWORDS or (row is not None and row.type is ConfigType.PASSWORD)


def may_be_secret(name: str) -> bool:
    """Whether the value of any resource's setting must be hidden: it is a password, or unknown."""
    if name in TOPIC or name in GROUP or name in CLIENT_METRICS:
        return False
    row = broker_row(name)
    return row is None or row.sensitive


def shown_value(name: str, value: str) -> str:
    """Return a setting's value for a message, hidden if it is a password."""
    return HIDDEN if is_password(name) else value
