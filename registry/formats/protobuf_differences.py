"""Incompatible changes of a Protobuf file: those that break readers of its messages.

The rules and the names of changes are those of Confluent's `protobuf-provider`: messages and oneofs may be added,
fields may be added and removed unless they are required, and be renamed; a number keeps its kind of encoding.
"""

from collections.abc import Iterator, Mapping, Sequence

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

_F = FieldDescriptorProto
Difference = tuple[str, str]
"""The name of a change, and its path."""
_VARINT, _ZIGZAG, _LENGTH, _FIXED32, _FIXED64 = "varint", "zigzag", "bytes", "fixed32", "fixed64"
_KINDS: Mapping[int, str] = {
    _F.TYPE_INT32: _VARINT,
    _F.TYPE_INT64: _VARINT,
    _F.TYPE_UINT32: _VARINT,
    _F.TYPE_UINT64: _VARINT,
    _F.TYPE_BOOL: _VARINT,
    _F.TYPE_ENUM: _VARINT,
    _F.TYPE_SINT32: _ZIGZAG,
    _F.TYPE_SINT64: _ZIGZAG,
    _F.TYPE_STRING: _LENGTH,
    _F.TYPE_BYTES: _LENGTH,
    _F.TYPE_FIXED32: _FIXED32,
    _F.TYPE_SFIXED32: _FIXED32,
    _F.TYPE_FIXED64: _FIXED64,
    _F.TYPE_SFIXED64: _FIXED64,
}
"""Groups of compatible types, with enums among the numbers; float and double are compatible with no other."""
_MESSAGES = {_F.TYPE_MESSAGE, _F.TYPE_GROUP}


def differences(original: FileDescriptorProto, update: FileDescriptorProto) -> list[Difference]:
    """List the incompatible changes from an earlier file to a later one."""
    package_changes = [] if original.package == update.package else [("PACKAGE_CHANGED", "#/")]
    return [*package_changes, *_messages(original.message_type, update.message_type, "#/")]


def _messages(old: Sequence[DescriptorProto], new: Sequence[DescriptorProto], path: str) -> Iterator[Difference]:
    later = {message.name: message for message in new}
    for message in old:
        if message.options.map_entry:
            continue
        if message.name not in later:
            yield "MESSAGE_REMOVED", f"{path}{message.name}"
        else:
            yield from _message(message, later[message.name], f"{path}{message.name}/")


def _message(old: DescriptorProto, new: DescriptorProto, path: str) -> Iterator[Difference]:
    before, after = ({field.number: field for field in message.field} for message in (old, new))
    for number in sorted(before.keys() | after.keys()):
        here = f"{path}{number}"
        if number not in after:
            if before[number].label == _F.LABEL_REQUIRED:
                yield "REQUIRED_FIELD_REMOVED", here
        elif number not in before:
            if after[number].label == _F.LABEL_REQUIRED:
                yield "REQUIRED_FIELD_ADDED", here
        else:
            yield from _field(before[number], after[number], old, new, here)
    yield from _oneofs(old, new, path)
    yield from _messages(old.nested_type, new.nested_type, path)


def _field(
    old: FieldDescriptorProto, new: FieldDescriptorProto, within: DescriptorProto, later: DescriptorProto, path: str
) -> Iterator[Difference]:
    was, now = _map_of(old, within), _map_of(new, later)
    if was is not None and now is not None:
        for one, other in zip(was.field, now.field, strict=True):
            yield from _type(one, other, path)
    elif (was is None) != (now is None):
        yield "FIELD_KIND_CHANGED", path
    else:
        yield from _type(old, new, path)
        moved = (old.label == _F.LABEL_REPEATED) != (new.label == _F.LABEL_REPEATED)
        if moved and old.type not in {_F.TYPE_MESSAGE, _F.TYPE_GROUP, _F.TYPE_STRING, _F.TYPE_BYTES}:
            yield "FIELD_NUMERIC_LABEL_CHANGED", path


def _type(old: FieldDescriptorProto, new: FieldDescriptorProto, path: str) -> Iterator[Difference]:
    if old.type == new.type:
        if old.type in _MESSAGES and old.type_name != new.type_name:
            yield "FIELD_NAMED_TYPE_CHANGED", path
    elif old.type in _MESSAGES or new.type in _MESSAGES:
        yield "FIELD_KIND_CHANGED", path
    elif _KINDS.get(old.type, old.type) != _KINDS.get(new.type, new.type):
        yield "FIELD_SCALAR_KIND_CHANGED", path


def _map_of(field: FieldDescriptorProto, message: DescriptorProto) -> DescriptorProto | None:
    """Return the entry type of a map field; None for any other field."""
    name = field.type_name.rpartition(".")[2]
    return next((nested for nested in message.nested_type if nested.name == name and nested.options.map_entry), None)


def _oneofs(old: DescriptorProto, new: DescriptorProto, path: str) -> Iterator[Difference]:
    before, after = _members(old), _members(new)
    in_some = {number for numbers in before.values() for number in numbers}
    there = {field.number for field in old.field}
    for name, numbers in after.items():
        moved = [number for number in numbers if number in there and number not in in_some]
        if name in before and moved:
            yield "FIELD_MOVED_TO_EXISTING_ONEOF", f"{path}{name}"
        elif len(moved) > 1:
            yield "MULTIPLE_FIELDS_MOVED_TO_ONEOF", f"{path}{name}"
    for name, numbers in before.items():
        if name in after:
            yield from (
                ("ONEOF_FIELD_REMOVED", f"{path}{name}/{number}") for number in numbers if number not in after[name]
            )


def _members(message: DescriptorProto) -> dict[str, list[int]]:
    """Return the fields of each oneof, except the synthetic oneofs of proto3's optional fields."""
    oneofs: dict[str, list[int]] = {}
    for field in message.field:
        if field.HasField("oneof_index") and not field.proto3_optional:
            oneofs.setdefault(message.oneof_decl[field.oneof_index].name, []).append(field.number)
    return oneofs
