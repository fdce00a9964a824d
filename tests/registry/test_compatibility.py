"""Which changes a level allows, for each format, as the registry answers them."""

from typing import Any

import pytest

from tests.registry.conftest import Rest, schema_body

A = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]}
WITH_DEFAULT = {**A, "fields": [*A["fields"], {"name": "b", "type": "int", "default": 0}]}
WITHOUT_DEFAULT = {**A, "fields": [*A["fields"], {"name": "b", "type": "int"}]}
OTHER_TYPE = {**A, "fields": [{"name": "a", "type": "int"}]}


def fits(registry: Rest, new: object, kind: str | None = None, version: str = "versions", **more: Any) -> bool:
    """Whether a schema may follow those of the subject s."""
    body = schema_body(new, kind, **more)
    status, result = registry.ask("POST", f"/compatibility/subjects/s/{version}?verbose=true", body)
    assert status == 200, result
    assert result["is_compatible"] is not bool(result["messages"])
    return bool(result["is_compatible"])


@pytest.mark.parametrize(
    ("level", "new", "allowed"),
    [
        ("NONE", OTHER_TYPE, True),
        ("BACKWARD", WITH_DEFAULT, True),
        ("BACKWARD", WITHOUT_DEFAULT, False),
        ("FORWARD", WITHOUT_DEFAULT, True),
        ("FORWARD", OTHER_TYPE, False),
        ("FULL", WITH_DEFAULT, True),
        ("FULL", WITHOUT_DEFAULT, False),
        ("FULL_TRANSITIVE", WITH_DEFAULT, True),
    ],
)
def test_levels_of_avro(registry: Rest, level: str, new: object, allowed: bool) -> None:
    """A new field needs a default value for readers of older records, and none for older readers."""
    registry.register("s", A)
    registry.ask("PUT", "/config/s", {"compatibility": level})
    assert fits(registry, new) is allowed
    assert (registry.ask("POST", "/subjects/s/versions", schema_body(new))[0] == 200) is allowed


def named(name: str, *aliases: str, **more: object) -> dict[str, object]:
    """A record in the namespace n."""
    return {"type": "record", "name": name, "namespace": "n", "aliases": [*aliases], "fields": [], **more}


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        (named("Old"), named("New"), False),
        (named("Old"), named("New", "Old"), True),
        (named("Old"), named("New", "other.Old"), False),
        (named("Old"), named("New", "n.Old", namespace="m"), True),
        (named("Old"), named("New", "Old", namespace="m"), False),
        (
            named("R", fields=[{"name": "f", "type": {"type": "fixed", "name": "Old", "size": 1}}]),
            named("R", fields=[{"name": "f", "type": {"type": "fixed", "name": "New", "aliases": ["Old"], "size": 1}}]),
            True,
        ),
        ({**A, "type": "error"}, {**WITH_DEFAULT, "type": "error"}, True),
        ({**A, "type": "error"}, {**WITHOUT_DEFAULT, "type": "error"}, False),
        ({**A, "namespace": "com.my-app"}, {**WITH_DEFAULT, "namespace": "com.my-app"}, True),
    ],
)
def test_changes_of_avro(registry: Rest, old: object, new: object, allowed: bool) -> None:
    """An alias is in the namespace of its type, unless it names one; an error is a record."""
    registry.register("s", old)
    assert fits(registry, new) is allowed


@pytest.mark.parametrize(("level", "allowed"), [("BACKWARD", True), ("BACKWARD_TRANSITIVE", False)])
def test_transitive_levels_look_at_all_versions(registry: Rest, level: str, allowed: bool) -> None:
    """The newest version has the field, the one before has not."""
    registry.register("s", A)
    registry.register("s", WITH_DEFAULT)
    registry.ask("PUT", "/config", {"compatibility": level})
    assert fits(registry, WITHOUT_DEFAULT) is allowed
    assert fits(registry, WITHOUT_DEFAULT, version="versions/latest")
    assert not fits(registry, WITHOUT_DEFAULT, version="versions/1")


