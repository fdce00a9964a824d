"""Schemas, like kio's, of message versions that Kafka has and kio does not have yet.

`newer_versions.json` is derived from the message definitions of Kafka 4.4.0 by `tools/record_schemas.py`; it excludes
versions that kio has.
"""

import dataclasses
import json
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from pathlib import Path
from types import GenericAlias
from typing import Any, Final, Literal
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64, i64Timedelta

_TYPES: Final[Mapping[str, Any]] = {
    "bool": bool, "bytes": bytes, "error_code": ErrorCode, "float64": float, "int8": i8, "int16": i16, "int32": i32,
    "int64": i64, "string": str, "timedelta_i32": i32Timedelta, "timedelta_i64": i64Timedelta, "uint16": i32,
    "uuid": UUID,
}  # fmt: skip
Direction = Literal["request", "response"]


@cache
def _table() -> Any:
    return json.loads(Path(__file__).with_suffix(".json").read_text(encoding="ascii"))


def names() -> dict[int, str]:
    """Return API key -> name of its message module, for the APIs with a newer version."""
    return {int(key): api["name"] for key, api in _table().items()}


def versions_of(key: int) -> list[int]:
    """Return the versions of an API that are defined here; empty for most."""
    api = _table().get(str(int(key)))
    return [] if api is None else [int(version) for version in api["versions"]]


@cache
def schema(key: int, version: int, direction: Direction) -> Any:
    """Return a class like kio's. Raises KeyError for a version that is not defined here."""
    message = _table()[str(int(key))]["versions"][str(version)]
    kind = EntityType.request if direction == "request" else EntityType.response
    common = {"__version__": version, "__flexible__": message["flexible"], "__api_key__": int(key)}
    return _struct(message[direction], kind, common, {})


def _struct(struct: Any, kind: EntityType, common: Mapping[str, Any], classes: dict[str, Any]) -> Any:
    """Return the class of a struct; a struct that occurs twice in a message is one class."""
    name = struct["name"]
    if name not in classes:
        fields = [_field(field, common, classes) for field in struct["fields"]]
        namespace = {"__type__": kind, **common}
        classes[name] = dataclasses.make_dataclass(name, fields, frozen=True, kw_only=True, namespace=namespace)
    return classes[name]


def _field(field: Any, common: Mapping[str, Any], classes: dict[str, Any]) -> tuple[str, Any, Any]:
    metadata: dict[str, Any] = {}
    if "struct" in field:
        type_ = _struct(field["struct"], EntityType.nested, common, classes)
    else:
        type_, metadata["kafka_type"] = _TYPES[field["type"]], field["type"]
    if field.get("array"):
        type_ = GenericAlias(tuple, (type_, ...))
    if field.get("nullable") or field.get("type") == "uuid":
        type_ |= None
    if "tag" in field:
        metadata["tag"] = field["tag"]
    default = field.get("default", () if field.get("array") and "tag" in field else dataclasses.MISSING)
    if field.get("type", "").startswith("timedelta") and default is not dataclasses.MISSING:
        default = timedelta(milliseconds=default)
    return field["name"], type_, dataclasses.field(metadata=metadata, kw_only=True, default=default)
