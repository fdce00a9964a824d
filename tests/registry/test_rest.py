"""The REST API, path by path: answers, error codes and content types."""

import json
from base64 import b64encode

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from tests.registry.conftest import CONTENT_TYPE, RegistryWith, Rest

_MAP = FileDescriptorProto(syntax="proto3")
_MAP.message_type.add(name="M").field.add(name="m", number=1, label=3, type=11, type_name=".M.MEntry")
_MAP.message_type[0].nested_type.add(name="MEntry").options.map_entry = True
NO_VALUE = json.dumps({"schema": b64encode(_MAP.SerializeToString()).decode(), "schemaType": "PROTOBUF"}).encode()
"""A descriptor with a map that has neither keys nor values."""
STRING, INT, LONG = '"string"', '"int"', '"long"'


def test_a_schema_has_one_id_in_all_subjects(registry: Rest) -> None:
    """Spelled in another way it is the same schema; the versions are counted per subject."""
    record = {"type": "record", "name": "R", "namespace": "n", "fields": [{"name": "a", "type": {"type": "string"}}]}
    assert registry.register("s", record) == 1
    assert registry.register("s", json.dumps(record, indent=4)) == 1
    assert registry.register("t", STRING) == 2
    assert registry.register("u", {**record, "fields": [{"type": "string", "name": "a"}]}) == 1
    assert registry.get("/schemas/ids/1/subjects") == ["s", "u"]
    assert registry.get("/schemas/ids/1")["schema"] == (
        '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":"string"}]}'
    )


def test_versions_of_a_subject(registry: Rest) -> None:
    """By number, latest and -1; the text alone; what is not there has its code."""
    registry.ask("PUT", "/config", {"compatibility": "NONE"})
    registry.register("s", STRING)
    registry.register("s", INT)
    newest = {"subject": "s", "version": 2, "id": 2, "schema": INT}
    assert registry.get("/subjects/s/versions") == [1, 2]
    assert [registry.get(f"/subjects/s/versions/{each}") for each in ("2", "latest", "-1")] == [newest] * 3
    assert registry.raw("GET", "/subjects/s/versions/1/schema")[2] == STRING.encode()
    assert registry.raw("GET", "/schemas/ids/2/schema")[2] == INT.encode()
    assert registry.get("/schemas/ids/2/versions") == [{"subject": "s", "version": 2}]
    assert registry.get("/schemas/ids/2?fetchMaxId=true") == {"schema": INT, "maxId": 2}
    assert registry.get("/schemas?latestOnly=true") == [newest]
    assert registry.get("/schemas?offset=1&limit=1") == [newest]
    assert registry.get("/schemas/types") == ["JSON", "PROTOBUF", "AVRO"]
    assert registry.code("GET", "/subjects/none/versions") == 40401
    assert registry.code("GET", "/subjects/none/versions/1") == 40401
    assert registry.code("GET", "/subjects/s/versions/3") == 40402
    assert registry.code("GET", "/schemas/ids/3") == 40403
    for wrong in ("0", "x", "-2", "99999999999"):
        assert registry.code("GET", f"/subjects/s/versions/{wrong}") == 42202


def test_a_lookup_finds_what_is_registered(registry: Rest) -> None:
    """By its schema; an unknown subject has another code than an unknown schema."""
    registry.register("s", STRING)
    assert registry.ask("POST", "/subjects/s", {"schema": ' "string" '}) == (
        200,
        {"subject": "s", "version": 1, "id": 1, "schema": STRING},
    )
    assert registry.code("POST", "/subjects/s", {"schema": INT}) == 40403
    assert registry.code("POST", "/subjects/t", {"schema": STRING}) == 40401
    assert registry.code("POST", "/subjects/s", {"schema": "{"}) == 42201


