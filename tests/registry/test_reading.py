"""Which schemas are accepted, and how much work is done for one."""

import json
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from registry import formats
from registry.records import Rows
from registry.registry import Registry
from registry.state import Schema, State
from tests.registry.conftest import Rest, schema_body

MANY = 20_000


def record(*fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A record of Avro."""
    return {"type": "record", "name": "R", "fields": list(fields), **more}


def field(kind: object, default: object, name: str = "f") -> dict[str, Any]:
    """A field with a default value."""
    return {"name": name, "type": kind, "default": default}


INNER = {"type": "record", "name": "I", "fields": [{"name": "a", "type": ["null", "int"]}, field("string", "x", "b")]}


@pytest.mark.parametrize(
    "schema",
    [
        record(field(["null", "string"], "x")),
        record(field("string", None)),
        record(field("int", 2**31)),
        record(field("int", 1.0)),
        record(field("long", True)),
        record(field({"type": "array", "items": "int"}, [1, "x"])),
        record(field({"type": "map", "values": "int"}, {"a": None})),
        record(field(INNER, {})),
        record(field("double", "one")),
        record({"name": "my-field", "type": "int"}),
        record({"name": "1st", "type": "int"}),
        record(name="my-record"),
        record(aliases="R2"),
        {"type": "enum", "name": "E", "symbols": ["a.b"]},
        {"type": "error_union", "declared_errors": ["int"]},
    ],
)
def test_avro_that_java_refuses_is_refused(registry: Rest, schema: object) -> None:
    """Names, and default values that are none of their field's type; of a union, of its first branch."""
    assert registry.code("POST", "/subjects/s/versions", schema_body(schema)) == 42201


@pytest.mark.parametrize(
    "schema",
    [
        record(field(["null", "string"], None), field(["string", "null"], "x", "g")),
        record(field("long", 2**31), field("float", 1, "g"), field("double", "NaN", "h")),
        record(field({"type": "array", "items": ["int", "null"]}, [1])),
        record(field({"type": "map", "values": "int"}, {"a": 1})),
        record(field(INNER, {"a": 7}), field("I", {"a": None, "b": "y"}, "g")),
        record({"name": "größe", "type": "int"}, namespace="com.my-app"),
        record(field({"type": "enum", "name": "E", "symbols": ["a"]}, "a"), field("bytes", "\u00ff", "g")),
        {"type": "error", "name": "Failed", "fields": [{"name": "why", "type": "string"}]},
    ],
)
def test_avro_that_java_accepts_is_accepted(registry: Rest, schema: object) -> None:
    """Namespaces are not checked; letters are those of any script."""
    assert registry.register("s", schema) == 1


def test_defaults_count_for_what_is_new(registry: Rest) -> None:
    """An import with an id takes a schema as it is, and it is found again."""
    schema = record(field("int", "x"))
    registry.ask("PUT", "/mode/s", {"mode": "IMPORT"})
    assert registry.register("s", schema, id=7) == 7
    registry.ask("PUT", "/mode/s", {"mode": "READWRITE"})
    assert registry.register("s", schema) == 7
    assert registry.ask("POST", "/subjects/s", schema_body(schema))[0] == 200
    assert registry.register("s", record(field("int", 1))) == 8


@pytest.mark.parametrize("pattern", [r"^\p{L}+$", r"(?<year>\d{4})", "[a-z&&[^b]]", r"\Aa\z", "^*", r"[\w-a]"])
def test_patterns_of_java_are_accepted(registry: Rest, pattern: str) -> None:
    """Confluent's registry reads patterns with Java's regular expressions."""
    assert registry.register("s", {"type": "string", "pattern": pattern}, "JSON") == 1
    assert registry.register("t", {"type": "object", "patternProperties": {pattern: {}}}, "JSON") == 2


@pytest.mark.parametrize("pattern", ["(a", "a)", "[a", "a{99999999999}", "*.txt", "(+a)", "a|?", "a{3,1}", "a\\"])
def test_patterns_that_no_dialect_has_are_refused(registry: Rest, pattern: str) -> None:
    """A regular expression that is broken in every dialect makes the schema invalid."""
    assert registry.code("POST", "/subjects/s/versions", schema_body({"pattern": pattern}, "JSON")) == 42201


def test_long_lists_of_mixed_values_take_no_quadratic_time(registry: Rest) -> None:
    """Python cannot sort them: elements of an enum, which draft 4 wants to be unique, and the values of two enums."""
    mixed = [[each] if each % 2 else {"n": each} for each in range(MANY)]
    draft_4 = {"$schema": "http://json-schema.org/draft-04/schema#", "enum": mixed}
    assert registry.register("s", draft_4, "JSON") == 1
    assert registry.register("s", {**draft_4, "enum": [*mixed, 1]}, "JSON") == 2
    assert registry.code("POST", "/subjects/s/versions", schema_body({**draft_4, "enum": [1, 1.0]}, "JSON")) == 42201
    assert registry.register("t", {"enum": mixed}, "JSON") == 3
    assert registry.code("POST", "/subjects/t/versions", schema_body({"enum": mixed[1:]}, "JSON")) == 409
    assert registry.code("POST", "/subjects/u/versions", schema_body({"type": mixed[:2000]}, "JSON")) == 42201


class Kept:
    """The topic of a registry, as far as one needs it."""

    def __init__(self) -> None:
        self.known = State()

    def state(self) -> State:
        """What was appended."""
        return self.known

    async def append(self, rows: Rows) -> None:
        """Replay records at once."""
        for key, value in rows:
            assert self.known.replay(key, value)


async def registered(registry: Registry, schema: object) -> None:
    """Under the subject s."""
    await registry.register("s", Schema("AVRO", json.dumps(schema)), schema_id=None, version=None, normalize=False)


@pytest.mark.parametrize(
    "schema",
    [
        {"items": [{}], "$ref": "#/items/x"},
        {"minimum": 3, "$ref": "#/minimum/x"},
        {"$schema": "http://["},
    ],
)
def test_json_schemas_whose_names_lead_nowhere_are_refused(registry: Rest, schema: object) -> None:
    """Into a list by a name, into a number, to what is no URI."""
    assert registry.code("POST", "/subjects/s/versions", schema_body(schema, "JSON")) == 42201


def test_a_reference_that_is_no_uri_is_found_when_schemas_are_compared(registry: Rest) -> None:
    """References that leave the document are not followed before."""
    registry.register("s", {"properties": {"a": {"type": "string"}}}, "JSON")
    body = schema_body({"properties": {"a": {"$ref": "http://["}}}, "JSON")
    assert registry.code("POST", "/subjects/s/versions", body) == 42201


@pytest.mark.parametrize(
    "text",
    [
        'edition = "2023"; package a; message M { string x = 1; reserved y, z; enum E { A = 0; reserved B; } }',
        'edition = "2023"; message M { int32 x = 1 [features.field_presence = LEGACY_REQUIRED]; reserved 2, 4; }',
        'syntax = "proto2"; message M { extensions 1; } extend M { optional group G = 1 { optional M m = 1; } }',
        'syntax = "proto2"; message M { extensions 1; extend M { repeated group G = 1 { optional M m = 1; } } }',
    ],
    ids=["edition", "features of an edition", "a group that extends", "a group that extends, inside"],
)
async def test_protobuf_is_stored_as_what_was_sent(text: str) -> None:
    """What is stored is read as the same file."""
    sent: Any = await formats.parse("PROTOBUF", text, [], normalize=False, is_new=True)
    stored: Any = await formats.parse("PROTOBUF", sent.text, [], normalize=False, is_new=False)
    assert stored.text == sent.text
    assert stored.file == sent.file


async def test_a_check_reads_the_versions_that_its_level_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a restart, when nothing is read yet: the newest alone, unless the level is transitive."""
    read: list[str] = []
    parse = formats.parse

    async def counted(kind: str, text: str, *rest: Any, **more: Any) -> formats.ParsedSchema:
        read.append(text)
        return await parse(kind, text, *rest, **more)

    monkeypatch.setattr("registry.reading.parse", counted)
    versions = [record(*(field("int", at, f"f{at}") for at in range(count))) for count in range(5)]
    store: Any = Kept()
    for each in versions[:-1]:
        await registered(Registry(store, "cluster"), each)
    read.clear()
    await registered(Registry(store, "cluster"), versions[-1])
    assert set(read) == {json.dumps(versions[-1]), store.known.versions("s")[-2].schema.text}


async def test_a_long_schema_is_read_before_others_have_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """While one is read another one is written."""
    parse = formats.parse
    store: Any = Kept()
    registry, written = Registry(store, "cluster"), anyio.Event()

    async def slow(kind: str, text: str, *rest: Any, **more: Any) -> formats.ParsedSchema:
        if "Slow" in text:
            await written.wait()
        return await parse(kind, text, *rest, **more)

    monkeypatch.setattr("registry.reading.parse", slow)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(registered, registry, record(name="Slow"))
            await anyio.lowlevel.checkpoint()
            fast = Schema("AVRO", '"string"')
            await registry.register("t", fast, schema_id=None, version=None, normalize=False)
            written.set()
    assert [each.subject for each in store.known.all_versions()] == ["s", "t"]
