"""Protobuf files written as text from their descriptors: one text for all spellings of the same file.

Type names are fully qualified (`.shop.Order`). Comments are dropped.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.unknown_fields import UnknownFieldSet

_Field = FieldDescriptorProto
_TYPES = {value: name.removeprefix("TYPE_").lower() for name, value in _Field.Type.items()}
_MOST_FIELD_NUMBER = 2**29  # one more than the highest number: ends of ranges are exclusive in messages, not in enums
_MOST_ENUM_NUMBER = 2**31 - 1
_NO_INDENT = ""
_STEP = "  "


def written(file: FileDescriptorProto, *, normalize: bool) -> str:
    """Return the text of a file; normalised, imports and options are in alphabetical order."""
    lines = [f'syntax = "{file.syntax or "proto2"}";']
    if file.syntax == "editions":
        lines = [f'edition = "{Edition.Name(file.edition).removeprefix("EDITION_").lower()}";']
    if file.package:
        lines.append(f"package {file.package};")
    imports = [_import(file, at, name) for at, name in enumerate(file.dependency)]
    options = list(_options(file.options))
    groups = _groups(file.extension)
    parts = [
        sorted(imports) if normalize else imports,
        [f"option {option};" for option in (sorted(options) if normalize else options)],
        *(list(_enum(enum, _NO_INDENT, file)) for enum in file.enum_type),
        *(list(_message(message, _NO_INDENT, file)) for message in file.message_type if message.name not in groups),
        list(_extensions(file.extension, _NO_INDENT, DescriptorProto(nested_type=file.message_type), file)),
        *(list(_service(service)) for service in file.service),
    ]
    for part in parts:
        if part:
            lines += ["", *part]
    return "\n".join(lines) + "\n"


def has_custom_options(message: Any) -> bool:
    """Whether a descriptor has custom options, which cannot be written without their definitions."""
    waiting = [message]
    while waiting:
        here = waiting.pop()
        if here.DESCRIPTOR.name.endswith("Options") and len(UnknownFieldSet(here)):
            return True
        for field, value in here.ListFields():
            if field.type == field.TYPE_MESSAGE:
                waiting += value if field.is_repeated else [value]
    return False


def _import(file: FileDescriptorProto, at: int, name: str) -> str:
    kind = "public " if at in file.public_dependency else "weak " if at in file.weak_dependency else ""
    return f"import {kind}{_quoted(name)};"


def _options(options: Any) -> Iterator[str]:
    """Yield `name = value` of each option that is set."""
    for field, value in options.ListFields():
        if field.name == "map_entry":
            continue
        for item in value if field.is_repeated else [value]:
            if field.type == field.TYPE_STRING:
                yield f"{field.name} = {_quoted(item)}"
            elif field.type == field.TYPE_ENUM:
                yield f"{field.name} = {field.enum_type.values_by_number[item].name}"
            elif field.type == field.TYPE_BOOL:
                yield f"{field.name} = {str(item).lower()}"
            elif field.type != field.TYPE_MESSAGE:
                yield f"{field.name} = {item}"
            elif field.name == "features":
                yield from (f"features.{inner}" for inner in _options(item))


def _message(
    message: DescriptorProto, indent: str, file: FileDescriptorProto, head: str | None = None
) -> Iterator[str]:
    inner = indent + _STEP
    yield f"{indent}{head or f'message {message.name}'} {{"
    yield from (f"{inner}option {option};" for option in _options(message.options))
    yield from _reserved(message.reserved_range, inner, _MOST_FIELD_NUMBER, inclusive=False)
    yield from _reserved_names(message.reserved_name, inner, file)
    groups = _groups([*message.field, *message.extension])
    maps = {nested.name: nested for nested in message.nested_type if nested.options.map_entry}
    written_unions: set[int] = set()
    for field in message.field:
        union = _union_of(field)
        if union is None:
            yield from _field(field, inner, message, maps, file)
        elif union not in written_unions:
            written_unions.add(union)
            yield from _oneof(message, union, inner, maps, file)
    for span in message.extension_range:
        yield f"{inner}extensions {_range(span.start, span.end, _MOST_FIELD_NUMBER, inclusive=False)};"
    yield from _extensions(message.extension, inner, message, file)
    for enum in message.enum_type:
        yield from _enum(enum, inner, file)
    for nested in message.nested_type:
        if nested.name not in maps and nested.name not in groups:
            yield from _message(nested, inner, file)
    yield f"{indent}}}"


def _groups(fields: Sequence[FieldDescriptorProto]) -> set[str]:
    """Return the names of the messages that are written with their fields, as groups."""
    return {field.type_name.rpartition(".")[2] for field in fields if field.type == _Field.TYPE_GROUP}


def _union_of(field: FieldDescriptorProto) -> int | None:
    """Return the index of a field's oneof; None for proto3's optional fields, whose synthetic oneof is not written."""
    return field.oneof_index if field.HasField("oneof_index") and not field.proto3_optional else None


def _oneof(
    message: DescriptorProto, union: int, indent: str, maps: dict[str, DescriptorProto], file: FileDescriptorProto
) -> Iterator[str]:
    declared = message.oneof_decl[union]
    yield f"{indent}oneof {declared.name} {{"
    yield from (f"{indent}{_STEP}option {option};" for option in _options(declared.options))
    for field in message.field:
        if _union_of(field) == union:
            yield from _field(field, indent + _STEP, message, maps, file)
    yield f"{indent}}}"


def _field(
    field: FieldDescriptorProto,
    indent: str,
    message: DescriptorProto,
    maps: dict[str, DescriptorProto],
    file: FileDescriptorProto,
) -> Iterator[str]:
    options = [*([f"default = {_default(field)}"] if field.HasField("default_value") else []), *_options(field.options)]
    if field.HasField("json_name") and field.json_name != _json_name(field.name):
        options.append(f"json_name = {_quoted(field.json_name)}")
    tail = _tail(field, options)
    entry = maps.get(field.type_name.rpartition(".")[2])
    if entry is not None and field.label == _Field.LABEL_REPEATED:
        key, value = entry.field
        yield f"{indent}map<{_type(key)}, {_type(value)}> {field.name}{tail};"
        return
    label = _label(field, file)
    if field.type == _Field.TYPE_GROUP:
        name = field.type_name.rpartition(".")[2]
        for nested in message.nested_type:
            if nested.name == name:
                yield from _message(nested, indent, file, f"{label}group {name}{tail}")
        return
    yield f"{indent}{label}{_type(field)} {field.name}{tail};"


def _tail(field: FieldDescriptorProto, options: Sequence[str]) -> str:
    shown = f" [{', '.join(options)}]" if options else ""
    return f" = {field.number}{shown}"


def _label(field: FieldDescriptorProto, file: FileDescriptorProto) -> str:
    """Return `repeated `, `optional `, `required ` or nothing, by the syntax of the file."""
    if field.label == _Field.LABEL_REPEATED:
        return "repeated "
    if file.syntax == "proto3":
        return "optional " if field.proto3_optional else ""
    if file.syntax == "editions" or field.HasField("oneof_index"):
        return ""
    return "required " if field.label == _Field.LABEL_REQUIRED else "optional "


def _type(field: FieldDescriptorProto) -> str:
    return str(field.type_name or _TYPES[field.type])


def _default(field: FieldDescriptorProto) -> str:
    if field.type == _Field.TYPE_STRING:
        return _quoted(field.default_value)
    return f'"{field.default_value}"' if field.type == _Field.TYPE_BYTES else field.default_value


def _extensions(
    fields: Sequence[FieldDescriptorProto], indent: str, within: DescriptorProto, file: FileDescriptorProto
) -> Iterator[str]:
    """Write extensions of other messages; messages of groups among them are those of ``within``."""
    for target in dict.fromkeys(field.extendee for field in fields):
        yield f"{indent}extend {target} {{"
        for field in fields:
            if field.extendee == target:
                yield from _field(field, indent + _STEP, within, {}, file)
        yield f"{indent}}}"


def _enum(enum: EnumDescriptorProto, indent: str, file: FileDescriptorProto) -> Iterator[str]:
    inner = indent + _STEP
    yield f"{indent}enum {enum.name} {{"
    yield from (f"{inner}option {option};" for option in _options(enum.options))
    yield from _reserved(enum.reserved_range, inner, _MOST_ENUM_NUMBER, inclusive=True)
    yield from _reserved_names(enum.reserved_name, inner, file)
    for value in enum.value:
        options = ", ".join(_options(value.options))
        yield f"{inner}{value.name} = {value.number}{f' [{options}]' if options else ''};"
    yield f"{indent}}}"


def _service(service: ServiceDescriptorProto) -> Iterator[str]:
    yield f"service {service.name} {{"
    yield from (f"{_STEP}option {option};" for option in _options(service.options))
    for method in service.method:
        request = f"{'stream ' if method.client_streaming else ''}{method.input_type}"
        answered = f"{'stream ' if method.server_streaming else ''}{method.output_type}"
        options = list(_options(method.options))
        body = f" {{ {' '.join(f'option {option};' for option in options)} }}" if options else ";"
        yield f"{_STEP}rpc {method.name} ({request}) returns ({answered}){body}"
    yield "}"


def _reserved(ranges: Any, indent: str, most: int, *, inclusive: bool) -> Iterator[str]:
    if ranges:
        numbers = (_range(span.start, span.end, most, inclusive=inclusive) for span in ranges)
        yield f"{indent}reserved {', '.join(numbers)};"


def _reserved_names(names: Sequence[str], indent: str, file: FileDescriptorProto) -> Iterator[str]:
    """Write reserved names: texts, and in editions identifiers."""
    if names:
        shown = names if file.syntax == "editions" else map(_quoted, names)
        yield f"{indent}reserved {', '.join(shown)};"


def _range(start: int, end: int, most: int, *, inclusive: bool) -> str:
    """Format a range of numbers; for messages, descriptors have an exclusive end."""
    last = end if inclusive else end - 1
    shown = "max" if end >= most else str(last)
    return str(start) if last == start else f"{start} to {shown}"


def _json_name(name: str) -> str:
    """Return the default JSON name of a field."""
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
