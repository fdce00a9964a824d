"""Records of `_schemas` as Confluent's registry writes them, made by hand from its published classes.

`SchemaKey`, `SchemaValue` and their siblings have these fields; values without `md5` and keys in another order are of
earlier releases. No topic that a Confluent registry wrote itself has been read.
"""

import json
from typing import Any

import pytest

from registry.state import State
from tests.registry.conftest import Rest

USER = '{"type":"record","name":"User","fields":[{"name":"id","type":"long"}]}'
USER_2 = '{"type":"record","name":"User","fields":[{"name":"id","type":"long"},{"name":"n","type":"int","default":0}]}'
ORDER = '{"type":"record","name":"Order","fields":[{"name":"by","type":"User"}]}'
NUMBER = '{"type":"number"}'
Row = tuple[str, str | None]


def key(kind: str, subject: str | None = None, version: int | None = None) -> str:
    """A key: `magic` is 1 for schemas, otherwise 0."""
    fields: dict[str, Any] = {"keytype": kind}
    if kind != "NOOP":
        fields["subject"] = subject
    if version is not None:
        fields["version"] = version
    return compact({**fields, "magic": int(kind == "SCHEMA")})


def schema(subject: str, version: int, number: int, text: str, *, deleted: bool = False, **more: Any) -> Row:
    """A version of a subject; Avro is the type that is not named."""
    place = {"subject": subject, "version": version, "id": number, "md5": "1B2M2Y8AsgTpgAmY7PhCfg=="}
    return key("SCHEMA", subject, version), compact({**place, **more, "schema": text, "deleted": deleted})


def compact(fields: dict[str, Any]) -> str:
    """JSON as Jackson writes it."""
    return json.dumps(fields, separators=(",", ":"))


REFERENCE = {"name": "User", "subject": "user-value", "version": 1}
WRITTEN: list[Row] = [
    (key("NOOP"), None),
    schema("user-value", 1, 1, USER),
    schema("user-value", 2, 2, USER_2),
    schema("order-value", 1, 3, ORDER, references=[REFERENCE]),
    (key("CONFIG"), compact({"compatibilityLevel": "FULL"})),
    (key("CONFIG", "user-value"), compact({"subject": "user-value", "compatibilityLevel": "NONE"})),
    (key("MODE", "order-value"), compact({"subject": "order-value", "mode": "READONLY"})),
    schema("gone", 1, 1, USER),
    (key("DELETE_SUBJECT", "gone"), compact({"subject": "gone", "version": 1})),
    schema("gone", 2, 1, USER),  # the same schema again is a new version of the subject ...
    (key("SCHEMA", "gone", 1), None),  # ... and the deleted one is removed for good
    (key("NOOP"), None),
    schema("single", 1, 1, USER),
    schema("single", 2, 2, USER_2),
    schema("single", 1, 1, USER, deleted=True),
    schema("cleared", 1, 1, USER),
    (key("DELETE_SUBJECT", "cleared"), compact({"subject": "cleared", "version": 1})),
    (key("CLEAR_SUBJECT", "cleared"), compact({"subject": "cleared"})),
    schema("json-value", 1, 4, NUMBER, schemaType="JSON"),
    (key("CONFIG", "json-value"), compact({"subject": "json-value", "compatibilityLevel": "BACKWARD"})),
    (key("CONFIG", "json-value"), None),
]


def compacted(rows: list[Row]) -> list[Row]:
    """What the cleaner leaves: the last record of each key, at its place."""
    last = {each: at for at, (each, _) in enumerate(rows)}
    return [row for at, row in enumerate(rows) if last[row[0]] == at]


