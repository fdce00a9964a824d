"""Faults of the reference client that follow from the protocol: a field sent or read as another, an error code misread.

Each is a mutation with spaces: ``send Produce.acks 0``, ``send RecordBatch.codec 0``, ``read Metadata.brokers.port 0``,
``take Produce NOT_LEADER_OR_FOLLOWER as NONE``, ``first Metadata.brokers`` (all that is
read of a list in a response).
"""

import copy
import json
import uuid
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

from protocol.apis import ApiKey
from protocol.client.steps import Call
from protocol.errors import ErrorCode

OTHER: Final = "other"
"""As a value: one of the same type that is not the right one."""


def other(value: Any) -> Any:
    """Return a value of the same type that is not the right one."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case str():
            return f"{value}x"
        case uuid.UUID():
            return uuid.UUID(int=value.int ^ 1)
        case bytes() | bytearray() | memoryview():
            return bytes(value)[:-1]
        case list() | tuple():
            return value[1:]
    return value


def places(message: Any, names: list[str]) -> Iterator[Any]:
    """Return the objects that have the last field of a path; lists on the way are entered."""
    if isinstance(message, list | tuple):
        for each in message:
            yield from places(each, names)
    elif len(names) == 1:
        if hasattr(message, names[0]):
            yield message
    elif message is not None and hasattr(message, names[0]):
        yield from places(getattr(message, names[0]), names[1:])


def change(message: Any, path: str, changed: Callable[[Any], Any]) -> None:
    """Replace each value of a field, whose names are separated by dots."""
    names = path.split(".")
    for place in places(message, names):
        setattr(place, names[-1], changed(getattr(place, names[-1])))


def replace_codes(message: Any, code: ErrorCode, taken: ErrorCode) -> None:
    """Replace an error code wherever it is in a response."""
    if isinstance(message, list | tuple):
        for each in message:
            replace_codes(each, code, taken)
    for name in getattr(type(message), "FIELDS", ()):
        value = getattr(message, name)
        if isinstance(value, ErrorCode):
            setattr(message, name, taken if value is code else value)
        elif not isinstance(value, str | bytes | int):
            replace_codes(value, code, taken)


def _of_its_type(value: Any, right: Any) -> Any:
    return value.encode() if isinstance(value, str) and isinstance(right, bytes) else value


class Planted:
    """The planted faults among the mutations of a client, applied to what it sends and reads."""

    def __init__(self, mutations: Collection[str]) -> None:
        rules = [each.split() for each in mutations if " " in each]
        paths = [(kind, *path.split(".", 1), value) for kind, path, value in _of(rules, 3)]
        self.sent = [rule for kind, *rule in paths if kind == "send"]
        self.read = [rule for kind, *rule in paths if kind == "read"]
        self.codes = [(api, ErrorCode[code], ErrorCode[taken]) for _, api, code, _, taken in _of(rules, 5)]
        self.lists = [(kind, *rest[0].split(".", 1)) for kind, *rest in _of(rules, 2) if kind in {"first", "last"}]

    @staticmethod
    def _changed(value: str) -> Callable[[Any], Any]:
        return other if value == OTHER else lambda right: _of_its_type(json.loads(value), right)

    def request(self, key: ApiKey, request: Any) -> Any:
        """Return what is sent instead."""
        mine = [(path, value) for api, path, value in self.sent if api == key.title]
        if mine:
            request = copy.deepcopy(request)
            for path, value in mine:
                change(request, path, self._changed(value))
        return request

    def response(self, key: ApiKey, answer: Any) -> Any:
        """Change what is read; return it."""
        for api, path, value in self.read:
            if api == key.title:
                change(answer, path, self._changed(value))
        for api, code, taken in self.codes:
            if api == key.title:
                replace_codes(answer, code, taken)
        for kind, api, path in self.lists:
            if api == key.title:
                change(answer, path, (lambda items: items[:1]) if kind == "first" else (lambda items: items[-1:]))
        return answer

    def through(self, call: Call) -> Call:
        """Return a function that asks as the client would with these faults."""
        return lambda key, version, request: self.response(key, call(key, version, self.request(key, request)))

    def header(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the keyword arguments of a record batch."""
        for api, path, value in self.sent:
            if api == "RecordBatch" and path in fields:
                fields[path] = self._changed(value)(fields[path])
        return fields

    def record(self, record: Any) -> Any:
        """Return a record of a batch."""
        for api, path, value in self.sent:
            name = path.removeprefix("records.")
            if api == "RecordBatch" and name in record._fields:
                record = record._replace(**{name: self._changed(value)(getattr(record, name))})
        return record


def _of(rules: list[list[str]], length: int) -> list[list[str]]:
    return [rule for rule in rules if len(rule) == length]
