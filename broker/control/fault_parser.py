"""Parses the JSON of a fault into conditions and an action, checked against the cluster.

Types, bounds and unknown fields were checked before (``control_api.reading``); these checks need the cluster
or the schemas of Kafka's messages. Every error message has what to write instead.
"""

from collections.abc import Mapping
from typing import cast

from broker.control.names import error_code, served_api
from broker.control.problems import unprocessable
from broker.control.watched import Watched
from broker.handlers import APIS
from broker.request.api import ServedVersions
from broker.steering.faults.actions import Action, Alter, ApplyThen, Delay, Drop, HangUp, Refuse, Spoil, Throttle
from broker.steering.faults.byte_faults import ByteFault, Corrupt, Drip, Extra, Renumber, Truncate
from broker.steering.faults.match import Match
from broker.steering.faults.response_errors import lists_errors_of
from control_api import faults
from control_api.fields import fields_of
from control_api.reading import must_be
from control_api.spelling import suggestion
from protocol.apis import ApiKey
from protocol.codec import message_class
from protocol.errors import ErrorCode
from protocol.items import KINDS, Selection, request_level, response_level
from protocol.paths import BadPath, check

# --- match -----------------------------------------------------------------------------------------------------------


def read_match(conditions: faults.FaultConditions, source: Watched) -> Match:
    """Read the conditions. Raises Problem 422."""
    api = served_api(conditions["api"], "match.api") if "api" in conditions else None
    items = Selection(
        conditions.get("topic"),
        conditions.get("partition"),
        conditions.get("group"),
        conditions.get("transactional_id"),
    )
    if api is not None:
        _check_listed(api, items)
    return Match(
        None if api is None else api.key,
        _versions(conditions, api),
        _broker(conditions, source),
        _listener(conditions, source),
        conditions.get("client_id"),
        items,
        _fields(conditions.get("request", {}), api),
        _offset(conditions, api, source),
    )


def _listener(conditions: faults.FaultConditions, source: Watched) -> str | None:
    name = conditions.get("listener")
    names = list(source.listener_names)
    if name is not None and name not in names:
        raise unprocessable(f"there is no listener {name!r}{suggestion(name, names)}", "match.listener")
    return name


def _versions(conditions: faults.FaultConditions, api: ServedVersions | None) -> tuple[int, int] | None:
    if "versions" not in conditions:
        return None
    first, last = conditions["versions"]
    if first > last:
        raise must_be(fields_of(faults.FaultConditions)["versions"], [first, last], "match.versions")
    if api is not None:
        low, high = api.range(unstable=True)
        if last < low or first > high:
            raise unprocessable(f"{api.key.title} is served in versions {low} to {high}", "match.versions")
    return first, last


def _broker(conditions: faults.FaultConditions, source: Watched) -> int | None:
    broker = conditions.get("broker")
    if broker is not None and broker not in source.known_brokers:
        brokers = ", ".join(map(str, source.known_brokers))
        raise unprocessable(f"there is no broker {broker}; there are {brokers}", "match.broker")
    return broker


def _offset(conditions: faults.FaultConditions, api: ServedVersions | None, source: Watched) -> int | None:
    """Read the offset. Only the leader knows at which offset it will append, so a proxy refuses it for Produce."""
    offset = conditions.get("offset")
    if offset is None:
        return None
    if api is None or api.key not in (ApiKey.PRODUCE, ApiKey.FETCH):
        raise unprocessable("'offset' needs 'api' to be Produce or Fetch", "match.offset")
    if "topic" not in conditions or "partition" not in conditions:
        raise unprocessable("'offset' needs 'topic' and 'partition'", "match.offset")
    if api.key is ApiKey.PRODUCE and source.own is None:
        text = f"{source.description} does not know at which offset the broker will append; use 'skip'"
        raise unprocessable(text, "match.offset")
    return offset


def _fields(wanted: Mapping[str, object], api: ServedVersions | None) -> dict[str, object]:
    """Read the fields of the request. Raises Problem 422 for a field that no API has."""
    classes = [message_class(each.key, "Request") for each in ([api] if api else APIS)]
    for path, value in wanted.items():
        problems = []
        for cls in classes:
            try:
                check(cls, path, value)
            except BadPath as error:
                problems.append(str(error))
        if len(problems) == len(classes):
            text = problems[0] if api else f"no API has a field {path!r} with such a value"
            raise unprocessable(text, f"match.request.{path}")
    return dict(wanted)


