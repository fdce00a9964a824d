"""Decodes data with their schema to JSON, with fastavro, Google's Protobuf and jsonschema."""

import importlib.util
import io
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, Final, NoReturn

from pipeline.values.texts import sound
from pipeline.values.wire_format import FormatError, message_indexes

AVRO: Final = "AVRO"
PROTOBUF: Final = "PROTOBUF"
JSON: Final = "JSON"
LIBRARIES: Final = {AVRO: ("fastavro",), PROTOBUF: ("grpc_tools", "google.protobuf"), JSON: ("jsonschema",)}
SUFFIXES: Final = {".avsc": AVRO, ".proto": PROTOBUF, ".json": JSON}
_PATIENCE_S: Final = 60  # for protoc, which reads every schema of an export; ours, as it takes seconds
_MAIN: Final = "schema.proto"


class SchemaError(ValueError):
    """An unusable schema; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema's type and text, and the schemas that it references, by name.

    For Protobuf also the message to use, if it is not the first one, and protoc's output.
    """

    kind: str
    text: str
    references: Mapping[str, "Schema"] = field(default_factory=dict)
    message: str = ""
    compiled: bytes = b""


Decode = Callable[[bytes], str]
"""Data -> JSON. Raises FormatError."""


def read_file(text: str, side: str) -> tuple[tuple[str, str | None], Schema]:
    """Read a schema from the command line: `FILE`, `TOPIC=FILE`; for Protobuf also `FILE#package.Message`.

    Raises:
        SchemaError: the file cannot be read, or its name does not show its type.
    """
    topic, is_named, name = text.rpartition("=")
    name, _, message = name.partition("#")
    path = Path(name)
    kind = SUFFIXES.get(path.suffix)
    if kind is None:
        raise SchemaError(f"--{side}-schema {text}: the name of the file ends with {', '.join(SUFFIXES)}")
    try:
        content = path.read_text(encoding="utf-8")
        compiled_files = compiled(path.resolve().parent, path.name) if kind == PROTOBUF else b""
    except (OSError, ValueError) as error:
        raise SchemaError(f"--{side}-schema {text}: {error}") from None
    return (side, topic if is_named else None), Schema(kind, content, message=message, compiled=compiled_files)


def missing_library(kind: str) -> str | None:
    """Return the first missing library for this type."""
    for name in LIBRARIES[kind]:
        try:
            if importlib.util.find_spec(name) is None:
                return name
        except ModuleNotFoundError:
            return name
    return None


def decoder(schema: Schema, *, framed: bool) -> Decode:
    """Return a decoder for a schema; `framed`: the data follow a schema id, so Protobuf data have message indexes.

    Raises:
        SchemaError: the schema cannot be used, or its library is not installed.
    """
    if schema.kind not in LIBRARIES:
        raise SchemaError(f"schemas of type {schema.kind} are not known here; there are {', '.join(LIBRARIES)}")
    if (name := missing_library(schema.kind)) is not None:
        raise SchemaError(f"schemas of type {schema.kind} need {name}; run: pip install 'understudy-kafka[values]'")
    factory = {AVRO: _avro, PROTOBUF: _protobuf, JSON: _json}[schema.kind]
    try:
        return factory(schema, framed)
    except SchemaError:
        raise
    except Exception as error:  # noqa: BLE001 - the libraries' errors have no common base
        raise SchemaError(
            f"the schema cannot be used: {str(error).splitlines()[0] if str(error) else error!r}"
        ) from None


def _avro(schema: Schema, _: bool) -> Decode:
    from fastavro import parse_schema, schemaless_reader  # noqa: PLC0415 - for this kind alone

    known: dict[str, Any] = {}
    for each in _in_order(schema):
        parsed = parse_schema(json.loads(each.text), named_schemas=known)

    def decode(data: bytes) -> str:
        stream = io.BytesIO(data)
        try:
            value = schemaless_reader(stream, parsed, None)
        except Exception as error:  # noqa: BLE001 - garbage makes it fail in many ways
            raise FormatError(f"it does not match its Avro schema: {str(error) or type(error).__name__}") from None
        if left := stream.read():
            raise FormatError(f"it does not match its Avro schema: {len(left)} bytes are left over")
        return json.dumps(plain(value), ensure_ascii=False)

    return decode


def _in_order(schema: Schema) -> list[Schema]:
    """Return the schemas that a schema references, then itself."""
    ordered: list[Schema] = []
    for each in schema.references.values():
        ordered += [one for one in _in_order(each) if one not in ordered]
    return [*ordered, schema]