def test_deletions_are_soft_and_then_hard(registry: Rest) -> None:
    """A subject that was deleted softly is found where deleted ones are asked for, and by its id."""
    registry.ask("PUT", "/config", {"compatibility": "NONE"})
    for each in (STRING, INT, LONG):
        registry.register("s", each)
    assert registry.code("DELETE", "/subjects/s/versions/2?permanent=true") == 40407
    assert registry.ask("DELETE", "/subjects/s/versions/2") == (200, 2)
    assert registry.code("DELETE", "/subjects/s/versions/2") == 40406
    assert registry.get("/subjects/s/versions") == [1, 3]
    assert registry.get("/subjects/s/versions?deleted=true") == [1, 2, 3]
    assert registry.get("/subjects/s/versions?deletedOnly=true") == [2]
    assert registry.ask("DELETE", "/subjects/s/versions/2?permanent=true") == (200, 2)
    assert registry.code("GET", "/schemas/ids/2") == 40403
    assert registry.code("DELETE", "/subjects/s?permanent=true") == 40405
    assert registry.ask("DELETE", "/subjects/s") == (200, [1, 3])
    assert registry.code("DELETE", "/subjects/s") == 40404
    assert (registry.get("/subjects"), registry.get("/subjects?deleted=true")) == ([], ["s"])
    assert registry.get("/schemas/ids/3") == {"schema": LONG}
    assert registry.register("s", STRING) == 1
    assert registry.get("/subjects/s/versions?deleted=true") == [3, 4]
    assert registry.ask("DELETE", "/subjects/s") == (200, [4])
    assert registry.ask("DELETE", "/subjects/s?permanent=true") == (200, [3, 4])
    assert registry.code("DELETE", "/subjects/s") == 40401


def test_ids_are_not_given_twice(registry: Rest) -> None:
    """The id of a schema that was deleted for good is not used again."""
    registry.register("s", STRING)
    registry.ask("DELETE", "/subjects/s")
    registry.ask("DELETE", "/subjects/s?permanent=true")
    assert registry.register("s", STRING) == 2


def test_references(registry: Rest) -> None:
    """A type of another subject; what is referred to cannot be deleted."""
    item = {"type": "record", "name": "Item", "namespace": "shop", "fields": []}
    registry.register("item", item)
    order = {"type": "record", "name": "Order", "fields": [{"name": "item", "type": "shop.Item"}]}
    reference = {"name": "shop.Item", "subject": "item", "version": 1}
    assert registry.code("POST", "/subjects/o/versions", {"schema": json.dumps(order)}) == 42201
    assert registry.register("o", order, references=[reference]) == 2
    assert registry.get("/schemas/ids/2")["references"] == [reference]
    assert registry.get("/subjects/item/versions/1/referencedby") == [2]
    assert registry.code("DELETE", "/subjects/item") == 42206
    assert registry.code("DELETE", "/subjects/item/versions/1") == 42206
    missing = {**reference, "version": 5}
    assert registry.code("POST", "/subjects/p/versions", {"schema": "{}", "references": [missing]}) == 42201
    registry.ask("DELETE", "/subjects/o")
    assert registry.ask("DELETE", "/subjects/item") == (200, [1])


def test_settings_of_a_subject_and_of_all(registry: Rest) -> None:
    """A subject's level counts before that of all; it goes with the subject."""
    assert registry.get("/config") == {"compatibilityLevel": "BACKWARD"}
    assert registry.code("GET", "/config/s") == 40408
    assert registry.ask("PUT", "/config/s", {"compatibility": "FULL"}) == (200, {"compatibility": "FULL"})
    assert registry.get("/config/s") == {"compatibilityLevel": "FULL"}
    assert registry.get("/config/t?defaultToGlobal=true") == {"compatibilityLevel": "BACKWARD"}
    assert registry.code("PUT", "/config/s", {"compatibility": "SIDEWAYS"}) == 42203
    assert registry.ask("DELETE", "/config/s") == (200, {"compatibilityLevel": "FULL"})
    assert registry.code("DELETE", "/config/s") == 40401
    registry.register("s", STRING)
    registry.ask("PUT", "/config/s", {"compatibility": "FULL"})
    registry.ask("DELETE", "/subjects/s")
    assert registry.code("GET", "/config/s") == 40408


def test_modes(registry: Rest) -> None:
    """READONLY refuses writes; IMPORT takes ids and versions, on an empty subject unless forced."""
    assert registry.get("/mode") == {"mode": "READWRITE"}
    assert registry.code("GET", "/mode/s") == 40409
    assert registry.code("PUT", "/mode", {"mode": "SLEEPY"}) == 42204
    body = {"schema": STRING, "id": 77, "version": 5}
    assert registry.code("POST", "/subjects/s/versions", body) == 42205
    assert registry.ask("PUT", "/mode/s", {"mode": "IMPORT"}) == (200, {"mode": "IMPORT"})
    assert registry.register("s", STRING, id=77, version=5) == 77
    assert registry.get("/subjects/s/versions/5")["id"] == 77
    assert registry.code("POST", "/subjects/s/versions", {"schema": INT, "id": 77}) == 42205
    assert registry.code("PUT", "/mode", {"mode": "IMPORT"}) == 42205
    assert registry.ask("PUT", "/mode?force=true", {"mode": "IMPORT"})[0] == 200
    assert registry.ask("PUT", "/mode", {"mode": "READONLY"})[0] == 200
    assert registry.code("POST", "/subjects/t/versions", {"schema": STRING}) == 42205
    assert registry.code("DELETE", "/subjects/t") == 40401
    registry.ask("DELETE", "/mode")
    assert registry.register("t", INT) == 78


