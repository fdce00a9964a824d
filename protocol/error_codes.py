"""Error codes of a response, found by a function that is generated for its class and reads only these fields.

It runs for every response, for the metrics and the timelines; a walk over all fields takes five times as long.
"""

import re
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from protocol.errors import ErrorCode
from protocol.types import Message

_FIELD = re.compile(r"(Sequence\[)?(\w+)\]?(?: \| None)?")
Finder = Callable[[Message], list[ErrorCode]]


def error_codes(message: Message) -> list[ErrorCode]:
    """Return all codes of a response except NONE, with repetitions, in the order of the fields."""
    cls: Any = type(message)
    return _finder(cls)(message)


def first_error(message: Message | None) -> ErrorCode | None:
    """Return the first of :func:`error_codes`; ``None`` if there is none, or no response (acks=0)."""
    found = () if message is None else error_codes(message)
    return found[0] if found else None


@cache
def _finder(cls: Any) -> Finder:
    """Compile the function for a class of messages from source text, like the writers."""
    lines = ["def find(m0):", " found = []", *_lines(cls, 0), " return found"]
    names: dict[str, Any] = {}
    exec("\n".join(lines), names)  # names of generated classes' fields only  # noqa: S102
    finder: Finder = names["find"]
    return finder


def _lines(cls: type[Message], depth: int) -> list[str]:
    """Return the statements that read the codes of ``m{depth}``; none if the class has no codes.

    Annotations of generated messages are strings such as ``Sequence[Topic] | None``; evaluating them costs more.
    """
    module, here, inner = sys.modules[cls.__module__], " " * (depth + 1), depth + 1
    lines: list[str] = []
    for name, text in cls.__annotations__.items():
        match = _FIELD.fullmatch(text)
        if match is None:
            continue
        if match[2] == "ErrorCode":
            lines.append(f"{here}if m{depth}.{name}: found.append(m{depth}.{name})")
            continue
        struct = getattr(module, match[2], None)
        if not (isinstance(struct, type) and issubclass(struct, Message)):
            continue
        below = _lines(struct, inner)
        if below and match[1]:
            lines += [f"{here}for m{inner} in m{depth}.{name} or ():", *below]
        elif below:
            lines += [f"{here}m{inner} = m{depth}.{name}", f"{here}if m{inner} is not None:", *below]
    return lines
