"""Rules of Java's Avro library that Python's does not have: checks of names and defaults; an error is a record.

The aliases of a type are in its namespace, unless they have one: Python's library expects that in the document.
"""

import json
from typing import Any

from avro.schema import (
    ArraySchema,
    EnumSchema,
    ErrorUnionSchema,
    Field,
    MapSchema,
    NamedSchema,
    RecordSchema,
    UnionSchema,
)
from avro.schema import Schema as AvroSchema

from registry.errors import InvalidSchema

NAMED = {"record", "error", "enum", "fixed"}
RECORDS = {"record", "error"}
_INTS, _LONGS = range(-(2**31), 2**31), range(-(2**63), 2**63)


def full_name(name: str, space: str) -> str:
    """Return the full name of a type that is used within a namespace."""
    return name if "." in name or not space else f"{space}.{name}"


def space_of(document: dict[str, Any], space: str) -> str:
    """Return the namespace of a named type that is defined within another one."""
    name, namespace = document.get("name"), document.get("namespace", space)
    if isinstance(name, str) and "." in name:
        return name.rpartition(".")[0]
    return namespace if isinstance(namespace, str) else ""


def for_library(document: Any, space: str) -> Any:
    """Convert a document for Python's library. Errors in it stay, so that the library rejects it."""
    if isinstance(document, list):
        return [for_library(branch, space) for branch in document]
    kind = document.get("type") if isinstance(document, dict) else None
    if not isinstance(kind, str):
        return document
    copy = {**document}
    for name in ("items", "values"):
        if name in copy:
            copy[name] = for_library(copy[name], space)
    if kind in NAMED:
        namespace = space_of(document, space)
        if isinstance(document.get("aliases"), list):
            copy["aliases"] = [
                full_name(alias, namespace) if isinstance(alias, str) else alias for alias in document["aliases"]
            ]
        if kind in RECORDS:
            copy["type"] = "record"
        if isinstance(document.get("fields"), list):
            copy["fields"] = [
                {**field, "type": for_library(field["type"], namespace)}
                if isinstance(field, dict) and "type" in field
                else field
                for field in document["fields"]
            ]
    return copy


def check(schema: AvroSchema, *, defaults: bool) -> None:
    """Check the names of a schema, and with ``defaults`` whether the default values of its fields fit.

    Raises:
        InvalidSchema: Java's library would reject it.
    """
    waiting, entered, values = [schema], {id(schema)}, _Defaults()
    while waiting:
        here = waiting.pop()
        _check_names(here)
        if defaults and isinstance(here, RecordSchema):
            for field in here.fields:
                if field.has_default and not values.fits_field(field):
                    shown = json.dumps(field.default, ensure_ascii=False)
                    raise InvalidSchema(f"Invalid default for field {field.name}: {shown} not a {field.type}")
        inner = _inner(here)
        waiting += [inner_type for inner_type in inner if id(inner_type) not in entered]
        entered.update(map(id, inner))


def _inner(schema: AvroSchema) -> list[AvroSchema]:
    """Return the inner schemas of a schema. Raises InvalidSchema for a type that Java's library does not have."""
    if isinstance(schema, ErrorUnionSchema):
        raise InvalidSchema('"error_union" is no type of a schema')
    if isinstance(schema, RecordSchema):
        return [field.type for field in schema.fields]
    if isinstance(schema, UnionSchema):
        return list(schema.schemas)
    if isinstance(schema, ArraySchema):
        return [schema.items]
    return [schema.values] if isinstance(schema, MapSchema) else []


def _check_names(schema: AvroSchema) -> None:
    """Check the names of a type, its fields and its symbols. Raises InvalidSchema."""
    if isinstance(schema, NamedSchema):
        _check_name(schema.name)
        for alias in _aliases(schema):
            _check_name(alias.rpartition(".")[2])
    if isinstance(schema, EnumSchema):
        for symbol in schema.symbols:
            _check_name(symbol)
    if isinstance(schema, RecordSchema):
        for field in schema.fields:
            _check_name(field.name)
            _aliases(field)


def _check_name(name: str) -> None:
    """Check a name without a namespace. Raises InvalidSchema."""
    if not name:
        raise InvalidSchema("Empty name")
    if not (name[0].isalpha() or name[0] == "_"):
        raise InvalidSchema(f"Illegal initial character: {name}")
    if not all(character.isalpha() or character.isdecimal() or character == "_" for character in name):
        raise InvalidSchema(f"Illegal character in: {name}")


def _aliases(here: NamedSchema | Field) -> list[str]:
    """Return the aliases. Raises InvalidSchema if they are not a list of names."""
    aliases = here.props.get("aliases", [])
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        raise InvalidSchema(f"aliases of {here.name} are no list of names")
    return aliases


class _Defaults:
    """Checks default values against their types, each pair once: many branches may share their inner types."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], bool] = {}

    def fits_field(self, field: Field) -> bool:
        """Whether a field's default has its type, for a union that of the first branch. Texts may be numbers."""
        kind, value = field.type, field.default
        if kind.type in {"float", "double"} and isinstance(value, str):
            return _is_number(value)
        return self._fits(kind, value)

    def _fits(self, kind: AvroSchema, value: Any) -> bool:
        if isinstance(kind, UnionSchema):
            return bool(kind.schemas) and self._fits(kind.schemas[0], value)
        if isinstance(kind, ArraySchema):
            return isinstance(value, list) and all(self._fits(kind.items, item) for item in value)
        if isinstance(kind, MapSchema):
            return isinstance(value, dict) and all(self._fits(kind.values, item) for item in value.values())
        if not isinstance(kind, RecordSchema):
            return _is_simple(kind.type, value)
        pair = id(kind), id(value)
        if pair not in self._known:
            self._known[pair] = isinstance(value, dict) and all(self._has(value, field) for field in kind.fields)
        return self._known[pair]

    def _has(self, value: dict[str, Any], field: Field) -> bool:
        """Whether a record's default has a field's value, for a union in any branch, or the field its own default."""
        if field.name not in value:
            return bool(field.has_default)
        branches = field.type.schemas if isinstance(field.type, UnionSchema) else [field.type]
        return any(self._fits(branch, value[field.name]) for branch in branches)


def _is_simple(kind: str, value: Any) -> bool:
    """Whether a value has a type without inner types."""
    if kind in {"string", "bytes", "enum", "fixed"}:
        return isinstance(value, str)
    if kind in {"boolean", "null"}:
        return isinstance(value, bool) if kind == "boolean" else value is None
    if isinstance(value, bool):
        return False
    if kind in {"float", "double"}:
        return isinstance(value, int | float)
    return isinstance(value, int) and value in (_INTS if kind == "int" else _LONGS)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
