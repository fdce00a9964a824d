"""A fault as the user writes it, read and judged: every mistake is told with what to write instead."""

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from broker.chain import Api
from broker.control.problems import nearest, no_whole_number, unprocessable
from broker.middleware.actions import Action, Alter, ApplyThen, Delay, Drop, HangUp, Refuse, Spoil, Throttle
from broker.middleware.answers import tells_errors_of
from broker.middleware.fields import BadPath, check
from broker.middleware.items import KINDS, Wanted, request_level, response_level
from broker.middleware.match import Match
from broker.wire import ByteFault, Corrupt, Drip, Extra, Renumber, Truncate
from protocol.apis import ApiKey
from protocol.codec import message_class
from protocol.errors import ErrorCode

Given = Mapping[str, Any]
CONDITIONS = ("api", "versions", "broker", "listener", "client_id", *KINDS, "request")
ACTIONS = ("error", "apply_then", "delay_ms", "drop", "disconnect", "throttle_ms", "alter", "bytes")
_THEN = ("error", "disconnect", "drop", "delay_ms")
_SUCH = {
    "match": '{"api": "Produce"}',
    "do": '{"error": "NOT_COORDINATOR"}',
    "do.apply_then": '{"disconnect": "close"}',
    "do.bytes": '{"truncate": 10}',
    "do.bytes.drip": '{"size": 1, "every_ms": 10}',
}
_BYTES = ("truncate", "corrupt", "correlation_id", "drip", "extra")


def only(given: Any, known: tuple[str, ...], where: str) -> Given:
    """An object with no other fields than these. Raises Problem 422."""
    if not isinstance(given, Mapping):
        such = f", such as {_SUCH[where]}," if where in _SUCH else ""
        raise unprocessable(f"{where!r} must be an object{such} not {given!r}", where)
    for name in given:
        if name not in known:
            raise unprocessable(f"{where!r} has no {name!r}{nearest(name, known)}", f"{where}.{name}")
    return given


def integer(given: Given, name: str, where: str, least: int = 0) -> int:
    """A whole number. Raises Problem 422."""
    value = given[name]
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise unprocessable(no_whole_number(name, value, least), f"{where}.{name}")
    return value


# --- match -----------------------------------------------------------------------------------------------------------


class MatchReader:
    """Reads the conditions against what this cluster serves and has."""

    def __init__(self, apis: Iterable[Api], brokers: Iterable[int], listeners: Iterable[str]) -> None:
        self._apis = {api.key: api for api in apis}
        self._brokers, self._listeners = tuple(brokers), tuple(listeners)

    def read(self, given: Any) -> Match:
        """The conditions. Raises Problem 422."""
        said = only(given, CONDITIONS, "match")
        api = self.api(said["api"], "match.api") if "api" in said else None
        texts = {
            name: self._text(said, name) for name in ("listener", "client_id", "topic", "group", "transactional_id")
        }
        if texts["listener"] is not None and texts["listener"] not in self._listeners:
            raise unprocessable(
                f"there is no listener {texts['listener']!r}{nearest(texts['listener'], self._listeners)}",
                "match.listener",
            )
        partition = integer(said, "partition", "match") if "partition" in said else None
        items = Wanted(texts["topic"], partition, texts["group"], texts["transactional_id"])
        if api is not None:
            _check_listed(api, items)
        return Match(
            None if api is None else api.key,
            self._versions(said, api),
            self._broker(said),
            texts["listener"],
            texts["client_id"],
            items,
            self._fields(said.get("request", {}), api),
        )

    def api(self, name: Any, field: str) -> Api:
        """An API by its name, ``EndTxn`` or ``END_TXN``. Raises Problem 422."""
        plain = str(name).replace("_", "").lower()
        found = next((key for key in ApiKey if key.title.lower() == plain), None)
        if found is None:
            raise unprocessable(f"there is no API {name!r}{nearest(str(name), (k.title for k in ApiKey))}", field)
        api = self._apis.get(found)
        if api is None:
            raise unprocessable(f"{found.title} is not served here", field)
        return api

    @staticmethod
    def _text(said: Given, name: str) -> str | None:
        value = said.get(name)
        if name in said and not isinstance(value, str):
            raise unprocessable(f"{name!r} must be a text, not {value!r}", f"match.{name}")
        return value

    @staticmethod
    def _versions(said: Given, api: Api | None) -> tuple[int, int] | None:
        if "versions" not in said:
            return None
        value = said["versions"]
        whole = isinstance(value, list) and len(value) == 2 and all(type(each) is int for each in value)
        if not whole or not 0 <= value[0] <= value[1]:
            raise unprocessable(f"'versions' must be [first, last], such as [0, 3], not {value!r}", "match.versions")
        if api is not None:
            low, high = api.range(unstable=True)
            if value[1] < low or value[0] > high:
                raise unprocessable(f"{api.key.title} is served in versions {low} to {high}", "match.versions")
        return value[0], value[1]

    def _broker(self, said: Given) -> int | None:
        if "broker" not in said:
            return None
        value = integer(said, "broker", "match")
        if value not in self._brokers:
            known = ", ".join(map(str, self._brokers))
            raise unprocessable(f"there is no broker {value}; there are {known}", "match.broker")
        return value

    def _fields(self, given: Any, api: Api | None) -> dict[str, Any]:
        if not isinstance(given, Mapping):
            raise unprocessable(f"'request' must be an object of fields, not {given!r}", "match.request")
        classes = [message_class(key, "Request") for key in ([api.key] if api else self._apis)]
        for path, value in given.items():
            problems = []
            for cls in classes:
                try:
                    check(cls, path, value)
                except BadPath as error:
                    problems.append(str(error))
            if len(problems) == len(classes):
                text = problems[0] if api else f"no API has a field {path!r} with such a value"
                raise unprocessable(text, f"match.request.{path}")
        return dict(given)


