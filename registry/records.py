"""Records of the topic `_schemas`: keys and values as JSON, byte for byte as Confluent's registry writes its keys.

The keys have to be the same bytes for the cleaner to find the earlier records of a version. Values may have fields
that this registry does not know; they are kept where a schema is deleted softly, and otherwise ignored.
"""

import json
from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
Rows = list[tuple[bytes, bytes | None]]
"""Records to append: key and value; without a value the key's earlier records go (a tombstone)."""
NOOP = b'{"keytype":"NOOP","magic":0}'


def compact_json(value: object) -> str:
    """JSON without blanks and without escapes that need not be, as Jackson writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _bytes(value: object) -> bytes:
    return compact_json(value).encode("utf-8", "surrogatepass")


def schema_key(subject: str, version: int) -> bytes:
    """Key of a version of a subject."""
    return _bytes({"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1})


def config_key(subject: str | None) -> bytes:
    """Key of the settings of a subject; None: of all subjects."""
    return _bytes({"keytype": "CONFIG", "subject": subject, "magic": 0})


def mode_key(subject: str | None) -> bytes:
    """Key of the mode of a subject; None: of all subjects."""
    return _bytes({"keytype": "MODE", "subject": subject, "magic": 0})


def delete_subject_key(subject: str) -> bytes:
    """Key of a subject's soft deletion."""
    return _bytes({"keytype": "DELETE_SUBJECT", "subject": subject, "magic": 0})


def context_key(context: str) -> bytes:
    """Key of a context; tenants are of Confluent's cloud."""
    return _bytes({"keytype": "CONTEXT", "tenant": "default", "context": context, "magic": 0})


def value_of(content: Mapping[str, Any]) -> bytes:
    """A value, without the fields that are None or empty."""
    return _bytes({name: value for name, value in content.items() if value not in (None, [], {})})


def parsed(data: bytes | None) -> Json | None:
    """A key or a value as an object; None where it is none."""
    if data is None:
        return None
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
