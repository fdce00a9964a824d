"""Writes ``tools/newer_versions.json``: the versions of messages that kio does not have yet, as Kafka defines them.

    python tools/record_schemas.py KAFKA_CLIENTS_JAR

Kafka's message definitions are in each kafka-clients jar, under ``common/message``. Versions that kio has are left out,
so the file shrinks as kio adds them. Fields have the names and types that kio has for the version before.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.serial._introspect import EntityField, EntityTupleField, classify_field

TARGET = Path(__file__).parent.parent / "tools" / "newer_versions.json"
SINCE_RENAMED = {"TxnOffsetCommitRequest.GenerationIdOrMemberEpoch": "generation_id"}
"""Fields that were renamed without a change on the wire -> their name in older versions."""
Definition = dict[str, Any]


def definitions(jar: Path) -> dict[int, dict[str, Definition]]:
    """Return API key -> "request" and "response" -> the definition, for broker and controller APIs."""
    by_key: dict[int, dict[str, Definition]] = {}
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.startswith("common/message/") and name.endswith(("Request.json", "Response.json")):
                text = re.sub(r"^\s*//.*$", "", archive.read(name).decode(), flags=re.MULTILINE)
                definition = json.loads(text)
                by_key.setdefault(definition["apiKey"], {})[definition["type"]] = definition
    return by_key


def span(text: str) -> tuple[int, int]:
    """Return "3+", "0-5", "2" or "none" as lowest and highest version."""
    if text == "none":
        return 1, 0
    low, _, high = text.removesuffix("+").partition("-")
    return int(low), 32767 if text.endswith("+") else int(high or low)


def within(version: int, text: str) -> bool:
    """Return whether a version is in a range of the definitions."""
    low, high = span(text)
    return low <= version <= high


def snake(name: str) -> str:
    """Return "ClusterId" as "cluster_id"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def struct_of(name: str, fields: list[Definition], version: int, common: dict[str, Definition], before: Any) -> Any:
    """Return one struct of one version, with its inner structs."""
    known = {} if before is None else {field.name: field for field in dataclasses.fields(before)}
    rows = [field_of(name, field, version, common, known) for field in fields if within(version, field["versions"])]
    return {"name": name, "fields": rows}


def field_of(owner: str, field: Definition, version: int, common: dict[str, Definition], known: dict[str, Any]) -> Any:
    """Return one field in the form of the JSON file."""
    kind = field["type"].removeprefix("[]")
    own = SINCE_RENAMED.get(f"{owner}.{field['name']}", snake(field["name"]))
    timed = own.endswith("_ms") and kind in ("int32", "int64")
    row: dict[str, Any] = {"name": own.removesuffix("_ms") if timed else own}
    if own in known:
        row["name"] = own
    before = known.get(row["name"])
    if kind[0].isupper():
        shape = None if before is None else classify_field(before)
        older = shape.type_ if isinstance(shape, EntityField | EntityTupleField) else None
        inner = field.get("fields") or common[kind]["fields"]
        row["struct"] = struct_of(kind, inner, version, common, older)
    else:
        kio_type = "" if before is None else str(before.metadata.get("kafka_type", ""))
        if kio_type.endswith(kind.removeprefix("int")) or (kind == "int16" and kio_type == "error_code"):
            row["type"] = kio_type
        elif kind == "int16" and field["name"] == "ErrorCode":
            row["type"] = "error_code"
        else:
            row["type"] = f"timedelta_i{kind.removeprefix('int')}" if timed else kind
    if field["type"].startswith("[]"):
        row["array"] = True
    if within(version, field.get("nullableVersions", "none")):
        row["nullable"] = True
    if within(version, field.get("taggedVersions", "none")):
        row["tag"] = field["tag"]
    # A field that kio has keeps kio's default, so that an omitted field means the same in all versions.
    if "default" in field and (before is None or before.default is not dataclasses.MISSING):
        row["default"] = default_of(field["default"], kind)
    return row


def default_of(value: Any, kind: str) -> Any:
    """Return the value of a default, which the definitions may give as text even for numbers."""
    if value in ("null", None):
        return None
    if kind == "bool":
        return value in (True, "true")
    return int(value, 0) if kind.startswith("int") and isinstance(value, str) else value


def newer_versions(jar: Path) -> dict[str, Any]:
    """Return the versions that kio does not have, by API key."""
    newer: dict[str, Any] = {}
    for key, pair in sorted(definitions(jar).items()):
        name = api_key_map.get(key)
        known = schema_name_map[name] if name else {}
        low, high = span(pair["request"]["validVersions"])
        missing = [version for version in range(low, high + 1) if version > max(known, default=-1)]
        if not missing:
            continue
        versions = {}
        for version in missing:
            versions[str(version)] = {
                "flexible": within(version, pair["request"]["flexibleVersions"]),
                **{kind: message(pair[kind], version, key, max(known, default=-1)) for kind in ("request", "response")},
            }
        title = str(pair["request"]["name"]).removesuffix("Request")
        newer[str(key)] = {"name": name or snake(title), "versions": versions}
    return newer


def message(definition: Definition, version: int, key: int, before: int) -> Any:
    """Return one message of one version."""
    load = {"request": load_request_schema, "response": load_response_schema}[definition["type"]]
    older = load(key, before) if before >= 0 else None
    common = {each["name"]: each for each in definition.get("commonStructs", ())}
    return struct_of(definition["name"], definition["fields"], version, common, older)


def main() -> None:
    """Write the file."""
    newer = newer_versions(Path(sys.argv[1]))
    rows = []
    for key, api in newer.items():
        versions = ",\n".join(
            f'   "{version}": {{"flexible": {json.dumps(each["flexible"])},\n'
            f'    "request": {json.dumps(each["request"])},\n    "response": {json.dumps(each["response"])}}}'
            for version, each in api["versions"].items()
        )
        rows.append(f' "{key}": {{"name": "{api["name"]}", "versions": {{\n{versions}}}}}')
    TARGET.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
