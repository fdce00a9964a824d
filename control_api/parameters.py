"""Flattens query and body of a verb into parameters: the options of ``ctl`` and the arguments of Python's methods.

An object within the body is flattened one level: ``match.topic`` of a fault is the parameter ``topic``.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from control_api.fields import NO_DEFAULT, Field, fields_of


class Parameter(NamedTuple):
    """An argument of a verb."""

    field: Field
    required: bool
    inside: str = ""
    """The object within the body that the field belongs to; empty for the body itself."""

    @property
    def name(self) -> str:
        """Return the name in Python; ``ctl`` uses dashes."""
        return self.field.name

    @property
    def help(self) -> str:
        """Return the help text, one line."""
        return self.field.about.help

    @property
    def choices(self) -> tuple[str, ...]:
        """Return the allowed strings, if the type lists them."""
        choices = self.field.kind.choices
        return choices if choices != (True,) else ()

    @property
    def kind(self) -> str:
        """Return the format of the parameter's text, such as ``int`` or ``json``: a key of ``ctl_values.READERS``."""
        field, kind = self.field, self.field.kind
        if kind.type is bool or kind.choices == (True,):
            return "flag"
        if kind.type is int and (field.name == "ms" or field.name.endswith("_ms")):
            return "ms"
        if kind.type is int:
            takes_null = kind.nullable and (self.required or field.about.default not in (None, NO_DEFAULT))
            return "maybe" if takes_null else "int"
        if kind.type is float:
            return "float"
        if kind.is_pair or (kind.is_list and kind.inner[0].type is int):
            return "ints"
        if kind.is_list and kind.inner[0].choices:
            return "names"
        if kind.is_mapping and kind.inner[1].type is str:
            return "pairs"
        if kind.is_object or kind.is_list or kind.is_mapping:
            return "object" if kind.is_object else "json"
        return "text"

    def put(self, body: dict[str, Any], value: Any) -> None:
        """Set the parameter's value in a body."""
        place = body.setdefault(self.inside, {}) if self.inside else body
        if self.field.about.spread:
            place.update(value)
        else:
            place[self.name] = value


def query_parameters(cls: Any) -> Iterator[Parameter]:
    """Yield the parameters of a query string."""
    yield from (Parameter(field, field.required) for field in fields_of(cls).values())


def body_parameters(cls: Any) -> Iterator[Parameter]:
    """Yield the parameters of a body."""
    for field in fields_of(cls).values():
        if field.kind.is_object:
            yield from (Parameter(inner, False, field.name) for inner in fields_of(field.kind.type).values())
        else:
            yield Parameter(field, field.required)
