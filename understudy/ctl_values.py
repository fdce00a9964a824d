"""Converts command-line arguments to values of a verb's parameters, by the parameter's kind."""

import json
import re
import shlex
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping
from typing import Any

from control_api.fields import fields_of
from control_api.parameters import Parameter
from control_api.spelling import hint

UNITS_MS = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
FORMS = {
    "ms": "milliseconds, or 90s, 15m, 2h, 7d",
    "ints": "such as 1,2",
    "maybe": "or null",
    "names": "repeatable",
    "pairs": "KEY=VALUE,..., or JSON",
    "json": "as JSON",
}
"""Kind -> its notation, if it is not obvious."""


def reader(parameter: Parameter) -> Callable[[str], Any]:
    """Return the converter of the parameter's text; it raises ArgumentTypeError."""
    read = READERS.get(parameter.kind)
    if parameter.field.kind.is_pair:
        return lambda text: pair(parameter, text)
    if read is not None:
        return read
    return lambda text: compound(parameter, text)


def duration_ms(text: str) -> int:
    """Parse milliseconds, or a number with its unit: 250ms, 90s, 15m, 2h, 7d."""
    match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)(ms|s|m|h|d|)", text)
    if not match:
        raise ArgumentTypeError(f"needs milliseconds, 90s, 15m, 2h or 7d, not {text!r}")
    return round(float(match[1]) * UNITS_MS[match[2]])


def whole(text: str) -> int:
    """Parse a whole number."""
    try:
        return int(text)
    except ValueError:
        raise ArgumentTypeError(f"needs a whole number, not {text!r}") from None


def fraction(text: str) -> float:
    """Parse a number."""
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"needs a number, not {text!r}") from None


def perhaps(text: str) -> int | None:
    """Parse a whole number or null."""
    if text.lower() in {"null", "none"}:
        return None
    try:
        return int(text)
    except ValueError:
        raise ArgumentTypeError(f"needs a whole number or null, not {text!r}") from None


def numbers(text: str) -> list[int]:
    """Parse whole numbers: 1,2 or [1, 2]."""
    inner = text.strip().removeprefix("[").removesuffix("]").strip()
    try:
        return [int(number) for number in inner.split(",")] if inner else []
    except ValueError:
        raise ArgumentTypeError(f"needs whole numbers such as 1,2, not {text!r}") from None


def pair(parameter: Parameter, text: str) -> list[int]:
    """Parse two whole numbers: 0,3 or [0, 3]."""
    about = parameter.field.about
    try:
        first, last = numbers(text)
    except (ArgumentTypeError, ValueError):
        such = "" if about.such is None else f", such as {','.join(map(str, about.such))}"
        form = about.like.replace("[", "").replace("]", "").replace(", ", ",")
        raise ArgumentTypeError(f"needs {form}{such}; not {text!r}") from None
    return [first, last]


def pairs(text: str) -> dict[str, Any]:
    """Parse KEY=VALUE,KEY=VALUE; a part without `=` belongs to the value before it (cleanup.policy=compact,delete).

    Also an object as JSON, whose values may be null and contain commas; the server checks it.
    """
    if text.startswith("{"):
        try:
            return dict(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise ArgumentTypeError(f"needs KEY=VALUE,... or an object as JSON, not {text!r}: {error}") from None
    values: dict[str, Any] = {}
    key = ""
    for part in text.split(",") if text else ():
        name, mark, value = part.partition("=")
        if mark:
            key, values[name.strip()] = name.strip(), value
        elif key:
            values[key] += f",{part}"
        else:
            raise ArgumentTypeError(f"needs KEY=VALUE,..., not {text!r}")
    return values


def compound(parameter: Parameter, text: str) -> Any:
    """Parse JSON; if the object has fields, one of them may be given as NAME=VALUE, such as disconnect=reset."""
    kind = parameter.field.kind
    if not kind.is_object or text.startswith("{"):
        return document(parameter, text)
    fields = fields_of(kind.type)
    name, _, value = text.partition("=")
    if name not in fields:
        raise ArgumentTypeError(f"knows {', '.join(fields)}, not {name!r}{hint(name, fields)}")
    inner = Parameter(fields[name], required=True)
    if not value and inner.kind == "flag":
        return {name: True}
    return {name: reader(inner)(value or (inner.choices[0] if inner.choices else ""))}


def document(parameter: Parameter, text: str) -> Any:
    """Parse JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        such = example(parameter) or f" ({parameter.help})"
        raise ArgumentTypeError(f"needs JSON{such}, not {text!r}: {error}") from error


def example(parameter: Parameter) -> str:
    """Return an example in JSON that can be pasted into a shell; empty if the field has none."""
    such = parameter.field.about.such
    return "" if such is None else f", such as {shlex.quote(json.dumps(such))}"


def help_of(parameter: Parameter) -> str:
    """Return a line of help, with the notation of the value."""
    form = FORMS.get(parameter.kind, "")
    if parameter.kind == "json":
        form += example(parameter)
    if parameter.field.kind.is_pair and parameter.field.about.such is not None:
        form = f"such as {','.join(map(str, parameter.field.about.such))}"
    if parameter.kind == "object":
        form = f"JSON, or one of {', '.join(f'{name}=...' for name in fields_of(parameter.field.kind.type))}"
    return f"{parameter.help} ({form})" if form else parameter.help


READERS: Mapping[str, Callable[[str], Any]] = {
    "text": str,
    "names": str,
    "int": whole,
    "maybe": perhaps,
    "ints": numbers,
    "float": fraction,
    "ms": duration_ms,
    "pairs": pairs,
}
