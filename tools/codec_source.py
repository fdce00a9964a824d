"""Source of the readers and writers in a generated module: one function for each layout of a struct."""

from __future__ import annotations

import keyword
import struct
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Mapping

from tools.schema_fields import FIXED, Field, Layout, snake_case

WIDTH = 120
NUMBERS = {"int8": "b", "int16": "h", "int32": "i", "int64": "q"}
"""Types whose arrays are read and written by one call of :mod:`struct`."""
_TAKEN = {"frame", "at", "budget", "count", "message", "tag", "tags", "end"}


class Imports:
    """The names that a module imports."""

    def __init__(self) -> None:
        self._names: dict[str, set[str]] = defaultdict(set)

    def use(self, module: str, name: str) -> str:
        """Import a name, and return it."""
        self._names[module].add(name)
        return name

    def lines(self) -> list[str]:
        """Return the statements: the standard library's, then ours."""
        groups: tuple[list[str], list[str]] = ([], [])
        for module, names in sorted(self._names.items()):
            text = f"from {module} import {', '.join(sorted(names))}"
            if len(text) > WIDTH:
                text = f"from {module} import (\n{wrapped(sorted(names))}\n)"
            groups[module.startswith("protocol")].append(text)
        return ["from __future__ import annotations", "", *groups[0], "", *groups[1]]


class CodecSource(ABC):
    """The readers or the writers of one API's messages, each after those that it calls."""

    verb: str
    function_type: str
    """Name of the functions' type, in the module of their building blocks."""
    parts: str
    """Name of that module."""
    method: str
    """The method of :class:`struct.Struct` that they use."""

    def __init__(self, imports: Imports) -> None:
        self._imports = imports
        self._names: dict[Layout, str] = {}
        self._lines: list[str] = []
        self._formats: set[str] = set()
        self._version = 0

    @property
    def lines(self) -> list[str]:
        """The source: constants, then functions."""
        formats = sorted(self._formats)
        if formats:
            self._imports.use("struct", "Struct")
            self._imports.use("typing", "Final")
        constants = [f'{self._constant(codes)}: Final = Struct(">{codes}").{self.method}' for codes in formats]
        return [*constants, *self._lines]

    def table(self, what: str, layouts: Mapping[int, Layout]) -> list[str]:
        """Return the source of the table of functions by version, for the layouts of a message's versions."""
        entries = []
        for self._version, layout in layouts.items():
            entries.append(f"{self._version}: {self.function(layout)}")
        kind = self._imports.use(self.parts, self.function_type)
        self._imports.use("collections.abc", "Mapping")
        self._imports.use("typing", "Final")
        head = f"{what}_{self.function_type.upper()}S: Final[Mapping[int, {kind}]] = {{"
        return [head, wrapped(entries), "}"]

    def function(self, layout: Layout) -> str:
        """Return the name of a layout's function, after the first version that has it; generate it on first use."""
        if layout not in self._names:
            name = f"{self.verb}_{snake_case(layout.cls)}_{self._version}"
            if name in self._names.values():
                raise ValueError(f"two layouts for {name}")
            body = self.body(layout)
            self._names[layout] = name
            self._lines += [self.signature(name, layout.cls), *(f"    {line}" for line in body)]
        return self._names[layout]

    def use(self, name: str) -> str:
        """Import a building block, and return its name."""
        return self._imports.use(self.parts, name)

    def struct_call(self, codes: str) -> str:
        """Return the name of the constant that packs or unpacks these :mod:`struct` codes."""
        self._formats.add(codes)
        return self._constant(codes)

    def _constant(self, codes: str) -> str:
        return f"_{self.verb}_{codes.replace('?', 't')}"  # the code of a boolean is not a letter

    @abstractmethod
    def signature(self, name: str, message: str) -> str:
        """Return the first line of a function."""

    @abstractmethod
    def body(self, layout: Layout) -> list[str]:
        """Return the statements of a function."""


