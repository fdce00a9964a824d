"""The `apis` verb: the served APIs, and for each the conditions and effects of faults."""

import typing
from collections.abc import Iterator

from broker.control.names import served_api
from broker.control.request import ControlRequest
from broker.control.verbs import answers
from broker.handlers import APIS
from broker.request.api import ServedVersions
from broker.steering.faults.response_errors import lists_errors_of
from control_api.answers.cluster import VersionRange
from control_api.answers.faults import Apis, ServedApi
from control_api.faults import ApiQuery, FaultEffects
from control_api.fields import fields_of
from protocol.api_errors import ERRORS_OF
from protocol.codec import message_class
from protocol.errors import ErrorCode
from protocol.items import KINDS, element_type, request_level, response_level
from protocol.paths import EACH, message_type
from protocol.types import Message, field_types

_EFFECTS = tuple(name for name, field in fields_of(FaultEffects).items() if not field.about.goes_with)


@answers("apis")
async def read(request: ControlRequest, query: ApiQuery) -> Apis:
    """List all APIs in the order of their keys, or one of them."""
    chosen = (served_api(query["api"], "api"),) if "api" in query else APIS
    codes = [code.name for code in ErrorCode if code is not ErrorCode.NONE]
    return {"apis": [_described(api, request) for api in chosen], "error_codes": codes}


def _described(api: ServedVersions, request: ControlRequest) -> ServedApi:
    named = request_level(api.key).kinds
    every = named | response_level(api.key).kinds
    response = message_class(api.key, "Response")
    throttled = "throttle_time_ms" in response.FIELDS
    return ServedApi(
        name=api.key.title,
        key=int(api.key),
        versions=_versions(api, request),
        conditions=_in_order(every),
        request_conditions=_in_order(named),
        error_conditions=_in_order(kind for kind in every if has_error_per(api, kind)),
        effects=tuple(effect for effect in _EFFECTS if throttled or effect != "throttle_ms"),
        errors=ERRORS_OF[api.key.title],
        request_fields=tuple(_paths(message_class(api.key, "Request"))),
        response_fields=tuple(_paths(response)),
    )


def has_error_per(api: ServedVersions, kind: str) -> bool:
    """Return whether the response has an error per item of this kind, and not only for the whole request."""
    return kind in request_level(api.key).own or lists_errors_of(response_level(api.key), frozenset({kind}))


def _in_order(kinds: typing.Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(kinds, key=KINDS.index))


def _versions(api: ServedVersions, request: ControlRequest) -> VersionRange | None:
    """Return the versions offered to new connections; for a proxy, those that it can decode."""
    cluster = request.source.own
    limits: tuple[int, int] | None = api.range(unstable=cluster is None)
    if cluster is not None:
        unstable = cluster.settings.boolean("unstable.api.versions.enable")
        limits = cluster.versions[api.key] if api.key in cluster.versions else api.range(unstable=unstable)
    return None if limits is None else VersionRange(min=limits[0], max=limits[1])


def _paths(cls: type[Message], before: str = "") -> Iterator[str]:
    """Yield the paths of all fields of a message that are not structures."""
    for name, hint in field_types(cls).items():
        listed = element_type(hint)
        path = f"{before}{name}" + (f".{EACH}" if listed is not None else "")
        below = listed if listed is not None else message_type(hint)
        if below is not None and issubclass(below, Message):
            yield from _paths(below, f"{path}.")
        else:
            yield path
