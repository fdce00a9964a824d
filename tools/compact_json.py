"""How committed JSON is written: an entry a line, so that a change of one entry changes one line."""

import json
from typing import Any


def dumps(value: Any, depth: int = 1) -> str:
    """JSON text whose containers have a line for each item, down to `depth` levels; what is deeper is on one line.

    The order of keys is kept, and so is text outside ASCII. The text ends with a newline.
    """
    return _text(value, depth, "") + "\n"


def _text(value: Any, depth: int, indent: str) -> str:
    if not depth or not value or not isinstance(value, dict | list | tuple):
        return json.dumps(value, ensure_ascii=False)
    inner = indent + " "
    if isinstance(value, dict):
        items = [
            f"{json.dumps(key, ensure_ascii=False)}: {_text(each, depth - 1, inner)}" for key, each in value.items()
        ]
        start, end = "{}"
    else:
        items = [_text(each, depth - 1, inner) for each in value]
        start, end = "[]"
    return start + "\n" + ",\n".join(inner + item for item in items) + f"\n{indent}{end}"
