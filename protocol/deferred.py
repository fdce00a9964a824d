"""Dataclasses with slots whose methods are made when they are first needed.

``dataclasses`` compiles five or six methods of each class while its module is imported. Three hundred classes took a
third of a server's start, and most of them have no instance before a client asks for something special. Here a class
has its slots at once; the standard library makes the constructor for the first instance, or when the fields are asked
for, and the other methods, four fifths of the cost, when one of them is called. The result is an ordinary dataclass:
``fields``, ``replace``, ``asdict``, ``match`` and pickle treat it as one.

A class that mypyc compiles has slots already, and gets its methods at once.
"""

import dataclasses
import sys
from collections.abc import Callable, Mapping
from threading import RLock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - the same to a type checker

    from mypy_extensions import mypyc_attr as mypyc_attr  # noqa: PLC0414 - exported
else:

    def mypyc_attr(**_attributes: bool) -> Any:  # only the build needs that package
        """Mark a class for mypyc, which reads the arguments when it compiles the class."""
        return lambda cls: cls

    def dataclass(
        cls: Any = None, /, *, slots: bool = False, frozen: bool = False, eq: bool = True, **parameters: Any
    ) -> Any:
        """Make a dataclass; the parameters are those of ``dataclasses.dataclass``. Without ``slots`` nothing waits.

        ``frozen`` only gives a hash: that an instance is not changed is checked by mypy, as at run time each field of a
        new instance would cost ten times as much.
        """
        if cls is None:
            return lambda cls: dataclass(cls, slots=slots, frozen=frozen, eq=eq, **parameters)
        hashed = frozen and eq and vars(cls).get("__hash__") is None
        if not slots or "__init__" in vars(cls) or "__mypyc_attrs__" in vars(cls):
            return dataclasses.dataclass(cls, slots=slots, eq=eq, unsafe_hash=hashed, **parameters)
        return _slotted(cls, {"eq": eq, "unsafe_hash": hashed}, parameters)


_LOCK = RLock()


class _Fields:
    """Makes a class's constructor when ``dataclasses`` asks it for its fields."""

    def __init__(self, construct: Callable[[], None]) -> None:
        self._construct = construct

    def __get__(self, _instance: object, owner: Any) -> Any:
        self._construct()
        return owner.__dataclass_fields__


def _slotted(plain: Any, comparison: Mapping[str, bool], parameters: Mapping[str, Any]) -> Any:
    """Return the class with slots. The plain one and a copy of it get the methods, which are then taken from there."""
    before = {name: value for name, value in vars(plain).items() if name not in ("__dict__", "__weakref__")}
    inherited = {name for base in plain.__mro__[1:] for name in vars(base).get("__slots__", ())}
    names = [name for name, hint in _annotations(plain).items() if "ClassVar" not in str(hint)]
    contents = {name: value for name, value in before.items() if name not in names}
    slots = tuple(name for name in names if name not in inherited)
    cls = type(plain)(plain.__name__, plain.__bases__, {**contents, "__slots__": slots})
    cls.__qualname__ = plain.__qualname__
    left_out = {*names, "__dict__", "__weakref__"}
    constructed = completed = False

    def take(complete_class: Any) -> None:
        changed = {name: value for name, value in vars(complete_class).items() if before.get(name, plain) is not value}
        for name in changed.keys() - left_out:
            setattr(cls, name, changed[name])

    def construct() -> None:
        nonlocal constructed
        with _LOCK:
            if not constructed:
                take(dataclasses.dataclass(plain, repr=False, eq=False, **parameters))
                left_out.update(("__dataclass_fields__", "__dataclass_params__", "__match_args__"))
                constructed = True

    def complete() -> None:
        nonlocal completed
        construct()
        with _LOCK:
            if not completed:
                copy = type(plain)(plain.__name__, plain.__bases__, dict(before))
                copy.__qualname__ = plain.__qualname__
                take(dataclasses.dataclass(copy, init=False, **comparison))
                completed = True

    _wait(cls, construct, complete, compared=comparison["eq"])
    return cls


def _wait(cls: Any, construct: Callable[[], None], complete: Callable[[], None], *, compared: bool) -> None:
    """Give a class methods that make the real ones, by which they are replaced, and go on in those."""

    def __init__(self: Any, *values: Any, **named: Any) -> None:  # noqa: N807
        construct()
        cls.__init__(self, *values, **named)

    def __repr__(self: Any) -> str:  # noqa: N807
        complete()
        return repr(self)

    def __eq__(self: Any, other: object) -> Any:  # noqa: N807
        complete()
        return cls.__eq__(self, other)

    def __hash__(self: Any) -> int:  # noqa: N807
        complete()
        return hash(self)

    own = vars(cls)
    cls.__init__, cls.__dataclass_fields__ = __init__, _Fields(construct)
    if "__repr__" not in own:
        cls.__repr__ = __repr__
    if compared and "__eq__" not in own:
        cls.__eq__ = __eq__
        cls.__hash__ = own.get("__hash__", __hash__)


def _annotations(cls: Any) -> Mapping[str, Any]:
    """Return a class's own annotations, of which some may be names that exist for type checkers only."""
    if sys.version_info >= (3, 14):
        import annotationlib  # noqa: PLC0415

        return annotationlib.get_annotations(cls, format=annotationlib.Format.FORWARDREF)
    own: Mapping[str, Any] = vars(cls).get("__annotations__", {})
    return own
