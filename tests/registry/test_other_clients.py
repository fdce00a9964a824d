"""Clients of schema registries in JavaScript, Go and Java; `tests/clients/setup.sh registry` fetches them."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.clients.targets import CACHE as FETCHED
from tests.clients.targets import ROOT
from tests.registry.conftest import Rest

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1200)]
HERE = Path(__file__).resolve().parent / "clients"
SETUP = ROOT / "tests" / "clients" / "setup.sh"
CACHE = FETCHED / "registry"
ORDER = {"id": "a"}


@pytest.fixture(scope="module", autouse=True)
def fetched() -> None:
    """What the clients are made of."""
    needed = ("node", "npm", "go", "java", "mvn")
    assert [tool for tool in needed if shutil.which(tool) is None] == [], "tests/clients/setup.sh toolchains"
    subprocess.run([SETUP, "registry"], check=True, timeout=500)


def printed(*command: str | Path, env: Mapping[str, str] | None = None) -> Any:
    """The JSON document that a program prints."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])  # before it there may be a log


def node(script: str, registry: Rest) -> Any:
    """What a script in clients/node prints."""
    modules = CACHE / "node" / "node_modules"
    return printed("env", f"NODE_PATH={modules}", "node", HERE / "node" / script, registry.url)


def passed(at: int) -> dict[str, Any]:
    """A value that was written and read again by the schema with this id."""
    return {"id": at, "latest": at, "magic": 0, "wire": at, "read": ORDER}


def test_kafkajs_writes_and_reads_all_formats(registry: Rest) -> None:
    """@kafkajs/confluent-schema-registry; an incompatible schema is a 409."""
    assert node("kafkajs.js", registry) == {"avro": passed(1), "json": passed(2), "protobuf": passed(3), "refused": 409}


def test_confluents_javascript_writes_and_reads(registry: Rest) -> None:
    """@confluentinc/schemaregistry, Avro and JSON."""
    output = node("confluent.js", registry)
    names = ["avro-value", "json-value"]
    assert output == {"avro": passed(1), "json": passed(2), "subjects": names, "refused": 409}


def test_franz_go_registers_steers_and_deletes(registry: Rest) -> None:
    """pkg/sr: schemas of all formats, compatibility, levels, modes, both kinds of deletion."""
    program = CACHE / "go" / "client"
    subprocess.run(["go", "build", "-o", program, "."], cwd=HERE / "go", check=True, timeout=300)
    output = printed(program, registry.url)
    schemas = {
        f"{each}-value": {"same": True, "type": each.upper(), "version": 1} for each in ("avro", "json", "protobuf")
    }
    rest = {"compatible": False, "refused": 409, "level": "FULL", "mode": "READONLY", "read": "a"}
    assert output == {**schemas, **rest, "subjects": ["avro-value", "json-value"]}


SIZE = {"type": "enum", "name": "Size", "symbols": ["S", "L"], "default": "S", "doc": "sizes"}
SPELLINGS: list[Any] = [
    {"type": "string"},
    {"type": "string", "avro.java.string": "String"},
    ["null", {"type": "int"}],
    {"items": {"type": "long", "logicalType": "timestamp-millis"}, "type": "array"},
    {"default": [], "type": "map", "values": "bytes"},
    {
        "fields": [
            {"type": SIZE, "name": "size"},
            {"name": "own", "type": {"name": "Inner", "type": "record", "fields": []}, "order": "ignore"},
            {"name": "other", "type": {"name": "x.Other", "type": "fixed", "size": 4}, "order": "ascending"},
            {"name": "once", "type": ["null", "Inner", "x.Other"], "default": None, "aliases": ["twice"], "p": 1},
        ],
        "doc": "a record",
        "name": "Outer",
        "namespace": "shop",
        "type": "record",
        "aliases": ["Old"],
        "more": {"b": 1, "a": 2},
    },
]


def test_javas_avro_writes_schemas_as_the_registry_does(registry: Rest) -> None:
    """Spring Cloud's client of Confluent's registry; texts are compared with `Schema.toString` of Avro for Java.

    Confluent's own serializers for Java are in a repository of their own, which is not reachable from here.
    """
    sent = [json.dumps(each) for each in SPELLINGS]
    output = printed("java", "-cp", f"{CACHE / 'java'}/*", HERE / "java" / "Client.java", registry.url, *sent)
    text = registry.get("/subjects/orders-value/versions/1")["schema"]
    assert (output["id"], output["read"], output["version"]) == (1, '{"id": "a"}', text)
    registry.ask("PUT", "/config", {"compatibility": "NONE"})
    kept = [registry.get(f"/schemas/ids/{registry.register(f's{at}', each)}")["schema"] for at, each in enumerate(sent)]
    assert kept == output["written"]