OPEN = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 5}}}
CLOSED = {**OPEN, "additionalProperties": False}
EITHER = [{"type": "string"}, {"type": "integer"}]
DRAFT_3 = {"$schema": "http://json-schema.org/draft-03/schema#"}
MORE = {"properties": {"a": {"type": "string", "maxLength": 5}, "b": {"type": "integer"}}}


def needs(more: object) -> dict[str, object]:
    """An object that needs more where it has the property a."""
    return {**OPEN, "dependencies": {"a": more}}


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        (OPEN, {**OPEN, **MORE}, False),
        (CLOSED, {**CLOSED, **MORE}, True),
        ({**CLOSED, **MORE}, CLOSED, False),
        ({**OPEN, **MORE}, OPEN, True),
        (CLOSED, {**CLOSED, **MORE, "required": ["b"]}, False),
        (OPEN, CLOSED, False),
        (CLOSED, OPEN, True),
        ({"type": "string", "maxLength": 5}, {"type": "string", "maxLength": 4}, False),
        ({"type": "string", "maxLength": 5}, {"type": "string"}, True),
        ({"type": "integer"}, {"type": "number"}, True),
        ({"type": "number"}, {"type": "integer"}, False),
        ({"type": "string"}, {"type": ["string", "null"]}, True),
        ({"type": ["string", "null"]}, {"type": ["string"]}, False),
        ({"enum": ["a"]}, {"enum": ["a", "b"]}, True),
        ({"enum": ["a", "b"]}, {"enum": ["a"]}, False),
        ({"enum": [1]}, {"enum": [True]}, False),
        ({"enum": [0]}, {"enum": [0.0, 1]}, True),
        ({"const": {"a": [1]}}, {"const": {"a": [True]}}, False),
        ({**DRAFT_3, **OPEN, "required": True}, {**DRAFT_3, **OPEN, "required": True, "minProperties": 1}, False),
        ({**DRAFT_3, "type": ["string", {"type": "null"}]}, {**DRAFT_3, "type": ["string"]}, False),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, {"oneOf": [{"type": "integer"}, {"not": {}}]}, False),
        ({"allOf": [{"minimum": 1}]}, {"allOf": [{"minimum": 1}, {"maximum": 9}]}, False),
        ({"oneOf": EITHER}, {"allOf": EITHER[:1]}, False),
        ({"anyOf": EITHER}, {"oneOf": EITHER}, False),
        ({"oneOf": EITHER[:1]}, {"allOf": EITHER[:1]}, True),
        ({"allOf": EITHER[:1]}, {"oneOf": EITHER}, True),
        (OPEN, needs(["b"]), False),
        (needs(["b"]), OPEN, True),
        (needs(["b"]), needs(["b", "c"]), False),
        (needs(["b", "c"]), needs(["c"]), True),
        (needs(["b"]), needs(["c"]), False),
        (OPEN, needs({"maxProperties": 3}), False),
        (needs({"maxProperties": 3}), needs({"maxProperties": 2}), False),
        (needs({"maxProperties": 3}), OPEN, True),
        ({"not": {"type": "string"}}, {"not": {"type": ["string", "null"]}}, False),
        ({"type": "array", "items": {"type": "integer"}}, {"type": "array", "items": {"type": "string"}}, False),
        ({"$ref": "#/definitions/x", "definitions": {"x": {"type": "string"}}}, {"type": "string"}, True),
        ({"type": "string"}, {}, True),
        ({}, {"type": "string"}, False),
    ],
)  # fmt: skip
def test_changes_of_json_schemas(registry: Rest, old: object, new: object, allowed: bool) -> None:
    """What was allowed has to stay allowed."""
    registry.register("s", old, "JSON")
    assert fits(registry, new, "JSON") is allowed
    assert fits(registry, old, "JSON")


