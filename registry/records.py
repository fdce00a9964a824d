"""Records of the topic `_schemas`: keys and values as JSON, byte for byte as Confluent's registry writes its keys.

The keys have to be the same bytes so that compaction finds the earlier records of a version. Values may have fields
that this registry does not know; a soft deletion of a schema keeps them, otherwise they are ignored.
"""

import json
from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
Rows = list[tuple[bytes, bytes | None]]
"""Records to append: key and value; a value of None is a tombstone."""
NOOP = b'{"keytype":"NOOP","magic":0}'


def compact_json(value: object) -> str:
    """Encode JSON without spaces and unnecessary escapes, as Jackson does."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _bytes(value: object) -> bytes:
    return compact_json(value).encode("utf-8", "surrogatepass")


def schema_key(subject: str, version: int) -> bytes:
    """Return the key of a version of a subject."""
    return _bytes({"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1})


def config_key(subject: str | None) -> bytes:
    """Return the key of a subject's settings; None: of the global ones."""
    return _bytes({"keytype": "CONFIG", "subject": subject, "magic": 0})


def mode_key(subject: str | None) -> bytes:
    """Return the key of a subject's mode; None: of the global one."""
    return _bytes({"keytype": "MODE", "subject": subject, "magic": 0})


def delete_subject_key(subject: str) -> bytes:
    """Return the key of a subject's soft deletion."""
    return _bytes({"keytype": "DELETE_SUBJECT", "subject": subject, "magic": 0})


def context_key(context: str) -> bytes:
    """Return the key of a context; its tenant is the default one: others exist only in Confluent's cloud."""
    return _bytes({"keytype": "CONTEXT", "tenant": "default", "context": context, "magic": 0})


def value_of(content: Mapping[str, Any]) -> bytes:
    """Encode a value without the fields that are None or empty."""
    return _bytes({name: value for name, value in content.items() if value not in (None, [], {})})


def parsed(data: bytes | None) -> Json | None:
    """Decode a key or a value as a JSON object; None if it is not one."""
    if data is None:
        return None
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