class ReaderSource(CodecSource):
    """Functions (frame, position, budget) -> (message, position after it)."""

    verb, function_type, parts, method = "read", "Reader", "protocol.readers", "unpack_from"
    of_requests = True
    """Whether a request is read, whose records are not copied."""

    def signature(self, name: str, message: str) -> str:
        """Return the first line of a reader, typed by the class."""
        buffer = self._imports.use("protocol.types", "Buffer")
        return f"def {name}(frame: {buffer}, at: int, budget: {self.use('Budget')}) -> tuple[{message}, int]:"

    def body(self, layout: Layout) -> list[str]:
        """Return the statements that read the fields, make the message, and read its tags."""
        lines: list[str] = []
        arguments: list[str] = []
        for run in runs(layout.plain):
            add(lines, self._run(run) if run[0].is_fixed else self._field(run[0], layout.flexible))
            arguments += [f"{field.name}={self._argument(field)}" for field in run]
        call = f"{layout.cls}({', '.join(arguments)})"
        if layout.tagged:
            return [*lines, f"message = {call}", *self._tags(layout)]
        if layout.flexible:
            skip = f"{self.use('skip_tags')}(frame, at, budget) if frame[at] else at + 1"  # nearly always
            return [*lines, f"return {call}, {skip}"]
        end = lines.pop().replace("+=", "+") if lines and lines[-1].startswith("at += ") else "at"
        return [*lines, f"return {call}, {end}"]

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
            return f"{self.use('uuid_or_none')}({value})"
        if kind == "error_code":
            return f"{self._imports.use('protocol.errors', 'ErrorCode')}({value})"
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
        declared = f"{name}: {field.struct.cls} | None = None"
        return [declared, "at += 1", "if frame[at - 1] < 128:", f"    {name}, at = {read}"]

    def _variable(self, kind: str, flexible: bool, *, nullable: bool) -> str:
        """Return the call that reads a string, bytes or records."""
        compact = "compact_" if flexible else ""
        if kind == "records" and self.of_requests:
            read = f"read_{compact}records"
        else:
            read = f"read_{compact}{'nullable_' if nullable else ''}{'string' if kind == 'string' else 'bytes'}"
        return f"{self.use(read)}(frame, at)"

    def _array(self, field: Field, flexible: bool, name: str) -> list[str]:
        prefix = f"read_{'compact_' if flexible else ''}{'nullable_' if field.nullable else ''}"
        if field.kind in NUMBERS:
            return [f'{name}, at = {self.use(f"{prefix}numbers")}(frame, at, budget, "{NUMBERS[field.kind]}")']
        lines = [f"count, at = {self.use(f'{prefix}count')}(frame, at, budget)"]
        one = f"{name}_item"
        if field.struct is not None:
            element = [f"{one}, at = {self.function(field.struct)}(frame, at, budget)"]
            kind = field.struct.cls
        elif field.kind == "uuid":
            element = [f"({one},) = {self.struct_call('16s')}(frame, at)", "at += 16"]
            kind = f"{self._imports.use('uuid', 'UUID')} | None"
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
        lines.append(f"tags, at = {self.use('read_tags')}(frame, at, budget)")
        lines += ["for _ in range(tags):", f"    tag, at, end = {self.use('read_tag')}(frame, at)"]
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
            return [*self._run([field])[:1], f"{target} = {self._argument(field)}"]
        nullable = field.default is not None and field.default.value is None
        return [f"{target}, at = {self._variable(field.kind, True, nullable=nullable)}"]


