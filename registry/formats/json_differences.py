"""Incompatible changes of a JSON Schema: those with which it rejects documents that the earlier schema allowed.

The rules and the names of changes are those of Confluent's `json-schema-provider`. A new property is compatible in a
closed object, and incompatible in an open one, which allowed anything under that name.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import re2
from referencing.exceptions import Unresolvable

from registry.errors import InvalidSchema
from registry.formats.json_values import text_of

_COMBINED = ("allOf", "anyOf", "oneOf")
_IMPLIED = {
    "object": {"properties", "required", "additionalProperties", "patternProperties", "minProperties",
               "maxProperties", "propertyNames", "dependencies"},
    "array": {"items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"},
    "string": {"minLength", "maxLength", "pattern"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
}  # fmt: skip
"""Keywords -> type of a schema that has them, but no `type`."""
_MOST_REFERENCES = 100  # followed in turn: a circle of references has no end; ours, no schema has so many
_MOST_PAIRS = 20_000
"""Most comparisons of two schemas; schemas that share many parts by reference would take forever.

Ours, far more than schemas have that share nothing.
"""


class Difference(NamedTuple):
    """An incompatible change, and its path."""

    kind: str
    path: str

    @property
    def text(self) -> str:
        """The change in one sentence."""
        return f"{self.kind.replace('_', ' ').lower()} at {self.path}"


@dataclass(frozen=True, slots=True)
class Located:
    """A schema, and the resolver of its references."""

    schema: Any
    resolver: Any

    def inside(self, schema: Any) -> "Located":
        """Return a part of the schema."""
        return Located(schema, self.resolver)

    def target(self) -> "Located":
        """Resolve its reference, if it is one. Raises InvalidSchema for an unresolvable or circular reference."""
        here = self
        for _ in range(_MOST_REFERENCES):
            if not isinstance(here.schema, dict) or not isinstance(here.schema.get("$ref"), str):
                return here
            try:
                resolved = here.resolver.lookup(here.schema["$ref"])
            # A pointer into a number, or to an index that a list does not have; an invalid URI.
            except (Unresolvable, ValueError, TypeError) as error:
                raise InvalidSchema(f"unresolvable reference {here.schema['$ref']}") from error
            here = Located(resolved.contents, resolved.resolver)
        raise InvalidSchema("its references are circular")

    def check_references(self) -> None:
        """Resolve the references of this document. Raises InvalidSchema."""
        waiting = [self.schema]
        while waiting:
            here = waiting.pop()
            if isinstance(here, dict):
                if isinstance(here.get("$ref"), str) and here["$ref"].startswith("#"):
                    self.inside(here).target()
                waiting += here.values()
            elif isinstance(here, list):
                waiting += here


class Node(NamedTuple):
    """Normalized schema: its kind, its keywords, and the schemas that it combines."""

    kind: str
    keywords: Mapping[str, Any]
    parts: Sequence[Located] = ()


def node_of(located: Located) -> Node:
    """Normalize a schema: a type, `enum`, `not`, a combination, `empty` (allows all) or `false` (allows nothing)."""
    schema = located.schema
    if not isinstance(schema, dict):
        return Node("empty" if schema is not False else "false", {})
    meanings = list(_meanings(schema))
    if not meanings:
        return Node("empty", schema)
    if len(meanings) > 1:
        return Node("allOf", schema, [located.inside(meaning) for meaning in meanings])
    (only,) = meanings
    for kind in _COMBINED:
        if kind in only:
            return Node(kind, only, [located.inside(part) for part in only[kind]])
    if "not" in only:
        return Node("not", only, [located.inside(only["not"])])
    if "enum" in only or "const" in only:
        return Node("enum", only)
    return Node(only["type"], only)


def _meanings(schema: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Split a schema into its parts: for its types, for its values, and each combination."""
    rest = {name: value for name, value in schema.items() if name not in {*_COMBINED, "not", "enum", "const", "type"}}
    types = schema.get("type")
    if isinstance(types, str):
        yield {**rest, "type": types}
    elif isinstance(types, list):
        yield {
            "anyOf": [{**rest, "type": type_name} if isinstance(type_name, str) else type_name for type_name in types]
        }  # draft 3
    else:
        implied = [kind for kind, names in _IMPLIED.items() if names & rest.keys()]
        if implied:
            yield {**rest, "type": implied[0]}
    for name in ("enum", "const", "not", *_COMBINED):
        if name in schema:
            yield {name: schema[name]}


