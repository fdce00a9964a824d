"""SCRAM users of `--add-scram`, which a cluster has from the start, like ``kafka-storage format --add-scram``.

    SCRAM-SHA-256=[name=alice,password=secret]
    SCRAM-SHA-512=[name=alice,iterations=8192,salt="c2FsdA==",saltedpassword="..."]

Follows Kafka's ``ScramParser``, including its handling of blanks and quotes. The password is hashed and not kept.
"""

import base64
import binascii

from broker.access.sasl.scram import credential, salted
from broker.coordination.metadata.scram import LEAST_ITERATIONS, MECHANISMS, MOST_ITERATIONS
from broker.options.values import OptionError, integer
from broker.time.rng import unguessable
from protocol.log_records.metadata_security import UserScramCredentialRecord

_OPTION = "--add-scram"
_SHAPE = "SCRAM-SHA-256=[name=USER,password=PASSWORD]"
_KNOWN = ("iterations", "name", "password", "salt", "saltedpassword")
_SALT_BYTES = 20  # as many as a salt of ScramFormatter has (160 bits)


def scram_user(text: str) -> UserScramCredentialRecord:
    """Parse one user's credential for one mechanism. Error messages never repeat a possible password."""
    name, mark, config = text.strip().partition("=")
    if not mark or not config.startswith("[") or not config.endswith("]"):
        raise OptionError(f"{_OPTION} needs {_SHAPE}")
    if name not in MECHANISMS:
        raise OptionError(f"{_OPTION} has no mechanism {name}: there are {' and '.join(MECHANISMS)}")
    components = _components(config[1:-1])
    if not components.get("name"):
        raise OptionError(f"{_OPTION} needs name=USER")
    if not components.get("password") and "saltedpassword" not in components:
        raise OptionError(f"{_OPTION} needs password=PASSWORD, or saltedpassword and salt in base64")
    if "password" not in components and "salt" not in components:
        raise OptionError(f"{_OPTION} needs the salt of a saltedpassword")
    iterations = integer(
        components.get("iterations", str(LEAST_ITERATIONS)), f"{_OPTION} iterations", LEAST_ITERATIONS, MOST_ITERATIONS
    )
    mechanism = MECHANISMS[name]
    salt = (
        _bytes(components, "salt")
        if "salt" in components
        else unguessable(8 * _SALT_BYTES).to_bytes(_SALT_BYTES, "big")
    )
    if "password" in components:
        hashed = salted(mechanism, components["password"], salt, iterations)
    else:
        hashed = _bytes(components, "saltedpassword")
    return credential(components["name"], mechanism, salt, hashed, iterations)


def _components(text: str) -> dict[str, str]:
    components: dict[str, str] = {}
    for part in text.split(","):
        name, mark, value = part.partition("=")
        if not mark:
            raise OptionError(f"{_OPTION} needs KEY=VALUE separated by commas; a password cannot have commas")
        if name not in _KNOWN:
            raise OptionError(f"{_OPTION} knows {', '.join(_KNOWN)}, without blanks, not {name!r}")
        quoted = len(value) >= 2 and value[0] == value[-1] == '"'
        components[name] = value[1:-1] if quoted else value
    return components


def _bytes(components: dict[str, str], name: str) -> bytes:
    try:
        decoded = base64.b64decode(components[name], validate=True)
    except binascii.Error:
        decoded = b""
    if not decoded:
        raise OptionError(f"{_OPTION} needs {name} in base64")
    return decoded