def proto(*fields: str, head: str = "message M", more: str = "") -> str:
    """A file with one message."""
    return f'syntax = "proto3"; package p; {head} {{ {" ".join(f"{each};" for each in fields)} {more} }}'


@pytest.mark.parametrize(
    ("new", "allowed"),
    [
        (proto("string a = 1", "int32 b = 2", "string c = 3"), True),
        (proto("string a = 1"), True),
        (proto("string renamed = 1", "int32 b = 2"), True),
        (proto("bytes a = 1", "uint64 b = 2"), True),
        (proto("string a = 1", "Color b = 2", more="enum Color { RED = 0; }"), True),
        (proto("string a = 1", "Other b = 2", more="message Other {}"), False),
        (proto("string a = 1", "sint32 b = 2"), False),
        (proto("string a = 1", "repeated int32 b = 2"), False),
        (proto("string a = 1", "map<string, int32> b = 2"), False),
        (proto(more="oneof u { string a = 1; int32 b = 2; }"), False),
        (proto("string a = 1", "int32 b = 2", head="message Other"), False),
        (proto("string a = 1").replace("package p", "package q"), False),
    ],
)
def test_changes_of_protobuf(registry: Rest, new: str, allowed: bool) -> None:
    """Numbers keep their encoding, messages and the package stay."""
    registry.register("s", proto("string a = 1", "int32 b = 2"), "PROTOBUF")
    assert fits(registry, new, "PROTOBUF") is allowed


@pytest.mark.parametrize(("kind", "allowed"), [("int64", True), ("Shade", True), ("sint32", False), ("Other", False)])
def test_enums_of_protobuf_are_numbers(registry: Rest, kind: str, allowed: bool) -> None:
    """Enums of Protobuf are compatible by their numbers, not by their names."""
    more = "enum Color { RED = 0; } enum Shade { DARK = 0; } message Other {}"
    registry.register("s", proto("Color c = 1", more=more), "PROTOBUF")
    assert fits(registry, proto(f"{kind} c = 1", more=more), "PROTOBUF") is allowed


def test_another_format_is_another_schema(registry: Rest) -> None:
    """Not compatible at any level but NONE."""
    registry.register("s", A)
    assert not fits(registry, {"type": "string"}, "JSON")
    registry.ask("PUT", "/config/s", {"compatibility": "NONE"})
    assert fits(registry, {"type": "string"}, "JSON")


def test_schemas_that_share_parts_without_end_are_refused(registry: Rest) -> None:
    """Thirty references that each fork would take years to compare."""
    forks = {f"d{n}": {"anyOf": [{"$ref": f"#/definitions/d{n + 1}"}] * 2} for n in range(30)}
    schema = {"$ref": "#/definitions/d0", "definitions": {**forks, "d30": {"type": "string"}}}
    other = {**schema, "definitions": {**forks, "d30": {"type": "integer"}}}
    registry.register("s", schema, "JSON")
    assert registry.code("POST", "/subjects/s/versions", schema_body(other, "JSON")) == 42201
    assert registry.get("/subjects") == ["s"]


def test_a_schema_that_cannot_be_read_is_an_answer_where_reasons_are_asked_for(registry: Rest) -> None:
    """Otherwise it is an error; a version that is not there always is."""
    registry.register("s", A)
    for path in ("versions", "versions/latest", "versions/1"):
        status, result = registry.ask("POST", f"/compatibility/subjects/s/{path}?verbose=true", {"schema": "{"})
        assert (status, result["is_compatible"]) == (200, False)
        assert result["messages"][0].startswith("Invalid schema")
        assert registry.code("POST", f"/compatibility/subjects/s/{path}", {"schema": "{"}) == 42201
    empty = {"is_compatible": False, "messages": ["Empty schema"]}
    assert registry.ask("POST", "/compatibility/subjects/s/versions?verbose=true", {"schema": ""}) == (200, empty)
    assert registry.code("POST", "/compatibility/subjects/s/versions/9?verbose=true", {"schema": "{"}) == 40402
