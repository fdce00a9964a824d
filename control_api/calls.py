"""Formats a call of a verb for HTTP, Python and a shell; flattens its arguments."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from control_api.verb import PLACES, Verb


def arguments_of(
    verb: Verb, names: Mapping[str, str], query: Mapping[str, Any], body: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a call, under their names in the Python client and `ctl`."""
    arguments: dict[str, Any] = {name: PLACES.get(name, str)(value) for name, value in names.items()}
    arguments |= query
    named = {each.inside or each.name for each in verb.fields if not each.field.about.spread}
    for parameter in verb.fields:
        if parameter.field.about.spread:
            rest = {name: value for name, value in body.items() if name not in named}
            if rest:
                arguments[parameter.name] = rest
            continue
        place = body.get(parameter.inside, {}) if parameter.inside else body
        if isinstance(place, Mapping) and parameter.name in place:
            arguments[parameter.name] = place[parameter.name]
    return arguments


def call(verb: Verb, arguments: Mapping[str, Any]) -> tuple[str, str, str]:
    """Format a call as METHOD PATH BODY, as a Python expression, and as a command."""
    document = verb.document(arguments)
    over_http = f"{verb.method} {verb.target(arguments)}" + (f" {json.dumps(document)}" if document else "")
    return over_http, in_python(verb, arguments), in_shell(verb, arguments)


def in_python(verb: Verb, arguments: Mapping[str, Any]) -> str:
    """Format a call as a Python expression; `kafka` is the client."""
    attributes, _, rest = verb.python.partition("(")
    places = iter(verb.places)
    attributes = re.sub(r"\[\w+\]", lambda _: f"[{_literal(arguments[next(places)])}]", attributes)
    if verb.name == "versions set":
        return f"kafka.{attributes}({', '.join(_limits(arguments))})"
    if verb.name == "records write":
        return f"kafka.{attributes}({', '.join(map(_literal, arguments['records']))})"
    positional = [name for name in rest.rstrip(")").split(", ") if name in arguments]
    named = [
        parameter.name
        for parameter in verb.parameters
        if parameter.name in arguments and parameter.name not in positional
    ]
    parts = [
        *(_literal(arguments[name]) for name in positional),
        *(f"{name}={_literal(arguments[name])}" for name in named),
    ]
    return f"kafka.{attributes}({', '.join(parts)})"


def _limits(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Format the arguments of `versions.set`, where versions of APIs are pairs."""
    if "as_version" in arguments:
        yield f"as_version={_literal(arguments['as_version'])}"
    for name, limits in arguments.get("apis", {}).items():
        yield f"{name}={limits and (limits['min'], limits['max'])}"


def _literal(value: Any) -> str:
    """Format a value as a Python literal, strings in double quotes."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_literal(name)}: {_literal(element)}" for name, element in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_literal, value))}]"
    return repr(value)


def in_shell(verb: Verb, arguments: Mapping[str, Any]) -> str:
    """Format a call as a command of `understudy ctl`."""
    parts = [*verb.name.split(), *(str(arguments[name]) for name in verb.places)]
    parts += [_argument(arguments[parameter.name]) for parameter in verb.parameters if parameter.required]
    for parameter in verb.parameters:
        if not parameter.required and parameter.name in arguments:
            option = f"--{parameter.name.replace('_', '-')}"
            parts += [option] if parameter.kind == "flag" else [option, _argument(arguments[parameter.name])]
    return f"understudy ctl {shlex.join(parts)}"


def _is_one_value(value: Any) -> bool:
    """Return whether KEY=VALUE,... can hold the value: after a comma, a `=` would begin the next value."""
    return isinstance(value, str) and not any("=" in part for part in value.split(",")[1:])


def _argument(value: Any) -> str:
    """Format a value for the command line."""
    if isinstance(value, Mapping) and value and all(map(_is_one_value, value.values())):
        return ",".join(f"{name}={element}" for name, element in value.items())
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value)
    return "null" if value is None else str(value)