class WriterSource(CodecSource):
    """Functions (parts, message) -> None that append the message to the parts."""

    verb, function_type, parts, method = "write", "Writer", "protocol.writers", "pack"

    def signature(self, name: str, message: str) -> str:
        """Return the first line of a writer, typed by the class."""
        return f"def {name}(out: {self.use('Parts')}, message: {message}) -> None:"

    def body(self, layout: Layout) -> list[str]:
        """Return the statements that write the fields, then the tags."""
        lines = []
        for run in runs(layout.plain):
            lines += [self._run(run)] if run[0].is_fixed else self._field(run[0], layout.flexible)
        if layout.tagged:
            lines.append(f"tags: list[tuple[int, {self.use('Parts')}]] = []")
            for field in layout.tagged:
                lines += self._tagged(field)
            lines += ["if tags:", f"    {self.use('write_tags')}(out, tags)", "else:"]
            lines.append('    out.append(b"\\0")')  # nearly always
        elif layout.flexible:
            lines.append('out.append(b"\\0")')
        return lines or ["pass"]

    def _run(self, run: list[Field], out: str = "out") -> str:
        """Return the statement that writes consecutive fields of a fixed size in one call."""
        codes = "".join(FIXED[field.kind] for field in run)
        if [field.kind for field in run] == ["uuid"]:
            return f"{out}.append({self._fixed('uuid', f'message.{run[0].name}')})"
        values = [self._fixed(field.kind, f"message.{field.name}") for field in run]
        return f"{out}.append({self.struct_call(codes)}({', '.join(values)}))"

    def _fixed(self, kind: str, value: str) -> str:
        return f"{self.use('uuid_bytes')}({value})" if kind == "uuid" else value

    def _variable(self, kind: str, flexible: bool, value: str, *, nullable: bool, out: str = "out") -> str:
        """Return the call that writes a string, bytes or records."""
        if kind == "string":
            write = f"write_{'compact_' if flexible else ''}{'nullable_' if nullable else ''}string"
        else:
            write = f"write_{'compact_' if flexible else ''}bytes"
        return f"{self.use(write)}({out}, {value})"

    def _field(self, field: Field, flexible: bool) -> list[str]:
        value = f"message.{field.name}"
        if field.array:
            return self._array(field, flexible, value)
        if field.struct is None:
            return [self._variable(field.kind, flexible, value, nullable=field.nullable)]
        write = f"{self.function(field.struct)}(out, {value})"
        if not field.nullable:
            return [write]
        return [f"if {value} is None:", '    out.append(b"\\xff")', "else:", '    out.append(b"\\1")', f"    {write}"]

    def _array(self, field: Field, flexible: bool, value: str, out: str = "out") -> list[str]:
        count = f"{self.use('write_compact_count' if flexible else 'write_count')}({out}, {value})"
        if field.kind in NUMBERS:
            return [f'{self.use("write_numbers")}({out}, {count}, "{NUMBERS[field.kind]}")']
        if field.struct is not None:
            each = f"{self.function(field.struct)}({out}, item)"
        elif field.kind == "uuid":
            each = f"{out}.append({self._fixed(field.kind, 'item')})"
        else:
            each = self._variable(field.kind, flexible, "item", nullable=False, out=out)
        return [f"for item in {count}:", f"    {each}"]

    def _tagged(self, field: Field) -> list[str]:
        """Return the statements of a tagged field, which is left out while it equals its default."""
        value = f"message.{field.name}"
        tagged = f"{field.name}_parts"
        if field.array:
            write = self._array(field, True, value, tagged)
        elif field.struct is not None:
            write = [f"{self.function(field.struct)}({tagged}, {value})"]
        elif field.is_fixed:
            write = [self._run([field], tagged)]
        else:
            write = [self._variable(field.kind, True, value, nullable=False, out=tagged)]
        lines = [f"{tagged}: {self.use('Parts')} = []", *write, f"tags.append(({field.tag}, {tagged}))"]
        return [f"if {_differs(field, value)}:", *(f"    {line}" for line in lines)]


def wrapped(entries: list[str], width: int = WIDTH) -> str:
    """Return entries of a list as indented lines."""
    lines: list[str] = []
    for entry in entries:
        if lines and len(lines[-1]) + len(entry) + 2 <= width:
            lines[-1] += f" {entry},"
        else:
            lines.append(f"    {entry},")
    return "\n".join(lines)


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


def runs(fields: tuple[Field, ...]) -> Iterator[list[Field]]:
    """Return the fields in order: consecutive fields of a fixed size together, any other alone."""
    run: list[Field] = []
    for field in fields:
        if field.is_fixed:
            run.append(field)
            continue
        if run:
            yield run
        run = []
        yield [field]
    if run:
        yield run


def _differs(field: Field, value: str) -> str:
    """Return the condition under which a tagged field is written."""
    assert field.default is not None
    default = field.default.value
    if default is None:
        return f"{value} is not None"
    if field.array:
        if default:
            raise ValueError(f"{field.name}: an array whose default is not empty")
        return value
    if field.struct is not None:
        return " or ".join(f"{value}.{name} != {each!r}" for name, each in default)
    return f"{value} != {default!r}"
