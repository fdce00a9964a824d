"""The paths in a JSON value, with their types: what the report `json-shape` counts."""

import json
from typing import Any, Final

MOST_PATHS: Final = 500
"""Of one value: objects that are used as maps have a path for every key."""
MOST_DEPTH: Final = 20
EXAMPLE: Final = 40
LEAVES: Final = "array<struct<path:string,types:array<string>,is_null:boolean,example:string>>"
"""Spark type of the answer of `json_paths`."""

Leaf = tuple[str, list[str], bool, str | None]


def json_paths(text: str | None) -> list[Leaf]:
    """Each path of a value once: its types, whether null is one of them, and one example; [] for no JSON."""
    try:
        value = json.loads(text or "")
    except (ValueError, RecursionError):
        return []
    found: dict[str, tuple[set[str], list[str]]] = {}
    _walk(value, "$", 0, found)
    return [
        (path, sorted(types), "null" in types, min(examples)[:EXAMPLE] if examples else None)
        for path, (types, examples) in found.items()
    ]


def _walk(value: Any, path: str, depth: int, found: dict[str, tuple[set[str], list[str]]]) -> None:
    if path not in found and len(found) >= MOST_PATHS:
        return
    types, examples = found.setdefault(path, (set(), []))
    types.add(_type(value))
    if depth >= MOST_DEPTH:
        return
    if isinstance(value, dict):
        for name, part in value.items():
            step = f".{name}" if name.isidentifier() else f"[{json.dumps(name, ensure_ascii=False)}]"
            _walk(part, path + step, depth + 1, found)
    elif isinstance(value, list):
        for part in value:
            _walk(part, f"{path}[]", depth + 1, found)
    elif value is not None and not examples:
        examples.append(value if isinstance(value, str) else json.dumps(value))


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
