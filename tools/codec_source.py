"""Generates the source of a module of readers or writers: one function for each layout of a struct."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Mapping

from tools.schema_fields import Field, Layout, snake_case

NUMBERS = {"int8": "b", "int16": "h", "int32": "i", "int64": "q"}
"""Types whose arrays are read and written by one call of :mod:`struct`."""


class CodecSource(ABC):
    """The functions of one module, each after those that it calls, and their imports."""

    verb: str
    function_type: str
    """Name of the functions' type, in the module of their building blocks."""
    parts: str
    """Name of that module."""
    method: str
    """The method of :class:`struct.Struct` that they use."""

    def __init__(self, messages: str) -> None:
        self._messages = messages
        self._names: dict[Layout, str] = {}
        self._lines: list[str] = []
        self._formats: set[str] = set()
        self._imports: dict[str, set[str]] = defaultdict(set)
        self._version = 0

    def module(self, head: str, layouts: Mapping[int, Layout]) -> str:
        """Return the module's source, for the layouts of a message's versions."""
        by_function: dict[str, list[int]] = defaultdict(list)
        for self._version, layout in layouts.items():
            by_function[self.function(layout)].append(self._version)
        table = [
            f"    {', '.join(f'{version}: {name}' for version in versions)}," for name, versions in by_function.items()
        ]
        self.use("collections.abc", "Mapping")
        self.use("typing", "Final")
        self.use(self.parts, self.function_type)
        if self._formats:
            self.use("struct", "Struct")
        name = f"{self.function_type.upper()}S"
        formats = [f'{format_name(codes)}: Final = Struct(">{codes}").{self.method}' for codes in sorted(self._formats)]
        ending = ["", f"{name}: Final[Mapping[int, {self.function_type}]] = {{", *table, "}", ""]
        constants = ["", *formats] if formats else []
        return "\n".join([head, "", *self._import_lines(), *constants, *self._lines, *ending])

    def function(self, layout: Layout) -> str:
        """Return the name of a layout's function, after the first version that has it; generate it on first use."""
        if layout not in self._names:
            name = f"{self.verb}_{snake_case(layout.cls)}_{self._version}"
            if name in self._names.values():
                raise ValueError(f"two layouts for {name}")
            body = self.body(layout)
            self._names[layout] = name
            self._lines += ["", self.signature(name, self.message(layout)), *(f"    {line}" for line in body)]
        return self._names[layout]

    def use(self, module: str, name: str) -> str:
        """Import a name in the module, and return it."""
        self._imports[module].add(name)
        return name

    def message(self, layout: Layout) -> str:
        """Return the class of a layout's messages."""
        return self.use(f"protocol.messages.{self._messages}", layout.cls)

    def struct_call(self, codes: str) -> str:
        """Return the name of the constant that packs or unpacks these :mod:`struct` codes."""
        self._formats.add(codes)
        return format_name(codes)

    def _import_lines(self) -> list[str]:
        groups: tuple[list[str], list[str]] = ([], [])
        for module, names in sorted(self._imports.items()):
            own = module.startswith("protocol")
            groups[own].append(f"from {module} import {', '.join(sorted(names))}")
        return [*groups[0], "", *groups[1]]

    @abstractmethod
    def signature(self, name: str, message: str) -> str:
        """Return the first line of a function."""

    @abstractmethod
    def body(self, layout: Layout) -> list[str]:
        """Return the statements of a function."""


def format_name(codes: str) -> str:
    """Return the name of the constant for these codes; the code of a boolean is not a letter."""
    return f"_{codes.replace('?', 't')}"


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
