"""Reads request bodies and query strings into their TypedDicts; every error message suggests a correction.

The messages name the unit of a duration, the field that was probably meant, the object that a misplaced field belongs
to, and an example of a valid value, which a generic JSON library cannot do.
"""

import base64
import json
import re
from collections.abc import Generator, Mapping
from typing import Any

from control_api.fields import NO_DEFAULT, About, Field, Kind, fields_of
from control_api.spelling import suggestion

Place = tuple[str, ...]
"""The path of a value. Names of settings and of message fields contain dots, so it is not a dotted string."""
_STEP = 64
"""The number of elements of a long list that are read in one step: few, as each may be a large object."""
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


class Unfit(ValueError):
    """An invalid body or query; ``field`` is the place of the error, such as ``match.topic``."""

    def __init__(self, detail: str, field: str) -> None:
        super().__init__(detail)
        self.detail, self.field = detail, field


def read_body(cls: Any, document: Mapping[str, Any]) -> dict[str, Any]:
    """Read a body as its TypedDict, with defaults set. Raises Unfit."""
    return _object(Kind(cls), document, ())


def read_body_in_steps(cls: Any, document: Mapping[str, Any]) -> Generator[None, None, dict[str, Any]]:
    """Read a body like `read_body`, in steps over its long lists. Raises Unfit."""
    fields = fields_of(cls)
    long = {
        name: value
        for name, value in document.items()
        if isinstance(value, list) and len(value) > _STEP and name in fields and _is_plain_list(fields[name].kind)
    }
    body = read_body(cls, {**document, **{name: value[:_STEP] for name, value in long.items()}})
    for name, value in long.items():
        inner = fields[name].kind.inner[0]
        for at in range(_STEP, len(value)):
            if not at % _STEP:
                yield
            body[name].append(_element(inner, value[at], (name,), at))
    return body


def _is_plain_list(kind: Kind) -> bool:
    return kind.is_list and not (kind.is_pair or kind.is_object or kind.choices)


def read_query(cls: Any, query: Mapping[str, str]) -> dict[str, Any]:
    """Read a query string as its TypedDict, with defaults set. Raises Unfit."""
    fields = {} if cls is None else fields_of(cls)
    for name in query:
        if name not in fields:
            raise Unfit(f"unknown parameter {name!r}; known parameters: {', '.join(fields) or 'none'}", name)
    values = {name: _parameter(fields[name], text) for name, text in query.items()}
    return {**_defaults(fields), **values}


def check_no_body(document: Mapping[str, Any]) -> None:
    """Raise Unfit if a body was sent to a verb without one."""
    for name in document:
        raise Unfit(f"unknown field {name!r}; this request takes no fields", name)


def must_be(field: Field, value: Any, where: str) -> Unfit:
    """Build the error for a value that the types alone cannot reject."""
    return _unfit(field.kind, value, tuple(where.split(".")))


# --- objects ---------------------------------------------------------------------------------------------------------


def _object(kind: Kind, document: Any, where: Place) -> dict[str, Any]:
    if not isinstance(document, Mapping):
        raise _unfit(kind, document, where)
    fields = fields_of(kind.type)
    spread = next((field for field in fields.values() if field.about.spread), None)
    values: dict[str, Any] = _defaults(fields)
    for name, value in document.items():
        place = (*where, name)
        if spread is not None and (name not in fields or name == spread.name):
            values.setdefault(spread.name, {})[name] = _value(spread.kind.inner[1], value, place)
        elif name in fields:
            values[name] = _value(fields[name].kind, value, place)
        else:
            raise _unknown(fields, name, value, where)
    for field in fields.values():
        if field.required and field.name not in values:
            raise _missing(field, where)
    _check_one(kind, fields, document, where)
    return values


def _defaults(fields: Mapping[str, Field]) -> dict[str, Any]:
    return {name: field.about.default for name, field in fields.items() if field.about.default is not NO_DEFAULT}