def _check_listed(api: Api, items: Wanted) -> None:
    told = request_level(api.key).kinds | response_level(api.key).kinds
    for kind in KINDS:
        if kind in items.kinds and kind not in told:
            can = ", ".join(each for each in KINDS if each in told) or "none of these"
            raise unprocessable(f"{api.key.title} tells no {kind}; it tells {can}", f"match.{kind}")


# --- do --------------------------------------------------------------------------------------------------------------


def read_action(given: Any, match: Match) -> Action:
    """What is to be done. Raises Problem 422, also where it cannot be done to what is matched."""
    said = only(given, (*ACTIONS, "where"), "do")
    name = _one_of(said, ACTIONS, "do")
    if "where" in said and name != "delay_ms":
        raise unprocessable("'where' goes with 'delay_ms' only", "do.where")
    if name == "alter":
        return Alter(_alterations(said["alter"], match))
    if name == "throttle_ms":
        if match.api is not None and "throttle_time_ms" not in message_class(match.api, "Response").__slots__:
            raise unprocessable(f"{match.api.title} has no throttle time in its response", "do.throttle_ms")
        return Throttle(integer(said, "throttle_ms", "do", 1))
    if name == "bytes":
        return Spoil(_bytes(said["bytes"]))
    action: Action
    if name == "apply_then":
        inner = only(said["apply_then"], _THEN, "do.apply_then")
        action = ApplyThen(_simple(inner, _one_of(inner, _THEN, "do.apply_then"), "do.apply_then", match))
    else:
        action = _simple(said, name, "do", match)
    if not _can_be_cut(action, match):
        missing = ", ".join(sorted(match.items.kinds - request_level(match.api or ApiKey.PRODUCE).kinds))
        raise unprocessable(f"requests of {match.api.title if match.api else ''} name no {missing}", f"match.{missing}")
    return action


def _one_of(said: Given, names: tuple[str, ...], where: str) -> str:
    found = [name for name in names if name in said]
    if len(found) != 1:
        what = "nothing" if not found else " and ".join(found)
        raise unprocessable(f"{where!r} must say one thing of {', '.join(names)}; it says {what}", where)
    return found[0]


