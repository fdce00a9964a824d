"""Equality of JSON values, compared by text: 1 equals 1.0, but true does not equal 1, unlike in Python.

jsonschema compares all pairs of elements of a list that Python cannot sort: for a schema of a megabyte that would take
hours.
"""

import json
from collections.abc import Iterator
from typing import Any

from jsonschema.exceptions import ValidationError


def text_of(value: Any) -> str:
    """Return a text that is the same for equal values, and only for these."""
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return {name: _plain(each) for name, each in value.items()} if isinstance(value, dict) else value


def unique_items(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """Check the keyword `uniqueItems`, as a function of jsonschema's validators."""
    del validator, schema
    if wanted and isinstance(instance, list) and len({text_of(item) for item in instance}) < len(instance):
        yield ValidationError("its elements are not unique")
