"""Builds JSON schemas of requests and answers, for the ``components`` of the OpenAPI document.

An answer has all of its fields and no others. A request body has no other fields either, except names that are data.
"""

import types
from collections.abc import Mapping
from typing import Any

from control_api.fields import NO_DEFAULT, Kind, fields_of, kind_of

Schema = dict[str, Any]
_TYPES = {int: "integer", float: "number", str: "string", bool: "boolean", types.NoneType: "null"}


class Schemas:
    """Schemas by name, collected while they are referenced."""

    def __init__(self) -> None:
        self.named: dict[str, Schema] = {}
        self._types: dict[str, Any] = {}

    def answer(self, annotation: Any) -> Schema:
        """Return a reference to the schema of an answer."""
        return self._of(kind_of(annotation), complete=True)

    def body(self, annotation: Any) -> Schema:
        """Return a reference to the schema of a request body."""
        return self._of(kind_of(annotation), complete=False)

    def parameter(self, kind: Kind) -> Schema:
        """Return the schema of a query parameter."""
        return self._of(kind, complete=False)

    def _of(self, kind: Kind, *, complete: bool) -> Schema:
        schema = self._plain(kind, complete=complete)
        if kind.nullable:
            schema = {"anyOf": [schema, {"type": "null"}]}
        about = kind.about
        if about.help:
            schema = {**schema, "description": about.help}
        if about.default is not NO_DEFAULT and not complete:
            schema = {**schema, "default": about.default}
        return schema if about.such is None else {**schema, "examples": [about.such]}

    def _plain(self, kind: Kind, *, complete: bool) -> Schema:
        """Build the schema without the description of the field."""
        if kind.is_object:
            return self._reference(kind, complete=complete)
        if kind.choices:
            return {"const": kind.choices[0]} if len(kind.choices) == 1 else {"enum": list(kind.choices)}
        if kind.type is bytes:
            encoded = {"type": "object", "properties": {"base64": {"type": "string"}}, "required": ["base64"]}
            either = [{"type": "string"}, {**encoded, "additionalProperties": False}]
            return {"anyOf": either, "description": "text if it is UTF-8"}
        if kind.is_pair:
            items = [self._of(inner, complete=complete) for inner in kind.inner]
            return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
        if kind.is_list:
            return _bounded({"type": "array", "items": self._of(kind.inner[0], complete=complete)}, kind, "Items")
        if kind.is_mapping:
            return _bounded(self._mapping(kind, complete=complete), kind, "Properties")
        if kind.about.wide:
            return {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "^-?[0-9]+$"}]}
        return _bounded({"type": _TYPES[kind.type]}, kind, "Length" if kind.type is str else "imum")

    def _mapping(self, kind: Kind, *, complete: bool) -> Schema:
        if len(kind.inner) < 2 or kind.inner[1].type is Any:
            return {"type": "object"}
        return {"type": "object", "additionalProperties": self._of(kind.inner[1], complete=complete)}

    def _reference(self, kind: Kind, *, complete: bool) -> Schema:
        name = kind.type.__name__ + ("InShort" if kind.short else "")
        if name not in self.named:
            self._types[name] = kind.type
            self.named[name] = {}  # keeps the order, and ends recursion
            self.named[name] = self._object(kind, complete=complete)
        if self._types[name] is not kind.type:
            raise TypeError(f"two types are called {name}: {self._types[name]} and {kind.type}")
        reference = {"$ref": f"#/components/schemas/{name}"}
        if not kind.about.one:
            return reference
        with_others = sum(bool(field.about.goes_with) for field in fields_of(kind.type).values())
        return {**reference, "minProperties": 1, "maxProperties": 1 + with_others}

    def _object(self, kind: Kind, *, complete: bool) -> Schema:
        properties: Schema = {}
        others: Schema | bool = False
        for field in fields_of(kind.type).values():
            if field.about.spread:
                others = self._of(field.kind.inner[1], complete=complete)
            elif not (kind.short and field.about.detail):
                properties[field.name] = self._of(field.kind, complete=complete)
        # A TypedDict that is total marks its optional fields with NotRequired, so the others are required.
        all_required = complete and not getattr(kind.type, "__total__", False)
        required = [name for name in properties if all_required or fields_of(kind.type)[name].required]
        schema: Schema = {"type": "object", "description": _first_line(kind.type), "properties": properties}
        return {**schema, **({"required": required} if required else {}), "additionalProperties": others}


def _bounded(schema: Schema, kind: Kind, of: str) -> Schema:
    """Add the bounds of a number, a length or a count: minimum, minLength, minItems."""
    about = kind.about
    bounds: Mapping[str, int | None] = {
        f"min{of}": about.least,
        f"max{of}": about.most,
        "exclusiveMinimum": about.above,
    }
    return {**schema, **{name: bound for name, bound in bounds.items() if bound is not None}}


def _first_line(cls: Any) -> str:
    return (cls.__doc__ or "").strip().partition("\n")[0]
