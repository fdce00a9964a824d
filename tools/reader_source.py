"""Generates the source of readers."""

from __future__ import annotations

import keyword
import struct

from tools.codec_source import NUMBERS, CodecSource, runs
from tools.schema_fields import FIXED, Field, Layout

_TAKEN = {"frame", "at", "budget", "count", "message", "tag", "tags", "end"}


class ReaderSource(CodecSource):
    """Functions (frame, position, budget) -> (message, position after it)."""

    verb, function_type, parts, method = "read", "Reader", "protocol.readers", "unpack_from"

    def __init__(self, messages: str, *, requests: bool) -> None:
        super().__init__(messages)
        self._requests = requests

    def signature(self, name: str, message: str) -> str:
        """Return the first line of a reader, typed by the class."""
        for part in ("Budget", "Buffer"):
            self.use("protocol.types" if part == "Buffer" else self.parts, part)
        return f"def {name}(frame: Buffer, at: int, budget: Budget) -> tuple[{message}, int]:"

    def body(self, layout: Layout) -> list[str]:
        """Return the statements that read the fields, make the message, and read its tags."""
        lines: list[str] = []
        arguments: list[str] = []
        for run in runs(layout.plain):
            add(lines, self._run(run) if run[0].is_fixed else self._field(run[0], layout.flexible))
            arguments += [f"{field.name}={self._argument(field)}" for field in run]
        made = f"{self.message(layout)}({', '.join(arguments)})"
        if layout.tagged:
            return [*lines, f"message = {made}", *self._tags(layout)]
        if layout.flexible:
            skip = f"{self.use(self.parts, 'skip_tags')}(frame, at, budget) if frame[at] else at + 1"  # nearly always
            return [*lines, f"return {made}, {skip}"]
        end = lines.pop().replace("+=", "+") if lines and lines[-1].startswith("at += ") else "at"
        return [*lines, f"return {made}, {end}"]

    def _run(self, run: list[Field]) -> list[str]:
        """Return the statement that reads consecutive fields of a fixed size in one call."""
        codes = "".join(FIXED[field.kind] for field in run)
        names = [local(field) for field in run]
        target = ", ".join(names) if len(names) > 1 else f"({names[0]},)"
        return [f"{target} = {self.struct_call(codes)}(frame, at)", f"at += {struct.calcsize('>' + codes)}"]

    def _argument(self, field: Field) -> str:
        """Return a constructor argument, made from the field's local variable."""
        if field.array and field.kind not in NUMBERS and not field.nullable:
            return f"tuple({local(field)})"
        return self._converted(field.kind, local(field)) if field.is_fixed else local(field)

    def _converted(self, kind: str, value: str) -> str:
        if kind == "uuid":
            return f"{self.use(self.parts, 'uuid_or_none')}({value})"
        if kind == "error_code":
            return f"{self.use('protocol.errors', 'ErrorCode')}({value})"
        return value

    def _field(self, field: Field, flexible: bool) -> list[str]:
        name = local(field)
        if field.array:
            return self._array(field, flexible, name)
        if field.struct is None:
            return [f"{name}, at = {self._variable(field.kind, flexible, nullable=field.nullable)}"]
        read = f"{self.function(field.struct)}(frame, at, budget)"
        if not field.nullable:
            return [f"{name}, at = {read}"]
        message = self.message(field.struct)
        return [f"{name}: {message} | None = None", "at += 1", "if frame[at - 1] < 128:", f"    {name}, at = {read}"]

    def _variable(self, kind: str, flexible: bool, *, nullable: bool) -> str:
        """Return the call that reads a string, bytes or records."""
        compact = "compact_" if flexible else ""
        if kind == "records" and self._requests:
            read = f"read_{compact}records"
        else:
            read = f"read_{compact}{'nullable_' if nullable else ''}{'string' if kind == 'string' else 'bytes'}"
        return f"{self.use(self.parts, read)}(frame, at)"

    def _array(self, field: Field, flexible: bool, name: str) -> list[str]:
        prefix = f"read_{'compact_' if flexible else ''}{'nullable_' if field.nullable else ''}"
        if field.kind in NUMBERS:
            read = self.use(self.parts, f"{prefix}numbers")
            return [f'{name}, at = {read}(frame, at, budget, "{NUMBERS[field.kind]}")']
        lines = [f"count, at = {self.use(self.parts, f'{prefix}count')}(frame, at, budget)"]
        one = f"{name}_item"
        if field.struct is not None:
            element = [f"{one}, at = {self.function(field.struct)}(frame, at, budget)"]
            kind = self.message(field.struct)
        elif field.kind == "uuid":
            element = [f"({one},) = {self.struct_call('16s')}(frame, at)", "at += 16"]
            kind = f"{self.use('uuid', 'UUID')} | None"
        else:
            element = [f"{one}, at = {self._variable(field.kind, flexible, nullable=False)}"]
            kind = "str"
        items = f"{name}_items" if field.nullable else name
        append = f"{items}.append({self._converted(field.kind, one)})"
        lines += [f"{items}: list[{kind}] = []", "for _ in range(count):"]
        lines += [f"    {line}" for line in (*element, append)]
        return [*lines, f"{name} = None if count < 0 else tuple({items})"] if field.nullable else lines

    def _tags(self, layout: Layout) -> list[str]:
        """Return the statements of the tag section: known tags fill the message, others are skipped."""
        lines = ["if not frame[at]:", "    return message, at + 1"]  # nearly always
        lines.append(f"tags, at = {self.use(self.parts, 'read_tags')}(frame, at, budget)")
        lines += ["for _ in range(tags):", f"    tag, at, end = {self.use(self.parts, 'read_tag')}(frame, at)"]
        for field in layout.tagged:
            lines.append(f"    if tag == {field.tag}:")
            lines += [f"        {line}" for line in self._tagged(field)]
        return [*lines, "    at = end", "return message, at"]

    def _tagged(self, field: Field) -> list[str]:
        """Return the statement that reads a tagged value; its struct is never null, its string may be."""
        target = f"message.{field.name}"
        if field.array:
            return [*self._array(field, True, local(field)), f"{target} = {self._argument(field)}"]
        if field.struct is not None:
            return [f"{target}, at = {self.function(field.struct)}(frame, at, budget)"]
        if field.is_fixed:
            lines = self._run([field])[:1]
            return [*lines, f"{target} = {self._argument(field)}"]
        nullable = field.default is not None and field.default.value is None
        return [f"{target}, at = {self._variable(field.kind, True, nullable=nullable)}"]


def add(lines: list[str], more: list[str]) -> None:
    """Append statements; merge a preceding position increment into the first one, if that reads from the frame."""
    if lines and lines[-1].startswith("at += ") and "(frame, at" in more[0]:
        step = lines.pop().removeprefix("at += ")
        more = [more[0].replace("(frame, at", f"(frame, at + {step}"), *more[1:]]
        if more[1:2] and more[1].startswith("at += "):
            more[1] = f"at += {int(step) + int(more[1].removeprefix('at += '))}"
    lines += more


def local(field: Field) -> str:
    """Return the local variable for a field."""
    return f"{field.name}_" if field.name in _TAKEN or keyword.iskeyword(field.name) else field.name