def _simple(said: Given, name: str, where: str, match: Match) -> Refuse | HangUp | Drop | Delay:
    value = said[name]
    if name == "error":
        return Refuse(_code(value, where, match))
    if name == "disconnect":
        if value not in ("close", "reset"):
            raise unprocessable(f"'disconnect' is close or reset, not {value!r}", f"{where}.disconnect")
        return HangUp(reset=value == "reset")
    if name == "drop":
        if value is not True:
            raise unprocessable(f"'drop' can only be true, not {value!r}", f"{where}.drop")
        return Drop()
    place = said.get("where", "before")
    if place not in ("before", "after"):
        raise unprocessable(f"'where' is before or after, not {place!r}", f"{where}.where")
    return Delay(integer(said, "delay_ms", where, 1), before=place == "before")


def _code(value: Any, where: str, match: Match) -> ErrorCode:
    """The error, if there is such a one and the API can tell it of what is matched."""
    name = str(value).upper()
    if name not in ErrorCode.__members__:
        raise unprocessable(f"there is no error {value!r}{nearest(name, ErrorCode.__members__)}", f"{where}.error")
    if ErrorCode[name] is ErrorCode.NONE:
        raise unprocessable("NONE is no error; to change an answer use 'alter'", f"{where}.error")
    if match.api is not None:
        listed = match.items.kinds - set(request_level(match.api).own)
        if listed and not tells_errors_of(response_level(match.api), listed):
            raise unprocessable(f"{match.api.title} tells no error of a single {' and '.join(sorted(listed))}", "match")
    return ErrorCode[name]


def _can_be_cut(action: Action, match: Match) -> bool:
    """Whether requests name what is looked for; an error can also be put where only responses do."""
    if match.api is None or isinstance(action, Refuse) or (isinstance(action, ApplyThen) and _is_error(action)):
        return True
    return match.items.kinds <= request_level(match.api).kinds


def _is_error(action: ApplyThen) -> bool:
    return isinstance(action.then, Refuse)


def _alterations(given: Any, match: Match) -> dict[str, Any]:
    if match.api is None:
        raise unprocessable("'alter' needs 'match.api', since each API has other fields", "match.api")
    if not isinstance(given, Mapping) or not given:
        raise unprocessable(f"'alter' must be an object, path -> value, not {given!r}", "do.alter")
    found = {}
    for path, value in given.items():
        try:
            found[path] = check(message_class(match.api, "Response"), path, value)
        except BadPath as error:
            raise unprocessable(f"{match.api.title}: {error}", f"do.alter.{path}") from error
    return found


# --- bytes -----------------------------------------------------------------------------------------------------------


def _bytes(given: Any) -> ByteFault:
    said = only(given, _BYTES, "do.bytes")
    name = _one_of(said, _BYTES, "do.bytes")
    return _BYTE_READERS[name](said)


def _truncate(said: Given) -> ByteFault:
    return Truncate(integer(said, "truncate", "do.bytes"))


def _corrupt(said: Given) -> ByteFault:
    value = said["corrupt"]
    whole = isinstance(value, list) and len(value) == 2 and all(type(each) is int for each in value)
    if not whole or not 1 <= value[1] <= 255:
        raise unprocessable(
            f"'corrupt' must be [offset, mask] with a mask from 1 to 255, not {value!r}", "do.bytes.corrupt"
        )
    return Corrupt(value[0], value[1])


def _renumber(said: Given) -> ByteFault:
    value = said["correlation_id"]
    try:
        struct.pack(">i", value)
    except struct.error:
        raise unprocessable(f"'correlation_id' must be an int32, not {value!r}", "do.bytes.correlation_id") from None
    return Renumber(value)


def _drip(said: Given) -> ByteFault:
    inner = only(said["drip"], ("size", "every_ms"), "do.bytes.drip")
    defaults = {"size": 1, "every_ms": 10, **inner}
    return Drip(integer(defaults, "size", "do.bytes.drip", 1), integer(defaults, "every_ms", "do.bytes.drip", 0))


def _extra(said: Given) -> ByteFault:
    try:
        data = bytes.fromhex(said["extra"])
    except (ValueError, TypeError):
        raise unprocessable(f"'extra' must be hexadecimal, not {said['extra']!r}", "do.bytes.extra") from None
    return Extra(data)


_BYTE_READERS: Mapping[str, Callable[[Given], ByteFault]] = {
    "truncate": _truncate,
    "corrupt": _corrupt,
    "correlation_id": _renumber,
    "drip": _drip,
    "extra": _extra,
}
