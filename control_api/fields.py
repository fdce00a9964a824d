"""Descriptions of fields by type annotations: JSON's type, bounds, default, and one line of help.

A request body is a TypedDict, an answer a TypedDict or a dataclass. ``Annotated[int, About("...", least=0)]`` adds what
the type alone cannot express. In a union without None, the first member is the type in JSON; the others are
alternatives in the Python client, such as an ``Error`` for a JSON string.
"""

import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Required, TypeAlias, TypeVar, Union

NO_DEFAULT: Any = object()


class About(NamedTuple):
    """The description of a field besides its type."""

    help: str = ""
    least: int | None = None
    """Bounds: for a number on its value, for a string or a list on its length.

    2^31 - 1 and 2^63 - 1 are those of an int32 and an int64.
    """
    most: int | None = None
    above: int | None = None
    default: Any = NO_DEFAULT
    """The value that ``reading`` sets if the field is absent."""
    like: str = ""
    """The description of valid values in error messages; by default derived from type and bounds."""
    such: Any = None
    """An example for error messages."""
    one: bool = False
    """For an object: requires exactly one of its fields, not counting those with ``goes_with``."""
    goes_with: str = ""
    """The field is allowed only together with this field."""
    spread: bool = False
    """For a mapping: its entries are fields of the body itself."""
    followed_by: tuple[str, ...] = ()
    """Fields that ``ctl`` accepts in the same argument, after colons: NAME[:PARTITIONS[:CONFIGS]]."""
    wide: bool = False
    """For an integer in an answer: JavaScript might round it (see ``encoding.exact``)."""
    detail: bool = False
    """For a field of an answer: omitted in the short form of the answer."""


class _InShort:
    """The marker of ``Short``."""


T = TypeVar("T")
Short: TypeAlias = Annotated[T, _InShort()]
"""The short form of an answer, without its ``detail`` fields, as in lists."""
Int64: TypeAlias = Annotated[int, About("beyond 2^53 a string of its digits", wide=True)]
"""A number in an answer that a user or client chose, such as a seed, a timestamp or a committed offset."""


class Kind(NamedTuple):
    """A parsed annotation."""

    type: Any
    """The type in JSON: without None, ``Annotated``, and alternatives for Python."""
    about: About = About()
    nullable: bool = False
    short: bool = False

    @property
    def origin(self) -> Any:
        """Return ``list`` for ``list[int]``; the type itself if it has no parameters."""
        return typing.get_origin(self.type) or self.type

    @property
    def inner(self) -> "tuple[Kind, ...]":
        """Return the kinds of the parameters: ``int`` for ``list[int]``. For a Literal see ``choices``."""
        return tuple(kind_of(argument) for argument in typing.get_args(self.type) if argument is not Ellipsis)

    @property
    def choices(self) -> tuple[Any, ...]:
        """Return the values of a Literal."""
        return typing.get_args(self.type) if self.origin is Literal else ()

    @property
    def is_object(self) -> bool:
        """Return whether it is an object with named fields."""
        return typing.is_typeddict(self.type) or (isinstance(self.type, type) and is_dataclass(self.type))

    @property
    def is_pair(self) -> bool:
        """Return whether it is an array of fixed length."""
        return self.origin is tuple and Ellipsis not in typing.get_args(self.type)

    @property
    def is_list(self) -> bool:
        """Return whether it is an array of any length."""
        return isinstance(self.origin, type) and issubclass(self.origin, Sequence) and bool(self.inner)

    @property
    def is_mapping(self) -> bool:
        """Return whether it is an object with arbitrary names."""
        return isinstance(self.origin, type) and issubclass(self.origin, Mapping) and not self.is_object


class Field(NamedTuple):
    """A field of a body, a query or an answer."""

    name: str
    kind: Kind
    required: bool

    @property
    def about(self) -> About:
        """Return the description of the field."""
        return self.kind.about


def kind_of(annotation: Any) -> Kind:
    """Parse an annotation; the outermost ``About`` counts."""
    about, nullable, short = None, False, False
    while True:
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is Annotated:
            about = about or next((argument for argument in arguments[1:] if isinstance(argument, About)), None)
            short = short or any(isinstance(argument, _InShort) for argument in arguments[1:])
            annotation = arguments[0]
        elif origin in (Required, NotRequired):
            annotation = arguments[0]
        elif origin in (Union, types.UnionType):
            nullable = nullable or types.NoneType in arguments
            annotation = next(argument for argument in arguments if argument is not types.NoneType)
        else:
            return Kind(annotation, about or About(), nullable, short)


@cache
def fields_of(cls: Any) -> Mapping[str, Field]:
    """Return the fields of a TypedDict or a dataclass, in their order."""
    hints = typing.get_type_hints(cls, include_extras=True)
    names = [each.name for each in dataclass_fields(cls)] if is_dataclass(cls) else list(hints)
    required = getattr(cls, "__required_keys__", frozenset(names))
    return {name: Field(name, kind_of(hints[name]), name in required) for name in names}