def plain(value: Any) -> Any:
    """Convert an Avro value for JSON: bytes as in Avro's JSON encoding, ISO 8601 times, decimals and UUIDs as text."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _json(schema: Schema, _: bool) -> Decode:
    from jsonschema import validators  # noqa: PLC0415 - for this kind alone
    from referencing import Registry, Resource  # noqa: PLC0415 - as above
    from referencing.jsonschema import DRAFT7  # noqa: PLC0415 - as above

    document = json.loads(schema.text)
    kind = validators.validator_for(document, default=validators.Draft7Validator)
    kind.check_schema(document)
    resources = [
        (name, Resource.from_contents(json.loads(each.text), default_specification=DRAFT7))
        for name, each in schema.references.items()
    ]
    validator = kind(document, registry=Registry().with_resources(resources))

    def decode(data: bytes) -> str:
        try:
            value = json.loads(data, parse_constant=_no_number)
        except ValueError:
            raise FormatError("it is not JSON") from None
        try:
            error = next(validator.iter_errors(value), None)
        except RecursionError:
            raise
        except Exception as problem:  # noqa: BLE001 - a reference that leads nowhere, a number that is too large
            raise FormatError(f"its JSON schema cannot be applied: {problem}") from None
        if error is not None:
            raise FormatError(f"it does not match its JSON schema: {error.message}")
        return json.dumps(value, ensure_ascii=False)

    return decode


def _no_number(name: str) -> NoReturn:
    """Reject NaN and infinities, which JSON does not have."""
    raise ValueError(name)


def _protobuf(schema: Schema, framed: bool) -> Decode:
    from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory  # noqa: PLC0415 - as above

    files = descriptor_pb2.FileDescriptorSet.FromString(schema.compiled or _of_texts(schema)).file
    pool = descriptor_pool.DescriptorPool()
    for file in files:
        pool.Add(file)
    main = pool.FindFileByName(files[-1].name)  # after the files that it imports
    names = [each.name for each in files[-1].message_type]
    if not names:
        raise SchemaError("the schema has no message")
    chosen = pool.FindMessageTypeByName(schema.message) if schema.message else main.message_types_by_name[names[0]]

    def described(indexes: Sequence[int]) -> Any:
        try:
            if min(indexes) < 0:
                raise IndexError
            message_type = main.message_types_by_name[names[indexes[0]]]
            for index in indexes[1:]:
                message_type = message_type.nested_types[index]
        except IndexError:
            raise FormatError(f"its schema has no message {list(indexes)}") from None
        return message_type

    def decode(data: bytes) -> str:
        kind = chosen
        if framed:
            indexes, data = message_indexes(data)
            kind = kind if schema.message else described(indexes)
        message = message_factory.GetMessageClass(kind)()
        try:
            message.ParseFromString(data)
            return str(
                json_format.MessageToJson(message, preserving_proto_field_name=True, indent=None, descriptor_pool=pool)
            )
        except Exception as error:  # noqa: BLE001 - as with Avro
            raise FormatError(f"it does not match its Protobuf schema: {error}") from None

    return decode


def compiled(folder: Path, name: str) -> bytes:
    """Compile a file in a folder, and its imports, with protoc. Raises SchemaError."""
    if (missing := missing_library(PROTOBUF)) is not None:
        raise SchemaError(f"schemas of type {PROTOBUF} need {missing}; run: pip install 'understudy-kafka[values]'")
    with tempfile.TemporaryDirectory(prefix="understudy-protoc-") as scratch:
        out = Path(scratch, "descriptors")
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", "--include_imports"]
        ended = subprocess.run(  # noqa: S603 - our own Python
            [*command, f"--descriptor_set_out={out}", name], cwd=folder, capture_output=True, check=False, text=True,
            timeout=_PATIENCE_S,
        )  # fmt: skip
        if ended.returncode:
            raise SchemaError(f"protoc refuses the schema: {(ended.stderr.strip().splitlines() or ['?'])[0]}")
        return out.read_bytes()


def _of_texts(schema: Schema) -> bytes:
    """Do the same for a schema without a file."""
    with tempfile.TemporaryDirectory(prefix="understudy-schema-") as scratch:
        folder = Path(scratch).resolve()
        for name, each in {**_imports(schema), _MAIN: schema}.items():
            path = (folder / name).resolve()
            if not path.is_relative_to(folder):
                raise SchemaError(f"it refers to a schema outside of its folder: {name}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(each.text, encoding="utf-8")
        return compiled(folder, _MAIN)


def _imports(schema: Schema) -> dict[str, Schema]:
    imported: dict[str, Schema] = {}
    for name, each in schema.references.items():
        imported |= {**_imports(each), name: each}
    return imported


def tried(decode: Decode, data: bytes) -> tuple[str | None, str | None]:
    """Return the decoded data as JSON, or why they cannot be decoded."""
    try:
        return sound(decode(data)), None
    except FormatError as error:
        return None, sound(str(error))
    except RecursionError:
        return None, "it is nested too deep"
