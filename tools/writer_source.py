"""Generates the source of writers."""

from __future__ import annotations

from tools.codec_source import NUMBERS, CodecSource, runs
from tools.schema_fields import FIXED, Field, Layout


class WriterSource(CodecSource):
    """Functions (parts, message) -> None that append the message to the parts."""

    verb, function_type, parts, method = "write", "Writer", "protocol.writers", "pack"

    def signature(self, name: str, message: str) -> str:
        """Return the first line of a writer, typed by the class."""
        return f"def {name}(out: {self.use(self.parts, 'Parts')}, message: {message}) -> None:"

    def body(self, layout: Layout) -> list[str]:
        """Return the statements that write the fields, then the tags."""
        lines = []
        for run in runs(layout.plain):
            lines += [self._run(run)] if run[0].is_fixed else self._field(run[0], layout.flexible)
        if layout.tagged:
            lines.append(f"tags: list[tuple[int, {self.use(self.parts, 'Parts')}]] = []")
            for field in layout.tagged:
                lines += self._tagged(field)
            lines += ["if tags:", f"    {self.use(self.parts, 'write_tags')}(out, tags)", "else:"]
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
        return f"{self.use(self.parts, 'uuid_bytes')}({value})" if kind == "uuid" else value

    def _variable(self, kind: str, flexible: bool, value: str, *, nullable: bool, out: str = "out") -> str:
        """Return the call that writes a string, bytes or records."""
        if kind == "string":
            write = f"write_{'compact_' if flexible else ''}{'nullable_' if nullable else ''}string"
        else:
            write = f"write_{'compact_' if flexible else ''}bytes"
        return f"{self.use(self.parts, write)}({out}, {value})"

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
        count = f"{self.use(self.parts, 'write_compact_count' if flexible else 'write_count')}({out}, {value})"
        if field.kind in NUMBERS:
            return [f'{self.use(self.parts, "write_numbers")}({out}, {count}, "{NUMBERS[field.kind]}")']
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
        lines = [f"{tagged}: {self.use(self.parts, 'Parts')} = []", *write, f"tags.append(({field.tag}, {tagged}))"]
        return [f"if {_differs(field, value)}:", *(f"    {line}" for line in lines)]


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
