"""Values of JSON compared as JSON has them, by their texts: 1 is 1.0, and true is not 1, as it is in Python.

jsonschema compares each element of a list with each other one where Python cannot sort them: a schema of a megabyte
would keep a core busy for hours.
"""

import json
from collections.abc import Iterator
from typing import Any

from jsonschema.exceptions import ValidationError


def text_of(value: Any) -> str:
    """A text that equal values have in common, and no others."""
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return {name: _plain(each) for name, each in value.items()} if isinstance(value, dict) else value


def unique_items(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """The keyword `uniqueItems`, as a function for the validators of jsonschema."""
    del validator, schema
    if wanted and isinstance(instance, list) and len({text_of(each) for each in instance}) < len(instance):
        yield ValidationError("its elements are not unique")
