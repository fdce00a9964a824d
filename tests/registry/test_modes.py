"""Modes, settings and deletions: what a context has of its own, which code comes first, what an import begins with."""

import json

from tests.registry.conftest import Rest

STRING, INT = '"string"', '"int"'


def test_settings_without_a_subject_are_those_of_the_default_context(registry: Rest) -> None:
    """Another context has its own, or the built-in ones; READONLY_OVERRIDE alone reaches all."""
    registry.ask("PUT", "/config", {"compatibility": "NONE"})
    registry.ask("PUT", "/mode", {"mode": "READONLY"})
    assert registry.get("/config/:.team:s?defaultToGlobal=true") == {"compatibilityLevel": "BACKWARD"}
    assert registry.get("/config/s?defaultToGlobal=true") == {"compatibilityLevel": "NONE"}
    assert registry.register(":.team:s", STRING) == 1
    assert registry.code("POST", "/subjects/s/versions", {"schema": STRING}) == 42205
    registry.ask("PUT", "/contexts/.team/mode", {"mode": "READONLY"})
    assert registry.code("POST", "/subjects/:.team:t/versions", {"schema": STRING}) == 42205
    registry.ask("DELETE", "/mode/:.team:")
    registry.ask("PUT", "/mode", {"mode": "READONLY_OVERRIDE"})
    assert registry.code("POST", "/subjects/:.team:t/versions", {"schema": STRING}) == 42205


def test_a_deletion_is_refused_by_what_is_there_before_the_mode(registry: Rest) -> None:
    """What is not there, what was deleted softly, the mode."""
    registry.register("s", STRING)
    registry.register("t", STRING)
    registry.ask("DELETE", "/subjects/s")
    assert registry.code("DELETE", "/subjects/s/versions/1") == 40406
    assert registry.code("DELETE", "/subjects/s/versions/2") == 40402
    status, problem = registry.ask("DELETE", "/subjects/s/versions/latest")
    assert (status, problem) == (404, {"error_code": 40402, "message": "Version -1 not found."})
    registry.ask("PUT", "/mode", {"mode": "READONLY"})
    assert registry.code("DELETE", "/subjects/none") == 40401
    assert registry.code("DELETE", "/subjects/s") == 40404
    assert registry.code("DELETE", "/subjects/s/versions/1") == 40406
    assert registry.code("DELETE", "/subjects/t") == 42205
    assert registry.code("DELETE", "/subjects/t/versions/1") == 42205


def test_settings_that_are_not_there_cannot_be_deleted(registry: Rest) -> None:
    """With the code of a subject that is not there, in any mode."""
    for mode in ("READWRITE", "READONLY"):
        registry.ask("PUT", "/mode", {"mode": mode})
        assert registry.code("DELETE", "/config/s") == 40401
        assert registry.code("DELETE", "/mode/s") == 40401


def test_an_import_begins_with_nothing(registry: Rest) -> None:
    """What was deleted softly goes for good, so that its ids and versions are free; not where others refer to it."""
    registry.register("s", {"type": "fixed", "name": "F", "size": 1})
    reference = {"name": "F", "subject": "s", "version": 1}
    record = {"type": "record", "name": "R", "fields": [{"name": "f", "type": "F"}]}
    registry.register("kept", record, references=[reference])
    assert registry.code("PUT", "/mode/s", {"mode": "IMPORT"}) == 42205
    registry.ask("DELETE", "/subjects/kept")
    registry.ask("DELETE", "/subjects/s")
    assert registry.ask("PUT", "/mode/s", {"mode": "IMPORT"}) == (200, {"mode": "IMPORT"})
    assert registry.code("GET", "/subjects/s/versions?deleted=true") == 40401
    assert registry.get("/subjects?deleted=true") == ["kept"]
    assert registry.register("s", INT, id=1) == 1
    assert registry.get("/subjects/s/versions") == [1]
    assert registry.ask("PUT", "/contexts/.team/mode", {"mode": "IMPORT"})[0] == 200


def test_an_import_ends_no_schema_that_others_refer_to(registry: Rest) -> None:
    """A reference to what was deleted softly: another registry may leave one."""
    registry.register("s", {"type": "fixed", "name": "F", "size": 1})
    reference = {"name": "F", "subject": ":.:s", "version": 1}
    record = {"type": "record", "name": "R", "fields": [{"name": "f", "type": "F"}]}
    deletion = {"key": '{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}', "value": '{"subject":"s","version":1}'}
    registry.register("t", record, references=[reference])
    registry.server.control("POST", "/v1/topics/_schemas/records", {"records": [deletion]})
    assert registry.code("PUT", "/mode/s", {"mode": "IMPORT"}) == 42206
    assert registry.get("/subjects/s/versions?deleted=true") == [1]


def test_a_schema_that_is_live_keeps_its_id_when_another_id_of_it_goes(registry: Rest) -> None:
    """An import may give one schema two ids; what is deleted for good is one of them."""
    registry.ask("PUT", "/mode", {"mode": "IMPORT"})
    registry.register("s", STRING, id=10)
    registry.register("t", STRING, id=20)
    registry.ask("PUT", "/mode", {"mode": "READWRITE"})
    registry.ask("DELETE", "/subjects/t")
    registry.ask("DELETE", "/subjects/t?permanent=true")
    assert registry.register("u", STRING) == 10
    registry.ask("DELETE", "/subjects/s")
    registry.ask("DELETE", "/subjects/s?permanent=true")
    assert registry.register("v", STRING) == 10


def test_an_import_into_many_deleted_subjects_takes_no_quadratic_time(registry: Rest) -> None:
    """The brokers wait for it: one look at all references, and not one for each version."""
    rows = []
    for number in range(12_000):
        subject = f"s{number}"
        key = {"keytype": "SCHEMA", "subject": subject, "version": 1, "magic": 1}
        value = {
            "subject": subject,
            "version": 1,
            "id": number + 1,
            "schema": f'{{"type":"fixed","name":"F{number}","size":1}}',
        }
        rows.append({"key": json.dumps(key), "value": json.dumps({**value, "deleted": True})})
    registry.server.control("POST", "/v1/topics/_schemas/records", {"records": rows})
    assert registry.ask("PUT", "/mode", {"mode": "IMPORT"}) == (200, {"mode": "IMPORT"})
    assert registry.get("/subjects?deleted=true") == []