class Comparison:
    """One comparison of two schemas; pairs that were compared already count as compatible, which ends recursion."""

    def __init__(self) -> None:
        self._entered: set[tuple[int, int]] = set()
        self._kept: list[object] = []
        self._pairs = 0
        self._trail: list[tuple[int, int]] = []
        """Pairs that were entered, in order; those of a failed attempt are removed again."""

    def breaks(self, original: Located, update: Located, path: str) -> list[Difference]:
        """List the incompatible changes from an earlier schema to a later one."""
        original, update = original.target(), update.target()
        self._pairs += 1
        if self._pairs > _MOST_PAIRS:
            raise InvalidSchema("it combines too many schemas to be compared")
        pair = id(original.schema), id(update.schema)
        if pair in self._entered:
            return []
        self._entered.add(pair)
        self._trail.append(pair)
        self._kept += (original.schema, update.schema)  # kept, so that no other object gets their identities meanwhile
        before, after = node_of(original), node_of(update)
        if before.kind == "false" or after.kind == "empty":
            return []
        if before.kind not in _COMBINED and after.kind in _COMBINED:
            if len(after.parts) == 1 or after.kind != "allOf":
                tried = (self._aside(original, part, path) for part in after.parts)
                if any(not changes for changes in tried):
                    return []
        elif before.kind in _COMBINED and after.kind not in _COMBINED and len(before.parts) == 1:
            return self.breaks(before.parts[0], update, path)
        return self._same_kind(original, before, update, after, path)

    def _aside(self, original: Located, update: Located, path: str) -> list[Difference]:
        """Compare as one of several alternatives, whose pairs do not count as compared if it fails."""
        before = len(self._trail)
        changes = self.breaks(original, update, path)
        if changes:
            self._entered.difference_update(self._trail[before:])
            del self._trail[before:]
        return changes

    def _same_kind(self, original: Located, before: Node, update: Located, after: Node, path: str) -> list[Difference]:
        if before.kind in _COMBINED and after.kind in _COMBINED:
            return self._combined(before, after, path)
        if before.kind != after.kind:
            if {before.kind, after.kind} == {"integer", "number"}:
                numbers = limits(before.keywords, after.keywords, path, _NUMBERS)
                return numbers if after.kind == "number" else [Difference("TYPE_NARROWED", path), *numbers]
            return [Difference("TYPE_CHANGED", path)]
        if before.kind == "enum":
            return _enums(before.keywords, after.keywords, path)
        if before.kind == "not":
            reverse = self._aside(after.parts[0], before.parts[0], path)
            return [Difference("NOT_TYPE_EXTENDED", path)] if reverse else []
        if before.kind == "object":
            return [*self._objects(original, before, update, after, path)]
        if before.kind == "array":
            return [*self._arrays(original, before, update, after, path)]
        table = {"string": _STRINGS, "number": _NUMBERS, "integer": _NUMBERS}.get(before.kind, ())
        return limits(before.keywords, after.keywords, path, table)

    def _combined(self, before: Node, after: Node, path: str) -> list[Difference]:
        alone, still_alone = len(before.parts) == 1, len(after.parts) == 1
        allowed = after.kind in {before.kind, "anyOf"} or (alone and (after.kind == "oneOf" or still_alone))
        if not allowed:
            return [Difference("COMBINED_TYPE_CHANGED", path)]
        if after.kind == "allOf" and len(after.parts) > len(before.parts):
            return [Difference("PRODUCT_TYPE_EXTENDED", path)]
        if after.kind != "allOf" and len(after.parts) < len(before.parts):
            return [Difference("SUM_TYPE_NARROWED", path)]
        fits = [[at for at, each in enumerate(after.parts) if not self._aside(one, each, path)] for one in before.parts]
        if _matched(fits) < min(len(before.parts), len(after.parts)):
            return [Difference("COMBINED_TYPE_SUBSCHEMAS_CHANGED", path)]
        return []

    # --- objects -----------------------------------------------------------------------------------------------------

    def _objects(
        self, original: Located, before: Node, update: Located, after: Node, path: str
    ) -> Iterator[Difference]:
        yield from limits(before.keywords, after.keywords, path, _OBJECTS)
        old, new = before.keywords.get("properties") or {}, after.keywords.get("properties") or {}
        was, needed = _required(before.keywords), _required(after.keywords)
        for name in dict.fromkeys([*old, *new]):
            here = f"{path}/properties/{name}"
            if name in old and name in new:
                if name in needed and name not in was and not _has_default(new[name]):
                    yield Difference("REQUIRED_ATTRIBUTE_ADDED", f"{path}/required/{name}")
                yield from self.breaks(original.inside(old[name]), update.inside(new[name]), here)
            elif name in old:
                yield from self._removed(original.inside(old[name]), name, update.inside(after.keywords), here)
            else:
                yield from self._added(original.inside(before.keywords), name, update.inside(new[name]), here)
                if not is_open(before.keywords) and name in needed and not _has_default(new[name]):
                    yield Difference("REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", here)
        yield from self._dependencies(original, before, update, after, f"{path}/dependencies")
        yield from self._additional(original, before, update, after, f"{path}/additionalProperties")

    def _removed(self, old: Located, name: str, update: Located, path: str) -> list[Difference]:
        """Check a removed property: its values must be allowed by the later schema's rules for other names."""
        if is_open(update.schema):
            return []
        covered = covering(update.schema, name)
        if covered is None or covered is False:
            return [] if old.schema is False else [Difference("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)]
        changes = self._aside(old, update.inside(covered), path)
        return (
            [*changes, Difference("PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)]
            if changes
            else []
        )

    def _added(self, original: Located, name: str, new: Located, path: str) -> list[Difference]:
        """Check an added property: the earlier schema may have allowed other values under its name."""
        if is_open(original.schema):
            harmless = node_of(new.target()).kind == "empty"
            return [] if harmless else [Difference("PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", path)]
        covered = covering(original.schema, name)
        if covered is None or covered is False:
            return []
        changes = self._aside(original.inside(covered), new, path)
        return (
            [*changes, Difference("PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)]
            if changes
            else []
        )

    def _dependencies(
        self, original: Located, before: Node, update: Located, after: Node, path: str
    ) -> Iterator[Difference]:
        """Check dependencies of a property: other required properties, or a schema (drafts 4 to 7)."""
        old, new = (node.keywords.get("dependencies") or {} for node in (before, after))
        for name, now in new.items():
            was, here = old.get(name), f"{path}/{name}"
            if isinstance(now, list) and isinstance(was, list):
                if not set(now) <= set(was):
                    kind = "DEPENDENCY_ARRAY_EXTENDED" if set(now) >= set(was) else "DEPENDENCY_ARRAY_CHANGED"
                    yield Difference(kind, here)
            elif isinstance(now, list):
                yield Difference("DEPENDENCY_ARRAY_ADDED", here)
            elif isinstance(now, dict | bool) and not isinstance(was, dict | bool):
                yield Difference("DEPENDENCY_SCHEMA_ADDED", here)
            elif isinstance(now, dict | bool):
                yield from self.breaks(original.inside(was), update.inside(now), here)

    def _additional(self, original: Located, before: Node, update: Located, after: Node, path: str) -> list[Difference]:
        old, new = before.keywords.get("additionalProperties", True), after.keywords.get("additionalProperties", True)
        if new is True or old is False:
            return []
        if new is False:
            return [Difference("ADDITIONAL_PROPERTIES_REMOVED", path)]
        if old is True:
            return [Difference("ADDITIONAL_PROPERTIES_NARROWED", path)]
        return self.breaks(original.inside(old), update.inside(new), path)

    # --- arrays ------------------------------------------------------------------------------------------------------

    def _arrays(self, original: Located, before: Node, update: Located, after: Node, path: str) -> Iterator[Difference]:
        yield from limits(before.keywords, after.keywords, path, _ARRAYS)
        if after.keywords.get("uniqueItems") and not before.keywords.get("uniqueItems"):
            yield Difference("UNIQUE_ITEMS_ADDED", path)
        old, old_rest = _items(before.keywords)
        new, new_rest = _items(after.keywords)
        for at in range(max(len(old), len(new))):
            one, other = (old[at] if at < len(old) else old_rest), (new[at] if at < len(new) else new_rest)
            yield from self.breaks(original.inside(one), update.inside(other), f"{path}/items/{at}")
        yield from self.breaks(original.inside(old_rest), update.inside(new_rest), f"{path}/items")


def differences(original: Located, update: Located) -> list[Difference]:
    """List the incompatible changes from an earlier schema to a later one."""
    return Comparison().breaks(original, update, "#")


# --- keywords --------------------------------------------------------------------------------------------------------

_STRINGS = (("maxLength", 1), ("minLength", -1), ("pattern", 0))
_NUMBERS = (("maximum", 1), ("minimum", -1), ("exclusiveMaximum", 1), ("exclusiveMinimum", -1), ("multipleOf", 2))
_OBJECTS = (("maxProperties", 1), ("minProperties", -1))
_ARRAYS = (("maxItems", 1), ("minItems", -1))
_NAMES = {"maxLength": "MAX_LENGTH", "minLength": "MIN_LENGTH", "exclusiveMaximum": "EXCLUSIVE_MAXIMUM",
          "exclusiveMinimum": "EXCLUSIVE_MINIMUM", "multipleOf": "MULTIPLE_OF", "maxProperties": "MAX_PROPERTIES",
          "minProperties": "MIN_PROPERTIES", "maxItems": "MAX_ITEMS", "minItems": "MIN_ITEMS"}  # fmt: skip


def limits(
    before: Mapping[str, Any], after: Mapping[str, Any], path: str, table: Sequence[tuple[str, int]]
) -> list[Difference]:
    """List new or narrower limits. By direction, wider is 1: a larger value, -1: a smaller, 2: a divisor, 0: none."""
    changes = []
    for name, direction in table:
        old, new, text = before.get(name), after.get(name), _NAMES.get(name, name.upper())
        if new is None or new == old:
            continue
        if old is None:
            changes.append(Difference(f"{text}_ADDED", f"{path}/{name}"))
        elif direction == 0 or isinstance(old, bool) or isinstance(new, bool):
            changes.append(Difference(f"{text}_CHANGED", f"{path}/{name}"))
        elif direction == 2:
            if old % new:
                changes.append(Difference("MULTIPLE_OF_CHANGED", f"{path}/{name}"))
        elif (new - old) * direction < 0:
            change = "DECREASED" if direction == 1 else "INCREASED"
            changes.append(Difference(f"{text}_{change}", f"{path}/{name}"))
    return changes


def is_open(keywords: Mapping[str, Any]) -> bool:
    """Whether an object may have any other property."""
    return not keywords.get("patternProperties") and keywords.get("additionalProperties", True) in ({}, True)


def covering(keywords: Mapping[str, Any], name: str) -> Any:
    """Return the schema for a property that is not listed; None if there is none."""
    for pattern, schema in (keywords.get("patternProperties") or {}).items():
        try:
            if re2.search(pattern, name):
                return schema
        except re2.error:
            continue
    additional = keywords.get("additionalProperties")
    return None if additional is True else additional


def _items(keywords: Mapping[str, Any]) -> tuple[Sequence[Any], Any]:
    """Return the schemas of the first items, and the schema of the others."""
    items = keywords.get("items", True)
    if isinstance(items, list):
        return items, keywords.get("additionalItems", True)
    return keywords.get("prefixItems") or (), items


def _enums(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> list[Difference]:
    old, new = ({text_of(one) for one in keywords.get("enum", [keywords.get("const")])} for keywords in (before, after))
    if old <= new:
        return []
    kind = "ENUM_ARRAY_NARROWED" if new <= old else "ENUM_ARRAY_CHANGED"
    return [Difference(kind, f"{path}/enum")]


def _required(keywords: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of required properties; in draft 3 the property itself has the keyword."""
    required = keywords.get("required")
    return frozenset(name for name in required if isinstance(name, str)) if isinstance(required, list) else frozenset()


def _has_default(schema: Any) -> bool:
    return isinstance(schema, dict) and "default" in schema


def _matched(fits: Sequence[Sequence[int]]) -> int:
    """Return the size of a maximum matching (augmenting paths)."""
    partner: dict[int, int] = {}

    def placed(one: int, tried: set[int]) -> bool:
        for at in fits[one]:
            if at not in tried:
                tried.add(at)
                if at not in partner or placed(partner[at], tried):
                    partner[at] = one
                    return True
        return False

    return sum(placed(one, set()) for one in range(len(fits)))
