"""Dataclasses with slots whose methods are made when they are first needed.

``dataclasses`` compiles five or six methods of each class while its module is imported. Three hundred classes took a
third of a server's start, and most of them have no instance before a client asks for something special. Here a class
has its slots at once; the standard library makes everything else for the first instance, or when the fields are asked
for. The result is an ordinary dataclass: ``fields``, ``replace``, ``asdict``, ``match`` and pickle treat it as one.

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
        return _slotted(cls, dataclasses.dataclass(eq=eq, unsafe_hash=hashed, **parameters), compared=eq)


_LOCK = RLock()


class _Fields:
    """Makes a class's methods when ``dataclasses`` asks it for its fields."""

    def __init__(self, complete: Callable[[], None]) -> None:
        self._complete = complete

    def __get__(self, _instance: object, owner: Any) -> Any:
        self._complete()
        return owner.__dataclass_fields__


def _slotted(plain: Any, make: Callable[[Any], Any], *, compared: bool) -> Any:
    """Return the class with slots. ``make`` gives the plain one its methods, which are then copied."""
    before = dict(vars(plain))
    inherited = {name for base in plain.__mro__[1:] for name in vars(base).get("__slots__", ())}
    names = [name for name, hint in _annotations(plain).items() if "ClassVar" not in str(hint)]
    left_out = {*names, "__dict__", "__weakref__"}
    contents = {name: value for name, value in before.items() if name not in left_out}
    slots = tuple(name for name in names if name not in inherited)
    cls = type(plain)(plain.__name__, plain.__bases__, {**contents, "__slots__": slots})
    cls.__qualname__ = plain.__qualname__
    waiting = True

    def complete() -> None:
        nonlocal waiting
        with _LOCK:
            if not waiting:
                return
            changed = {name: value for name, value in vars(make(plain)).items() if before.get(name, plain) is not value}
            for name in changed.keys() - left_out:
                setattr(cls, name, changed[name])
            waiting = False

    _wait(cls, complete, compared=compared)
    return cls


def _wait(cls: Any, complete: Callable[[], None], *, compared: bool) -> None:
    """Give a class methods that complete it, which replaces them, and go on in the real ones."""

    def __init__(self: Any, *values: Any, **named: Any) -> None:  # noqa: N807
        complete()
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
    cls.__init__, cls.__dataclass_fields__ = __init__, _Fields(complete)
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
