"""Inspects values for the reports: their kind, the paths and types of JSON, keys as text.

Both engines call these functions, with bytes or null.
"""

import json
from typing import Any, Final, NoReturn

from pipeline.values.texts import sound

MOST_PATHS: Final = 500
"""Maximum paths of one value: objects that are used as maps have a path for every key.

Arbitrary, more than a type has fields.
"""
MOST_DEPTH: Final = 20
"""Depth from which values are summarized, as a self-reference has no end: ours, deeper than types are."""
EXAMPLE: Final = 40  # characters, so that a path and its example fit on a line
EXAMPLE_OF_A_KEY: Final = 60  # characters: keys are short, and a line has space for so many
_REGISTRY_HEAD: Final = 5
"""A zero byte and the schema id, as the serializers of schema registries write them."""
LEAVES: Final = "array<struct<path:string,types:array<string>,is_null:boolean,example:string>>"
"""Spark type of the result of `json_paths`."""

STRUCTS: Final = "STRUCT(path VARCHAR, types VARCHAR[], is_null BOOLEAN, example VARCHAR)[]"
"""The same type in DuckDB."""

Leaf = tuple[str, list[str], bool, str | None]


def value_kind(value: bytes | None) -> str:
    """Return whether a record's value is JSON, text, bytes, or in a schema registry's format."""
    if value is None:
        return "null"
    if not value:
        return "empty"
    if value[:1] == b"\0" and len(value) > _REGISTRY_HEAD:
        return "schema registry"
    try:
        document = json.loads(bytes(value).decode(), parse_constant=_no_number)
    except UnicodeDecodeError:
        return "binary"
    except (ValueError, RecursionError):
        return "text"
    return (
        "JSON object" if isinstance(document, dict) else "JSON array" if isinstance(document, list) else "JSON scalar"
    )


def _no_number(name: str) -> NoReturn:
    """Reject NaN and infinities, which JSON does not have."""
    raise ValueError(name)


def schema_number(value: bytes | None) -> str | None:
    """Return the id of the schema that a value was written with; None if it has none."""
    if value_kind(value) != "schema registry":
        return None
    return str(int.from_bytes(bytes(value or b"")[1:_REGISTRY_HEAD]))


def shown_bytes(key: bytes | None) -> str | None:
    """Return a key as text, or as X'...'; at most 60 characters."""
    if key is None:
        return None
    try:
        return bytes(key).decode()[:EXAMPLE_OF_A_KEY]
    except UnicodeDecodeError:
        return f"X'{bytes(key).hex().upper()[:EXAMPLE_OF_A_KEY]}'"


def json_paths(text: bytes | str | None) -> list[Leaf]:
    """Return each path of a value once: its types, whether it may be null, and an example; [] if it is not JSON."""
    try:
        value = json.loads(text if isinstance(text, str) else bytes(text or b"").decode())
    except (ValueError, RecursionError):  # includes UnicodeDecodeError
        return []
    kinds_by_path: dict[str, tuple[set[str], list[str]]] = {}
    _walk(value, "$", 0, kinds_by_path)
    return [
        (path, sorted(types), "null" in types, min(examples)[:EXAMPLE] if examples else None)
        for path, (types, examples) in kinds_by_path.items()
    ]


def _walk(value: Any, path: str, depth: int, kinds_by_path: dict[str, tuple[set[str], list[str]]]) -> None:
    if path not in kinds_by_path and len(kinds_by_path) >= MOST_PATHS:
        return
    types, examples = kinds_by_path.setdefault(path, (set(), []))
    types.add(_type(value))
    if depth >= MOST_DEPTH:
        return
    if isinstance(value, dict):
        for name, part in value.items():
            step = f".{name}" if name.isidentifier() else f"[{json.dumps(sound(name), ensure_ascii=False)}]"
            _walk(part, path + step, depth + 1, kinds_by_path)
    elif isinstance(value, list):
        for part in value:
            _walk(part, f"{path}[]", depth + 1, kinds_by_path)
    elif value is not None and not examples:
        examples.append(sound(value) if isinstance(value, str) else json.dumps(value))


def _type(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"