@pytest.mark.parametrize("rows", [WRITTEN, compacted(WRITTEN)], ids=["written", "compacted"])
def test_the_topic_of_confluents_registry_is_read(registry: Rest, rows: list[Row]) -> None:
    """Versions, references, deletions, settings; the next id is the one behind theirs. Also from a compacted topic."""
    records = [{"key": each, "value": value} for each, value in rows]
    registry.server.control("POST", "/v1/topics/_schemas/records", {"records": records})
    assert registry.get("/subjects") == ["gone", "json-value", "order-value", "single", "user-value"]
    assert registry.get("/subjects?deleted=true") == registry.get("/subjects")
    assert registry.get("/subjects/user-value/versions") == [1, 2]
    assert registry.get("/subjects/gone/versions?deleted=true") == [2]
    assert registry.get("/subjects/single/versions") == [2]
    assert registry.get("/subjects/single/versions?deleted=true") == [1, 2]
    assert registry.get("/subjects/order-value/versions/1") == {
        "subject": "order-value", "version": 1, "id": 3, "references": [REFERENCE], "schema": ORDER
    }  # fmt: skip
    assert registry.get("/subjects/user-value/versions/1/referencedby") == [3]
    assert registry.get("/schemas/ids/4") == {"schemaType": "JSON", "schema": NUMBER}
    assert registry.get("/config") == {"compatibilityLevel": "FULL"}
    assert registry.get("/config/user-value") == {"compatibilityLevel": "NONE"}
    assert registry.code("GET", "/config/json-value") == 40408
    assert registry.get("/mode/order-value") == {"mode": "READONLY"}
    assert registry.code("POST", "/subjects/order-value/versions", {"schema": '"long"'}) == 42205
    assert registry.register("single", USER) == 1  # the id that the schema has
    assert registry.register("new", '"string"') == 5


@pytest.mark.parametrize(
    "spelling",
    [
        lambda fields: {**fields, "magic": 0},
        lambda fields: dict(reversed(fields.items())),
        lambda fields: {**fields, "tenant": "default", "added": {"later": [1]}},
    ],
    ids=["magic 0", "another order", "unknown fields"],
)
def test_keys_of_other_releases_are_the_same_keys(spelling: Any) -> None:
    """The first releases wrote magic 0 and `keytype` last; later ones may add fields."""
    state = State()
    for each, value in WRITTEN:
        content = None if value is None else json.dumps({**json.loads(value), "unknown": {"a": [None]}}).encode()
        assert state.replay(json.dumps(spelling(json.loads(each))).encode(), content)
    expected = State()
    for each, value in WRITTEN:
        assert expected.replay(each.encode(), None if value is None else value.encode())
    assert list(state.all_versions()) == list(expected.all_versions())
    assert (state.modes, state.newest_ids) == (expected.modes, expected.newest_ids)
    assert {name: each["compatibilityLevel"] for name, each in state.configs.items()} == {
        None: "FULL",
        "user-value": "NONE",
    }


def test_records_of_unknown_kinds_change_nothing() -> None:
    """Such as associations, which later releases write; the record is reported as one that cannot be read."""
    state = State()
    assert not state.replay(b'{"keytype":"ASSOC","tenant":"default","resourceName":"r","magic":0}', b'{"subject":"s"}')
    assert state == State()


@pytest.mark.parametrize("level", ["UNHEARD_OF", "full", "", 7, [], {}])
def test_a_level_that_there_is_not_changes_nothing(level: object) -> None:
    """Nor is it met later, by a schema that is registered; without a level, that of all subjects is in force."""
    state = State()
    assert state.replay(*(each.encode() for each in (key("CONFIG", "s"), compact({"compatibilityLevel": "FULL"}))))
    assert not state.replay(*(each.encode() for each in (key("CONFIG", "s"), compact({"compatibilityLevel": level}))))
    assert state.configs == {"s": {"compatibilityLevel": "FULL"}}
    without = {"compatibilityLevel": None, "alias": "t"}
    assert state.replay(*(each.encode() for each in (key("CONFIG", "s"), compact(without))))
    assert state.configs == {"s": {"alias": "t"}}
