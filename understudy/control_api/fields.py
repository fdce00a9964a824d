"""Descriptions of fields by type annotations: JSON's type, bounds, default, and one line of help.

A request body is a TypedDict, an answer a TypedDict or a dataclass. ``Annotated[int, About("...", least=0)]`` adds what
the type alone cannot express. Of a union without None the first member is JSON's type; the others are what the Python
client takes in its place, such as an ``Error`` where JSON has a text.
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
    """Description of a field besides its type."""

    help: str = ""
    least: int | None = None
    """Bounds: of a number its value, of a text or a list its length."""
    most: int | None = None
    above: int | None = None
    default: Any = NO_DEFAULT
    """Put in by ``reading`` where the field is absent."""
    like: str = ""
    """Description of valid values for error messages; by default made from type and bounds."""
    such: Any = None
    """An example, which error messages show."""
    one: bool = False
    """Of an object: exactly one of its fields may be there, apart from those that go with another one."""
    goes_with: str = ""
    """Only together with that field."""
    spread: bool = False
    """Of a mapping: its entries are fields of the body itself."""
    followed_by: tuple[str, ...] = ()
    """Fields that ``ctl`` takes in the same argument, after colons: NAME[:PARTITIONS[:CONFIGS]]."""
    wide: bool = False
    """Of an integer of an answer: it may be one that JavaScript would round (see ``encoding.exact``)."""
    detail: bool = False
    """Of an answer's field: left out where the answer is given in short."""


class _InShort:
    """See ``Short``."""


T = TypeVar("T")
Short: TypeAlias = Annotated[T, _InShort()]
"""An answer without its fields that are a ``detail``, as lists have it."""
Int64: TypeAlias = Annotated[int, About("beyond 2^53 a text of its digits", wide=True)]
"""Of an answer: a number that a user or a client chose, such as a seed, a timestamp or a committed offset."""


class Kind(NamedTuple):
    """An annotation taken apart."""

    type: Any
    """JSON's type: without None, ``Annotated``, and alternatives for Python."""
    about: About = About()
    nullable: bool = False
    short: bool = False

    @property
    def origin(self) -> Any:
        """``list`` of ``list[int]``; the type itself where it has no parameters."""
        return typing.get_origin(self.type) or self.type

    @property
    def inner(self) -> "tuple[Kind, ...]":
        """Of the parameters: ``int`` of ``list[int]``. Of a Literal see ``choices``."""
        return tuple(kind_of(each) for each in typing.get_args(self.type) if each is not Ellipsis)

    @property
    def choices(self) -> tuple[Any, ...]:
        """The values of a Literal."""
        return typing.get_args(self.type) if self.origin is Literal else ()

    @property
    def is_object(self) -> bool:
        """Whether it has named fields."""
        return typing.is_typeddict(self.type) or (isinstance(self.type, type) and is_dataclass(self.type))

    @property
    def is_pair(self) -> bool:
        """Whether it is an array of fixed length."""
        return self.origin is tuple and Ellipsis not in typing.get_args(self.type)

    @property
    def is_list(self) -> bool:
        """Whether it is an array of any length."""
        return isinstance(self.origin, type) and issubclass(self.origin, Sequence) and bool(self.inner)

    @property
    def is_mapping(self) -> bool:
        """Whether it is an object whose names are not known beforehand."""
        return isinstance(self.origin, type) and issubclass(self.origin, Mapping) and not self.is_object


class Field(NamedTuple):
    """A field of a body, a query or an answer."""

    name: str
    kind: Kind
    required: bool

    @property
    def about(self) -> About:
        """Its description."""
        return self.kind.about


def kind_of(annotation: Any) -> Kind:
    """An annotation taken apart; the outermost ``About`` counts."""
    about, nullable, short = None, False, False
    while True:
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is Annotated:
            about = about or next((each for each in arguments[1:] if isinstance(each, About)), None)
            short = short or any(isinstance(each, _InShort) for each in arguments[1:])
            annotation = arguments[0]
        elif origin in (Required, NotRequired):
            annotation = arguments[0]
        elif origin in (Union, types.UnionType):
            nullable = nullable or types.NoneType in arguments
            annotation = next(each for each in arguments if each is not types.NoneType)
        else:
            return Kind(annotation, about or About(), nullable, short)


@cache
def fields_of(cls: Any) -> Mapping[str, Field]:
    """The fields of a TypedDict or a dataclass, in their order."""
    hints = typing.get_type_hints(cls, include_extras=True)
    names = [each.name for each in dataclass_fields(cls)] if is_dataclass(cls) else list(hints)
    required = getattr(cls, "__required_keys__", frozenset(names))
    return {name: Field(name, kind_of(hints[name]), name in required) for name in names}
