"""What is kept in `_schemas`: reset, snapshots, restarts, and records that others wrote."""

import base64
import json
from pathlib import Path

from tests.registry.conftest import RegistryWith, Rest
from tests.serving import Server, start

STRING, INT = '"string"', '"int"'


def records(registry: Rest) -> list[tuple[str | None, str | None]]:
    """Keys and values of the topic."""
    stored = registry.server.control("GET", "/v1/topics/_schemas/partitions/0/records?limit=1000")["records"]
    return [(text(each["key"]), text(each["value"])) for each in stored]


def text(value: object) -> str | None:
    """A key or a value as the control plane shows it."""
    if isinstance(value, dict):
        return base64.b64decode(value["base64"]).decode()
    return None if value is None else str(value)


def test_records_are_those_of_confluents_registry(registry: Rest) -> None:
    """Keys byte for byte, since the cleaner compares bytes."""
    registry.register("s", STRING)
    registry.ask("PUT", "/config", {"compatibility": "full"})
    registry.ask("PUT", "/mode/s", {"mode": "READWRITE"})
    registry.ask("DELETE", "/subjects/s")
    registry.ask("DELETE", "/subjects/s?permanent=true")
    assert records(registry) == [
        (
            '{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}',
            '{"subject":"s","version":1,"id":1,"schema":"\\"string\\"","deleted":false}',
        ),
        ('{"keytype":"CONFIG","subject":null,"magic":0}', '{"compatibilityLevel":"FULL"}'),
        ('{"keytype":"MODE","subject":"s","magic":0}', '{"subject":"s","mode":"READWRITE"}'),
        ('{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}', '{"subject":"s","version":1}'),
        ('{"keytype":"MODE","subject":"s","magic":0}', None),
        ('{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', None),
    ]


def test_a_reset_forgets_and_a_snapshot_brings_back(registry: Rest) -> None:
    """Ids begin at 1 again after a reset, and go on where the snapshot was taken after a restore."""
    assert registry.register("s", STRING) == 1
    snapshot = registry.server.control("POST", "/v1/snapshots")["id"]
    assert registry.register("t", INT) == 2
    registry.server.reset()
    assert registry.get("/subjects") == []
    assert registry.register("u", INT) == 1
    registry.server.control("POST", f"/v1/snapshots/{snapshot}/restore")
    assert registry.get("/subjects") == ["s"]
    assert registry.register("u", INT) == 2


def test_a_reset_may_keep_topics_and_with_them_the_registry(registry: Rest) -> None:
    """Schemas are records, as all that topics hold."""
    registry.register("s", STRING)
    registry.server.control("POST", "/v1/reset", {"keep": ["topics"]})
    assert registry.get("/subjects") == ["s"]


def test_a_data_directory_goes_on_after_a_restart(tmp_path: Path) -> None:
    """Schemas, deletions, settings and the next id."""
    process = start(data_dir=tmp_path / "data", schema_registry=0)
    registry = Rest(Server(process))
    try:
        registry.register("s", STRING)
        registry.register("t", INT)
        registry.ask("DELETE", "/subjects/t")
        registry.ask("PUT", "/config/s", {"compatibility": "NONE"})
    finally:
        process.stop()
    process = start(data_dir=tmp_path / "data", schema_registry=0)
    registry = Rest(Server(process))
    try:
        assert registry.get("/subjects") == ["s"]
        assert registry.get("/subjects?deleted=true") == ["s", "t"]
        assert registry.get("/config/s") == {"compatibilityLevel": "NONE"}
        assert registry.register("s", INT) == 2
        assert registry.register("s", '"long"') == 3
    finally:
        process.stop()


def test_records_that_others_write_count(registry: Rest) -> None:
    """As those of another registry on the same topic; what cannot be read changes nothing."""
    key = json.dumps({"keytype": "SCHEMA", "subject": "s", "version": 7, "magic": 1})
    value = json.dumps({"subject": "s", "version": 7, "id": 40, "md5": "eA==", "schema": STRING, "deleted": False})
    rows = [
        {"key": key, "value": value},
        {"key": "no JSON", "value": "{"},
        {"key": key.replace("7", '"x"'), "value": "1"},
    ]
    noop = {"key": '{"keytype":"NOOP","magic":0}', "value": None}
    registry.server.control("POST", "/v1/topics/_schemas/records", {"records": [*rows, noop]})
    assert registry.get("/subjects/s/versions") == [7]
    assert registry.get("/schemas/ids/40") == {"schema": STRING}
    assert registry.register("s", '["null","string"]') == 41
    assert registry.get("/subjects/s/versions") == [7, 8]


def test_a_topic_that_was_deleted_comes_back_with_the_next_registration(registry: Rest) -> None:
    """The next registration creates the topic again: one partition, compacted."""
    registry.register("s", STRING)
    registry.server.control("DELETE", "/v1/topics/_schemas")
    assert registry.get("/subjects") == []
    assert registry.register("s", INT) == 1
    topic = registry.server.control("GET", "/v1/topics/_schemas")
    assert (len(topic["partitions"]), topic["configs"]) == (1, {"cleanup.policy": "compact"})


def test_without_a_leader_schemas_are_read_and_not_written(registry: Rest) -> None:
    """As a registry whose topic is gone for a while: what is known stays, a registration fails with 50001."""
    registry.register("s", STRING)
    registry.server.control("POST", "/v1/brokers/1/kill")
    registry.server.advance(60_000)
    assert registry.get("/schemas/ids/1") == {"schema": STRING}
    body = {"schema": INT}
    assert registry.code("POST", "/subjects/t/versions", body) == 50001
    registry.server.control("POST", "/v1/brokers/1/start")
    assert registry.register("t", INT) == 2


def test_the_cleaner_leaves_what_counts(registry_with: RegistryWith) -> None:
    """A registry that reads the compacted topic from its start knows the same, and gives no id again."""
    registry = registry_with(settings={"log.segment.bytes": 1_048_576, "log.cleaner.min.cleanable.ratio": 0})
    registry.ask("PUT", "/config", {"compatibility": "NONE"})
    for at in range(3):
        registry.register("s", {"type": "fixed", "name": "F", "size": at + 1})
    for level in ("FULL", "FORWARD", "NONE"):
        registry.ask("PUT", "/config/s", {"compatibility": level})
    registry.ask("DELETE", "/subjects/s/versions/1")
    registry.ask("DELETE", "/subjects/s/versions/1?permanent=true")
    control = registry.server.control
    control(
        "POST", "/v1/clock/advance", {"ms": 7 * 24 * 3_600_000 + 1}
    )  # segment.ms: the active segment is never cleaned
    registry.register("t", STRING)
    before = len(records(registry))
    assert control("POST", "/v1/compaction/run") == {"logs_cleaned": 1}
    assert len(records(registry)) < before
    control("POST", f"/v1/snapshots/{control('POST', '/v1/snapshots')['id']}/restore")
    assert registry.get("/subjects/s/versions?deleted=true") == [2, 3]
    assert registry.get("/config/s") == {"compatibilityLevel": "NONE"}
    assert registry.get("/schemas/ids/4") == {"schema": STRING}
    assert registry.register("u", INT) == 5
