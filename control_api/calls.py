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
    found: dict[str, Any] = {name: PLACES.get(name, str)(value) for name, value in names.items()}
    found |= query
    named = {each.inside or each.name for each in verb.fields if not each.field.about.spread}
    for parameter in verb.fields:
        if parameter.field.about.spread:
            rest = {name: value for name, value in body.items() if name not in named}
            if rest:
                found[parameter.name] = rest
            continue
        place = body.get(parameter.inside, {}) if parameter.inside else body
        if isinstance(place, Mapping) and parameter.name in place:
            found[parameter.name] = place[parameter.name]
    return found


def call(verb: Verb, arguments: Mapping[str, Any]) -> tuple[str, str, str]:
    """Format a call as METHOD PATH BODY, as a Python expression, and as a command."""
    given = dict(arguments)
    document = verb.document(given)
    over_http = f"{verb.method} {verb.target(given)}" + (f" {json.dumps(document)}" if document else "")
    return over_http, in_python(verb, given), in_shell(verb, given)


def in_python(verb: Verb, given: Mapping[str, Any]) -> str:
    """Format a call as a Python expression; `kafka` is the client."""
    attributes, _, rest = verb.python.partition("(")
    places = iter(verb.places)
    attributes = re.sub(r"\[\w+\]", lambda _: f"[{_literal(given[next(places)])}]", attributes)
    if verb.name == "versions set":
        return f"kafka.{attributes}({', '.join(_limits(given))})"
    if verb.name == "records write":
        return f"kafka.{attributes}({', '.join(map(_literal, given['records']))})"
    positional = [name for name in rest.rstrip(")").split(", ") if name in given]
    named = [each.name for each in verb.parameters if each.name in given and each.name not in positional]
    parts = [*(_literal(given[name]) for name in positional), *(f"{name}={_literal(given[name])}" for name in named)]
    return f"kafka.{attributes}({', '.join(parts)})"


def _limits(given: Mapping[str, Any]) -> Iterator[str]:
    """Format the arguments of `versions.set`, where versions of APIs are pairs."""
    if "as_version" in given:
        yield f"as_version={_literal(given['as_version'])}"
    for name, each in given.get("apis", {}).items():
        yield f"{name}={each and (each['min'], each['max'])}"


def _literal(value: Any) -> str:
    """Format a value as a Python literal, strings in double quotes."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_literal(name)}: {_literal(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_literal, value))}]"
    return repr(value)


def in_shell(verb: Verb, given: Mapping[str, Any]) -> str:
    """Format a call as a command of `understudy ctl`."""
    parts = [*verb.name.split(), *(str(given[name]) for name in verb.places)]
    parts += [_argument(given[each.name]) for each in verb.parameters if each.required]
    for each in verb.parameters:
        if not each.required and each.name in given:
            option = f"--{each.name.replace('_', '-')}"
            parts += [option] if each.kind == "flag" else [option, _argument(given[each.name])]
    return f"understudy ctl {shlex.join(parts)}"


def _is_one_value(value: Any) -> bool:
    """Return whether KEY=VALUE,... can hold the value: after a comma, a `=` would begin the next value."""
    return isinstance(value, str) and not any("=" in part for part in value.split(",")[1:])


def _argument(value: Any) -> str:
    """Format a value for the command line."""
    if isinstance(value, Mapping) and value and all(map(_is_one_value, value.values())):
        return ",".join(f"{name}={each}" for name, each in value.items())
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value)
    return "null" if value is None else str(value)