def _check_listed(api: ServedVersions, items: Selection) -> None:
    listed = request_level(api.key).kinds | response_level(api.key).kinds
    for kind in KINDS:
        if kind in items.kinds and kind not in listed:
            can = ", ".join(each for each in KINDS if each in listed) or "none of these"
            raise unprocessable(f"{api.key.title} has no {kind}; it has {can}", f"match.{kind}")


# --- do --------------------------------------------------------------------------------------------------------------


def read_action(do: faults.FaultEffects, match: Match) -> Action:
    """Read the action. Raises Problem 422, also if the action is not possible for the matched items."""
    if "alter" in do:
        return Alter(_alterations(do["alter"], match))
    if "throttle_ms" in do:
        if match.api is not None and "throttle_time_ms" not in message_class(match.api, "Response").FIELDS:
            raise unprocessable(f"{match.api.title} has no throttle time in its response", "do.throttle_ms")
        return Throttle(do["throttle_ms"])
    if "bytes" in do:
        return Spoil(_bytes(cast("faults.ByteFault", do["bytes"])))
    action: Action
    if "apply_then" in do:
        then = cast("faults.InsteadOfReply", do["apply_then"])
        action = ApplyThen(_instead(then, "do.apply_then", match, before=True))
    else:
        action = _instead(do, "do", match, before=do["where"] == "before")
    if not _can_be_cut(action, match):
        missing = ", ".join(sorted(match.items.kinds - request_level(match.api or ApiKey.PRODUCE).kinds))
        raise unprocessable(f"{match.api.title if match.api else ''} requests name no {missing}", f"match.{missing}")
    return action


def _instead(do: faults.InsteadOfReply, where: str, match: Match, *, before: bool) -> Refuse | HangUp | Drop | Delay:
    if "error" in do:
        return Refuse(_code(str(do["error"]), f"{where}.error", match))
    if "disconnect" in do:
        return HangUp(reset=do["disconnect"] == "reset")
    if "delay_ms" in do:
        return Delay(do["delay_ms"], before=before)
    return Drop()


def _code(name: str, field: str, match: Match) -> ErrorCode:
    """Read the error code. Raises Problem 422 if it is unknown, or the response has no error per matched item."""
    code = error_code(name, field)
    if code is ErrorCode.NONE:
        raise unprocessable("NONE is not an error; to change a response, use 'alter'", field)
    if match.api is not None:
        listed = match.items.kinds - set(request_level(match.api).own)
        if listed and not lists_errors_of(response_level(match.api), listed):
            each = " and ".join(sorted(listed))
            raise unprocessable(f"the response of {match.api.title} has no error per {each}", "match")
    return code


def _can_be_cut(action: Action, match: Match) -> bool:
    """Return whether the matching items can be found: in requests, or for errors also in responses alone."""
    if match.api is None or isinstance(action, Refuse) or (isinstance(action, ApplyThen) and _is_error(action)):
        return True
    return match.items.kinds <= request_level(match.api).kinds


def _is_error(action: ApplyThen) -> bool:
    return isinstance(action.then, Refuse)


def _alterations(values: Mapping[str, object], match: Match) -> dict[str, object]:
    if match.api is None:
        raise unprocessable("'alter' needs 'match.api', since each API has its own fields", "match.api")
    alterations = {}
    for path, value in values.items():
        try:
            alterations[path] = check(message_class(match.api, "Response"), path, value)
        except BadPath as error:
            raise unprocessable(f"{match.api.title}: {error}", f"do.alter.{path}") from error
    return alterations


def _bytes(spoilt: faults.ByteFault) -> ByteFault:
    if "truncate" in spoilt:
        return Truncate(spoilt["truncate"])
    if "corrupt" in spoilt:
        offset, mask = spoilt["corrupt"]
        return Corrupt(offset, mask)
    if "correlation_id" in spoilt:
        return Renumber(spoilt["correlation_id"])
    if "drip" in spoilt:
        return Drip(spoilt["drip"]["size"], spoilt["drip"]["every_ms"])
    try:
        return Extra(bytes.fromhex(spoilt["extra"]))
    except ValueError:
        raise unprocessable(f"'extra' must be hexadecimal, not {spoilt['extra']!r}", "do.bytes.extra") from None