def test_contexts_have_ids_of_their_own(registry: Rest) -> None:
    """Subjects of a context by their qualified names, or below its path."""
    registry.register("s", STRING)
    assert registry.register(":.team:s", INT) == 1
    assert registry.get("/contexts") == [".", ".team"]
    assert registry.get("/subjects") == [":.team:s", "s"]
    assert registry.get("/contexts/.team/subjects") == [":.team:s"]
    assert registry.get("/contexts/.team/subjects/s/versions/1")["schema"] == INT
    assert registry.get("/schemas/ids/1") == {"schema": STRING}
    assert registry.get("/schemas/ids/1?subject=:.team:s") == {"schema": INT}
    registry.ask("PUT", "/contexts/.team/config", {"compatibility": "NONE"})
    assert registry.register(":.team:s", STRING) == 2
    assert registry.get("/config") == {"compatibilityLevel": "BACKWARD"}


def test_metadata_and_settings_of_wrong_types_are_refused(registry: Rest) -> None:
    """Not kept, to be answered with 500 from then on; numbers and truth values are texts, as Jackson reads them."""
    wrong: list[object] = [{"properties": ["a"]}, {"properties": "a"}, {"properties": {"a": {}}}, "a"]
    for metadata in wrong:
        assert registry.code("POST", "/subjects/s/versions", {"schema": STRING, "metadata": metadata}) == 400
    registry.register("s", STRING, metadata={"properties": {"a": 1, "b": True}})
    assert registry.get("/subjects/s/versions/1")["metadata"] == {"properties": {"a": "1", "b": "true"}}
    assert registry.get("/subjects/s/metadata?key=a&value=1")["version"] == 1
    settings: list[object] = [{"compatibilityGroup": ["a"]}, {"normalize": 1}, {"defaultMetadata": "a"}, {"alias": {}}]
    for each in settings:
        assert registry.code("PUT", "/config/s", each) == 400
    assert registry.code("PUT", "/config/s", {"compatibility": 1}) == 42203
    assert registry.register("s", STRING, metadata={"properties": {"a": "2"}}) == 2


def test_metadata_goes_on_to_the_next_version(registry: Rest) -> None:
    """The new version is found by its properties."""
    registry.ask("PUT", "/config", {"compatibility": "NONE"})
    owner = {"properties": {"owner": "us"}}
    registry.register("s", STRING, metadata=owner)
    registry.register("s", INT)
    assert registry.get("/subjects/s/versions/2")["metadata"] == owner
    assert registry.get("/subjects/s/metadata?key=owner&value=us")["version"] == 2
    assert registry.code("GET", "/subjects/s/metadata?key=owner&value=them") == 40403


def test_subjects_may_have_any_name(registry: Rest) -> None:
    """A slash and a blank, as paths have them."""
    registry.register("a%2Fb%20c", STRING)
    assert registry.get("/subjects") == ["a/b c"]
    assert registry.get("/subjects/a%2Fb%20c/versions") == [1]


