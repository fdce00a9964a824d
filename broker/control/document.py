"""Parses a request's body into a JSON object that every later step can read, compare, store and encode again.

Python's parser accepts more than JSON allows and more than Kafka can store: NaN, integers of thousands of digits,
halves of surrogate pairs, unlimited nesting. All of these are reported as errors of the caller, with their place.
"""

import json
import math
import re
from collections.abc import Generator, Iterator

from broker.control.problems import unprocessable
from control_api.reading import Unfit

MOST_BYTES = 8 * 1024 * 1024
"""A body of the maximum number of records, 10,000, with 800 bytes each: ours, what is parsed at once."""
_LONG_BYTES = 64 * 1024
"""The size above which a body is parsed in steps: ours, parsing less takes about a millisecond."""
_STEP = 64
"""Elements that are checked between two pauses; asking the clock at each would cost more than the check."""
_SPACE = re.compile(r"[ \t\n\r]*")
_DEEPEST = 64
"""Deeper than any argument of a command; far below Python's limit of recursion."""
_LEAST, _MOST = -(2**63), 2**63 - 1  # an int64: no field of the protocol is longer
_Place = tuple[str, ...]


def parse(raw: bytes) -> Generator[None, None, dict[str, object]]:
    """Parse a body in steps; return its object, empty if the body is.

    Raises:
        Problem: 422, it is not JSON, or not an object. Unfit: it has a value that cannot be used.
    """
    if not raw.strip():
        return {}
    try:
        parsed = (yield from _parse_long(raw)) if len(raw) > _LONG_BYTES else _parse_short(raw)
    except RecursionError:
        raise unprocessable("the body is nested too deeply") from None
    except ValueError as error:
        raise unprocessable(f"the body is not JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise unprocessable("the body must be a JSON object")
    yield from _check(parsed)
    return parsed


def _parse_short(raw: bytes) -> object:
    return json.loads(raw, parse_constant=_refuse_constant)


def _parse_long(raw: bytes) -> Generator[None, None, object]:
    """Parse an object whose lists may be long, some elements at a time. Raises ValueError as `json.loads` does."""
    text = raw.decode(json.detect_encoding(raw), "surrogatepass")
    parsed: dict[str, object] = {}
    try:
        at = _after(text, 0, "{")
        while True:
            name, at = _DECODE(text, _skip(text, at))
            at = _skip(text, _after(text, at, ":"))
            if not isinstance(name, str):
                raise _Unexpected
            if text[at : at + 1] == "[":
                parsed[name], at = yield from _parse_list(text, at)
            else:
                parsed[name], at = _DECODE(text, at)
            at = _skip(text, at)
            if text[at : at + 1] == "}":
                break
            at = _after(text, at, ",")
        if _skip(text, at + 1) != len(text):
            raise _Unexpected
    except (_Unexpected, ValueError):
        return _parse_short(raw)  # raises with a description of the mistake, or parses an unusual body such as {}
    return parsed


def _parse_list(text: str, at: int) -> Generator[None, None, tuple[list[object], int]]:
    """Parse the list at a position; return the list and the position after it."""
    elements: list[object] = []
    at = _skip(text, at + 1)
    if text[at : at + 1] == "]":
        return elements, at + 1
    while True:
        element, at = _DECODE(text, _skip(text, at))
        elements.append(element)
        at = _skip(text, at)
        if text[at : at + 1] == "]":
            return elements, at + 1
        at = _after(text, at, ",")
        if not len(elements) % _STEP:
            yield


class _Unexpected(Exception):
    """The text has another character than expected."""


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    assert space is not None
    return space.end()


def _after(text: str, at: int, character: str) -> int:
    at = _skip(text, at)
    if text[at : at + 1] != character:
        raise _Unexpected
    return at + 1


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


_DECODE = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode


def _check(document: dict[str, object]) -> Generator[None, None, None]:
    """Check every value once, without recursion."""
    checked = 0
    pending = [_parts(document, ())]
    while pending:
        entry = next(pending[-1], None)
        if entry is None:
            pending.pop()
            continue
        value, place = entry
        if isinstance(value, dict | list):
            if len(place) >= _DEEPEST:
                raise unprocessable(f"the body is nested too deeply, in {place[0]!r}", place[0])
            pending.append(_parts(value, place))
        elif isinstance(value, str):
            _check_text(value, place)
        elif isinstance(value, int | float):
            _check_number(value, place)
        checked += 1
        if not checked % _STEP:
            yield


def _parts(value: dict[str, object] | list[object], place: _Place) -> Iterator[tuple[object, _Place]]:
    """Yield the values of an object or a list, each with its place."""
    if isinstance(value, list):
        yield from ((part, (*place, str(index))) for index, part in enumerate(value))
        return
    for name, part in value.items():
        _check_text(name, place)
        yield part, (*place, name)


def _check_number(value: float, place: _Place) -> None:
    if isinstance(value, float):
        if math.isinf(value):
            raise Unfit("a number must be finite", ".".join(place))
    elif not _LEAST <= value <= _MOST:
        raise Unfit("a whole number must fit into 64 bits", ".".join(place))


def _check_text(text: str, place: _Place) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Unfit("a string must not contain half of a surrogate pair", ".".join(place)) from None
