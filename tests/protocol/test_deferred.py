"""Dataclasses whose methods wait for their first use are dataclasses in every other respect."""

import copy
import dataclasses
import pickle
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from protocol import deferred

T = TypeVar("T")


@deferred.dataclass(frozen=True, slots=True)
class Point:
    """A point whose label does not count."""

    kind: ClassVar[str] = "flat"
    x: int
    y: int = 2
    label: str = dataclasses.field(default="", compare=False)
    marks: list[int] = dataclasses.field(default_factory=list, compare=False)

    def moved(self, by: int) -> "Point":
        """Return a neighbour."""
        return dataclasses.replace(self, x=self.x + by)


@deferred.dataclass(frozen=True, slots=True)
class Space(Point, Generic[T]):
    """A point with another default, a further field and a check."""

    y: int = 3
    z: Sequence[T] = ()

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError(self.x)


@deferred.dataclass(slots=True)
class Counter:
    """A value that changes."""

    count: int = 0


@deferred.dataclass(slots=True, eq=False)
class Token:
    """An object with an identity."""

    name: str


def fresh() -> Any:
    """Return a class that has not been used."""

    @deferred.dataclass(frozen=True, slots=True)
    class Fresh:
        """A class."""

        a: int
        b: str = "b"

    return Fresh


def test_no_method_is_made_before_one_is_needed() -> None:
    """A class without instances costs no compilation; one without comparisons only that of its constructor."""
    cls = fresh()
    waiting = dict(vars(cls))
    assert cls(1).b == "b"
    assert cls.__init__ is not waiting["__init__"]
    assert cls.__match_args__ == ("a", "b")
    others = ("__repr__", "__eq__", "__hash__")
    assert [vars(cls)[name] for name in others] == [waiting[name] for name in others]
    assert cls(1) == cls(1)
    assert not {vars(cls)[name] for name in others} & {waiting[name] for name in others}


@pytest.mark.parametrize("use", [dataclasses.fields, dataclasses.is_dataclass, lambda cls: cls(1)])
def test_each_first_use_completes_the_class(use: Any) -> None:
    """The fields and the constructor agree, with either of them first."""
    cls = fresh()
    assert use(cls)
    assert [field.name for field in dataclasses.fields(cls)] == ["a", "b"]
    assert repr(cls(1)).endswith("Fresh(a=1, b='b')")


def test_values_compare_print_and_change_like_a_dataclass() -> None:
    """Equality, hash, text, replace, asdict and match are those of ``dataclasses``."""
    assert Point(1, label="a") == Point(1, label="b") != Point(2)
    assert hash(Point(1)) == hash((1, 2))
    assert repr(Point(1)) == "Point(x=1, y=2, label='', marks=[])"
    assert Point(1).moved(2) == Point(3)
    assert dataclasses.asdict(Point(1)) == {"x": 1, "y": 2, "label": "", "marks": []}
    assert Point(1).marks is not Point(1).marks
    match Point(4, 5):
        case Point(x, y):
            assert (x, y, Point.kind) == (4, 5, "flat")


def test_frozen_values_have_a_hash_and_others_have_none() -> None:
    """One that changes is no key; that a frozen one does not change, mypy checks."""
    assert {Point(1): "a"}[Point(1)] == "a"
    counter = Counter()
    counter.count = 5
    assert counter == Counter(5)
    with pytest.raises(TypeError, match="unhashable"):
        hash(counter)
    assert Token("a") != Token("a")
    assert not hasattr(counter, "__dict__")
    assert not hasattr(Space(1), "__dict__")


def test_a_subclass_has_the_fields_of_its_base_and_its_own_checks() -> None:
    """Fields come in the base's order with the subclass's defaults, and the check after the constructor runs."""
    assert [field.name for field in dataclasses.fields(Space)] == ["x", "y", "label", "marks", "z"]
    assert (Space(1).y, Space(1, z=(7,)).z) == (3, (7,))
    with pytest.raises(ValueError, match="-1"):
        Space(-1)


def test_values_are_copied_and_pickled() -> None:
    """A frozen value with slots survives pickle and copy."""
    kept = pickle.loads(pickle.dumps(Space(1, z=(4,))))  # noqa: S301 - our own bytes
    assert kept == copy.copy(Space(1, z=(4,))) == Space(1, z=(4,))


def test_wrong_arguments_are_refused_by_the_first_call_too() -> None:
    """The first call of a constructor has the error of every other."""
    cls = fresh()
    for _ in range(2):
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'a'"):
            cls()
