"""What is found: schemas that are there already, references, subjects of other contexts, lists."""

from typing import Any

from tests.registry.conftest import Rest, schema_body

STRING, INT = '"string"', '"int"'
ITEM: dict[str, Any] = {"type": "record", "name": "Item", "namespace": "shop", "fields": [{"name": "n", "type": "int"}]}
ORDER: dict[str, Any] = {"type": "record", "name": "Order", "fields": [{"name": "item", "type": "shop.Item"}]}
REFERENCE: dict[str, Any] = {"name": "shop.Item", "subject": "item", "version": 1}


def test_a_schema_that_is_there_is_found_in_every_mode(registry: Rest) -> None:
    """Nothing is written, so no mode forbids it; with a version of its own it would be."""
    registry.register("s", STRING)
    for mode in ("READONLY", "READONLY_OVERRIDE", "IMPORT"):
        assert registry.ask("PUT", "/mode?force=true", {"mode": mode})[0] == 200
        assert registry.register("s", STRING) == 1
        assert registry.code("POST", "/subjects/s/versions", {"schema": INT}) == 42205
    registry.ask("PUT", "/mode", {"mode": "READONLY"})
    assert registry.code("POST", "/subjects/s/versions", {"schema": STRING, "version": 1}) == 42205
    assert registry.code("POST", "/subjects/s/versions", {"schema": "{"}) == 42201


def test_other_metadata_make_another_schema(registry: Rest) -> None:
    """Those of the newest version count only where the request has none."""
    registry.register("s", STRING, metadata={"properties": {"owner": "us"}})
    assert registry.register("s", STRING) == 1
    assert registry.register("s", STRING, metadata={"properties": {"owner": "them"}}) == 2
    body = {"schema": STRING, "metadata": {"properties": {"owner": "the others"}}}
    assert registry.code("POST", "/subjects/s", body) == 40403


def test_a_schema_is_found_with_what_it_refers_to_in_place(registry: Rest) -> None:
    """As clients send it whose classes know no references."""
    registry.register("item", ITEM)
    assert registry.register("o", ORDER, references=[REFERENCE]) == 2
    whole = {**ORDER, "doc": "an order", "fields": [{"name": "item", "type": ITEM}]}
    response = registry.ask("POST", "/subjects/o", schema_body(whole))
    assert (response[0], response[1]["version"], response[1]["references"]) == (200, 1, [REFERENCE])
    assert registry.register("o", whole) == 2
    assert registry.get("/subjects/o/versions") == [1]
    other = {**whole, "fields": [*whole["fields"], {"name": "more", "type": "int", "default": 0}]}
    assert registry.code("POST", "/subjects/o", schema_body(other)) == 40403
    assert registry.register("o", other) == 3


def test_a_reference_to_the_newest_version_is_one_to_its_number(registry: Rest) -> None:
    """Kept so, it still means the same when there is a newer one."""
    registry.register("item", ITEM)
    latest = {**REFERENCE, "version": -1}
    assert registry.register("o", ORDER, references=[latest]) == 2
    assert registry.get("/subjects/o/versions/1")["references"] == [REFERENCE]
    assert registry.get("/subjects/item/versions/1/referencedby") == [2]
    assert registry.code("DELETE", "/subjects/item") == 42206
    assert registry.ask("POST", "/subjects/o", schema_body(ORDER, references=[latest]))[1]["version"] == 1


def test_a_reference_is_one_within_its_context(registry: Rest) -> None:
    """A subject of the same name in the default context may be deleted; a name may have its context with it."""
    registry.register("item", ITEM)
    registry.register(":.team:item", ITEM)
    registry.register(":.team:o", ORDER, references=[REFERENCE])
    registry.register(":.team:p", {**ORDER, "name": "P"}, references=[{**REFERENCE, "subject": ":.team:item"}])
    assert registry.get("/subjects/:.team:item/versions/1/referencedby") == [2, 3]
    assert registry.get("/subjects/item/versions/1/referencedby") == []
    assert registry.ask("DELETE", "/subjects/item") == (200, [1])
    assert registry.code("DELETE", "/subjects/:.team:item") == 42206
    registry.register("item", ITEM)
    assert registry.register("o", ORDER, references=[{**REFERENCE, "subject": ":.:item", "version": -1}]) > 0
    assert registry.code("DELETE", "/subjects/item") == 42206


def test_a_subject_without_a_context_is_looked_for_in_all(registry: Rest) -> None:
    """Its versions and schemas; a subject with a context is that one alone, and ids are those of a subject first."""
    registry.register("s", STRING)
    registry.register(":.a:other", STRING)
    registry.register(":.b:orders", INT)
    assert registry.get("/subjects/orders/versions/1")["subject"] == ":.b:orders"
    assert registry.raw("GET", "/subjects/orders/versions/latest/schema")[2] == INT.encode()
    status, version = registry.ask("POST", "/subjects/orders", {"schema": INT})
    assert (status, version["subject"], version["version"]) == (200, ":.b:orders", 1)
    assert registry.code("GET", "/subjects/:.a:orders/versions/1") == 40401
    assert registry.code("POST", "/subjects/orders", {"schema": '"long"'}) == 40401
    assert registry.get("/schemas/ids/1") == {"schema": STRING}
    assert registry.get("/schemas/ids/1?subject=orders") == {"schema": INT}
    assert registry.get("/schemas/ids/1/subjects?subject=orders") == [":.b:orders"]
    assert registry.get("/schemas/ids/1?subject=none") == {"schema": STRING}
    assert registry.get("/schemas/ids/1?subject=:.b:") == {"schema": INT}
    assert registry.code("GET", "/schemas/ids/1?subject=:.b:none") == 40403


def test_lists_are_of_the_default_context_unless_one_is_named(registry: Rest) -> None:
    """Schemas always; subjects where the prefix is empty. A limit of zero is none."""
    for subject in ("s", "t", ":.team:s"):
        registry.register(subject, STRING)
    assert [each["subject"] for each in registry.get("/schemas")] == ["s", "t"]
    assert [each["subject"] for each in registry.get("/schemas?subjectPrefix=:*:")] == [":.team:s", "s", "t"]
    assert [each["subject"] for each in registry.get("/schemas?subjectPrefix=:.team:")] == [":.team:s"]
    assert [each["subject"] for each in registry.get("/contexts/.team/schemas")] == [":.team:s"]
    assert registry.get("/subjects") == [":.team:s", "s", "t"]
    assert registry.get("/subjects?subjectPrefix=") == ["s", "t"]
    assert registry.get("/subjects?subjectPrefix=:.:s") == ["s"]
    assert registry.get("/subjects?subjectPrefix=:*:s") == [":.team:s", "s"]
    assert registry.get("/subjects?limit=0") == registry.get("/subjects")
    assert registry.get("/schemas?limit=0") == registry.get("/schemas")


def test_json_schema_is_not_found_without_its_references(registry: Rest) -> None:
    """The same text refers to nothing then; only Avro's schemas are compared with what they refer to in place."""
    registry.register("item", {"type": "integer"}, "JSON")
    order = {"type": "object", "properties": {"item": {"$ref": "item.json"}}}
    reference = {"name": "item.json", "subject": "item", "version": 1}
    assert registry.register("o", order, "JSON", references=[reference]) == 2
    assert registry.ask("POST", "/subjects/o", schema_body(order, "JSON", references=[reference]))[0] == 200
    assert registry.code("POST", "/subjects/o", schema_body(order, "JSON")) == 40403