def _check_one(kind: Kind, fields: Mapping[str, Field], document: Mapping[str, Any], where: Place) -> None:
    """Check `About.one` and `About.goes_with` of an object's fields."""
    alone = [field.name for field in fields.values() if not field.about.goes_with]
    present = [name for name in alone if name in document]
    if kind.about.one and len(present) != 1:
        what = " and ".join(present) or "none"
        raise Unfit(f"{_text(where)!r} needs exactly one of {', '.join(alone)}; it has {what}", _text(where))
    for field in fields.values():
        if field.about.goes_with and field.name in document and field.about.goes_with not in document:
            raise Unfit(f"{field.name!r} goes with {field.about.goes_with!r} only", _text((*where, field.name)))


def _unknown(fields: Mapping[str, Field], name: str, value: Any, where: Place) -> Unfit:
    if where:
        return Unfit(f"{_text(where)!r} has no {name!r}{suggestion(name, fields)}", _text((*where, name)))
    for field in fields.values():
        if field.kind.is_object and name in fields_of(field.kind.type):
            return Unfit(f"{name!r} goes into {field.name!r}: {json.dumps({field.name: {name: value}})}", name)
    return Unfit(f"unknown field {name!r}; known fields: {', '.join(fields)}", name)


def _missing(field: Field, where: Place) -> Unfit:
    such = field.about.such
    what = _phrase(field.kind, field.name) if such is None else f"such as {json.dumps(such)}"
    needs = f'{repr(_text(where)) if where else "the body"} needs "{field.name}", {what}'
    return Unfit(needs, _text((*where, field.name)))


def _text(where: Place) -> str:
    return ".".join(where)


# --- values ----------------------------------------------------------------------------------------------------------


def _value(kind: Kind, value: Any, where: Place) -> Any:
    """Check and convert a value of the body."""
    if kind.type is Any or (value is None and kind.nullable):
        return value
    if kind.is_object:
        return _object(kind, value, where)
    if kind.choices:
        return _choice(kind, value, where)
    if kind.type is bytes:
        return _bytes(kind, value, where)
    if kind.is_pair:
        return _pair(kind, value, where)
    if kind.is_list:
        return _list(kind, value, where)
    if kind.is_mapping:
        return _mapping(kind, value, where)
    return _scalar(kind, value, where)


def _choice(kind: Kind, value: Any, where: Place) -> Any:
    if not any(type(value) is type(choice) and value == choice for choice in kind.choices):  # 1 is not True
        raise _unfit(kind, value, where)
    return value


def _list(kind: Kind, value: Any, where: Place) -> list[Any]:
    if not isinstance(value, list) or len(value) < (kind.about.least or 0):
        raise _unfit(kind, value, where)
    return [_element(kind.inner[0], element, where, at) for at, element in enumerate(value)]


def _mapping(kind: Kind, value: Any, where: Place) -> dict[str, Any]:
    if not isinstance(value, Mapping) or len(value) < (kind.about.least or 0):
        raise _unfit(kind, value, where)
    return {name: _value(kind.inner[1], element, (*where, name)) for name, element in value.items()}


def _element(kind: Kind, value: Any, where: Place, at: int) -> Any:
    if kind.choices and value not in kind.choices:
        raise Unfit(f"{where[-1]!r} cannot contain {value!r}{suggestion(str(value), kind.choices)}", _text(where))
    return _value(kind, value, (*where, str(at)))


def _pair(kind: Kind, value: Any, where: Place) -> tuple[Any, ...]:
    """Read an array of fixed length; an error in it is reported for the whole array."""
    if not isinstance(value, list) or len(value) != len(kind.inner):
        raise _unfit(kind, value, where)
    try:
        return tuple(_value(inner, element, where) for inner, element in zip(kind.inner, value, strict=True))
    except Unfit:
        raise _unfit(kind, value, where) from None