@pytest.mark.parametrize(
    ("accept", "status", "answered"),
    [
        ("", 200, CONTENT_TYPE),
        ("*/*", 200, CONTENT_TYPE),
        ("application/json", 200, "application/json"),
        ("application/vnd.schemaregistry+json, application/json", 200, "application/vnd.schemaregistry+json"),
        ("text/html", 406, CONTENT_TYPE),
    ],
)
def test_content_types(registry: Rest, accept: str, status: int, answered: str) -> None:
    """The one that the client accepts, Confluent's own first."""
    response = registry.raw("GET", "/subjects", headers={"Accept": accept})
    assert response[:2] == (status, answered)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/nowhere", b"", 404),
        ("PATCH", "/subjects", b"", 405),
        ("GET", "/schemas/ids/x", b"", 404),
        ("POST", "/subjects/s/versions", b"{", 400),
        ("POST", "/subjects/s/versions", b"[]", 400),
        ("POST", "/subjects/s/versions", b"\xff\xfe", 400),
        ("POST", "/subjects/s/versions", b"", 422),
        ("POST", "/subjects/s/versions", b'{"schema":7}', 400),
        ("POST", "/subjects/s/versions", b'{"shema":"x"}', 422),
        ("POST", "/subjects/s/versions", b'{"schema":"x","schemaType":"XML"}', 422),
        ("POST", "/subjects/s/versions", b'{"schema":"x","references":[1]}', 422),
        ("POST", "/subjects/s/versions", b'{"schema":"\\ud800"}', 422),
        ("POST", "/subjects/s/versions", b'{"schema":"\\ud800","schemaType":"PROTOBUF"}', 422),
        ("POST", "/subjects/s/versions", b'{"schema":"' + b"x" * 1_000_001 + b'"}', 422),
        ("POST", "/subjects/s/versions", b"x" * 9_000_000, 413),
        ("POST", "/subjects/s/versions", b'{"schema":' + b"[" * 100_000, 400),
        ("POST", "/subjects/s/versions", b'{"schema":"{\\"$schema\\":[]}","schemaType":"JSON"}', 422),
        ("POST", "/subjects/s/versions", NO_VALUE, 422),
        ("PUT", "/config", b'{"compatibility":7}', 422),
        ("PUT", "/mode", b'{"mode":[]}', 422),
    ],
)
def test_what_cannot_be_understood_has_an_answer(
    registry: Rest, method: str, path: str, body: bytes, status: int
) -> None:
    """A status and a sentence, never a traceback; the registry goes on."""
    actual_status, _, content = registry.raw(method, path, body)
    assert (actual_status, json.loads(content)["message"] != "") == (status, True)
    assert registry.register("s", STRING) == 1


@pytest.mark.parametrize("kind", ["AVRO", "JSON", "PROTOBUF"])
def test_nested_schemas_end_nothing(registry: Rest, kind: str) -> None:
    """Schemas nested as deep as a body of a megabyte allows are answered."""
    deep = {
        "AVRO": '{"type":"array","items":' * 20_000 + STRING + "}" * 20_000,
        "JSON": '{"items":' * 20_000 + "{}" + "}" * 20_000,
        "PROTOBUF": 'syntax = "proto3";' + "message M {" * 20_000 + "}" * 20_000,
    }
    body = {"schema": deep[kind], "schemaType": kind}
    assert registry.code("POST", "/subjects/s/versions", body) == 42201
    assert registry.get("/subjects") == []


def test_references_stay_in_their_folder(registry: Rest) -> None:
    """protoc reads files: a name that leads out of ours is refused."""
    text = 'syntax = "proto3"; message M {}'
    registry.register("other", text, "PROTOBUF")
    for name in ("../../x.proto", "/tmp/x.proto", "a/../../x.proto", "understudy_schema.proto", ""):
        body = {
            "schema": text,
            "schemaType": "PROTOBUF",
            "references": [{"name": name, "subject": "other", "version": 1}],
        }
        assert registry.code("POST", "/subjects/s/versions", body) == 42201
    body["references"][0]["name"] = "a/x.proto"  # type: ignore[index]
    assert registry.ask("POST", "/subjects/s/versions", body)[0] == 200


def test_references_that_no_files_can_have_beside_each_other(registry: Rest) -> None:
    """Names that are too long, and a folder with the name of a file: an invalid schema, no failure."""
    text = 'syntax = "proto3"; message M {}'
    registry.register("other", text, "PROTOBUF")
    for names in (["x" * 300], ["a", "a/b"], ["a/" * 3000 + "b"]):
        references = [{"name": name, "subject": "other", "version": 1} for name in names]
        body = {"schema": text, "schemaType": "PROTOBUF", "references": references}
        assert registry.code("POST", "/subjects/s/versions", body) == 42201


def test_a_page_of_another_site_is_refused(registry: Rest) -> None:
    """Its visitor's browser would send it."""
    assert registry.raw("GET", "/subjects", headers={"Origin": "https://other.example"})[0] == 403
    assert registry.raw("GET", "/subjects", headers={"Origin": registry.url})[0] == 200


def test_three_brokers_have_one_registry(registry_with: RegistryWith) -> None:
    """A registration waits for the in-sync replicas, half a second of the cluster's clock at most."""
    registry = registry_with(brokers=3, settings={"default.replication.factor": 3})
    registry.register("s", STRING)
    partition = registry.server.control("GET", "/v1/topics/_schemas/partitions/0")
    assert len(partition["replicas"]) == 3
    follower = next(each for each in partition["replicas"] if each != partition["leader"])
    where = "/v1/topics/_schemas/partitions/0/isr"
    registry.server.control("POST", where, {"replicas": partition["replicas"], "held": [follower]})
    assert registry.code("POST", "/subjects/s/versions", {"schema": '["null","string"]'}) == 50002