def _scalar(kind: Kind, value: Any, where: Place) -> Any:
    wanted = (int, float) if kind.type is float else kind.type
    if not isinstance(value, wanted) or (isinstance(value, bool) and kind.type is not bool):
        raise _unfit(kind, value, where)
    size, about = len(value) if isinstance(value, str) else value, kind.about
    if about.least is not None and size < about.least:
        raise _unfit(kind, value, where)
    if about.above is not None and not size > about.above:
        raise _unfit(kind, value, where)
    if about.most is not None and size > about.most:
        raise _too_much(about, value, where)
    return float(value) if kind.type is float else value


def _bytes(kind: Kind, value: Any, where: Place) -> bytes:
    """Read bytes: a string is UTF-8, other bytes are base64."""
    try:
        return value.encode() if isinstance(value, str) else base64.b64decode(value["base64"], validate=True)
    except (KeyError, TypeError, ValueError):
        raise _unfit(kind, value, where) from None


def _parameter(field: Field, text: str) -> Any:
    """Read a value of the query string, which has strings only."""
    if field.kind.type is bool:
        if text.lower() not in ("true", "false"):
            raise Unfit(f"{field.name!r} must be true or false, not {text!r}", field.name)
        return text.lower() == "true"
    if field.kind.type is not int:
        return _value(field.kind, text, (field.name,))
    try:
        value = int(text)
    except ValueError:
        raise Unfit(f"{field.name!r} must be a whole number, not {text!r}", field.name) from None
    if not -(2**63) <= value < 2**63:
        raise Unfit(f"{field.name!r} must be a whole number of at most 64 bits", field.name)
    return _value(field.kind, value, (field.name,))


# --- sentences -------------------------------------------------------------------------------------------------------


def _unfit(kind: Kind, value: Any, where: Place) -> Unfit:
    name, field = _text(where) if kind.is_object else where[-1], _text(where)
    if kind.choices and kind.choices != (True,):
        return Unfit(f"{name!r} is {_listed(kind.choices)}, not {value!r}", field)
    such = "" if kind.about.such is None else f", such as {json.dumps(kind.about.such)}"
    verb = "can only be" if kind.choices else "needs" if kind.type is bytes else "must be"
    return Unfit(f"{name!r} {verb} {_phrase(kind, name)}{such}, not {value!r}{_meant(kind, name, value)}", field)


def _phrase(kind: Kind, name: str) -> str:
    """Describe a valid value."""
    about = kind.about
    if about.like:
        return about.like
    if kind.choices:
        return "true" if kind.choices == (True,) else f"which is {_listed(kind.choices)}"
    if kind.type is float:
        return f"above {about.above} and at most {about.most}"
    if kind.type is int:
        least = "" if about.least is None else f" of at least {about.least}"
        return f"a whole number{least}{', in milliseconds' if _is_duration(name) else ''}"
    if kind.type is bytes:
        return 'a text, null or {"base64": "..."}'
    if kind.is_object or kind.is_mapping:
        return "an object"
    return "a list" if kind.is_list else "a text"


def _listed(choices: tuple[Any, ...]) -> str:
    *others, last = choices
    return f"{', '.join(others)} or {last}" if others else str(last)


def _is_duration(name: str) -> bool:
    return name == "ms" or (name.endswith("_ms") and name != "timestamp_ms")


def _meant(kind: Kind, name: str, value: Any) -> str:
    """Suggest a correction: the milliseconds of a duration with a unit, the string of a number."""
    if kind.type is str and isinstance(value, int | float):
        return f": write it as a text, {json.dumps(str(value))}"
    if kind.type is not int or not _is_duration(name) or not isinstance(value, str):
        return ""
    match = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,15})?)\s*([a-z]+)\s*", value)
    return f": write {round(float(match[1]) * _UNITS_MS[match[2]])}" if match and match[2] in _UNITS_MS else ""


def _too_much(about: About, value: Any, where: Place) -> Unfit:
    if about.like:
        return Unfit(f"{where[-1]!r} must be {about.like}, not {value!r}", _text(where))
    return Unfit(f"{where[-1]!r} must be at most {about.most}, not {value}", _text(where))
