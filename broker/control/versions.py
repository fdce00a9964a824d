"""Verbs about the versions of the APIs that clients are told."""

from collections.abc import Mapping
from typing import Any

from broker.chain import Api
from broker.control.asked import Asked
from broker.control.fault_body import MatchReader
from broker.control.problems import conflict, unprocessable
from broker.handlers import APIS
from protocol.apis import ApiKey

_LIMITS: dict[str, Any] = {
    "type": ["object", "null"],
    "properties": {"min": {"type": "integer"}, "max": {"type": "integer"}},
    "required": ["min", "max"],
    "additionalProperties": False,
    "description": "null: the API is not served",
}
SET: dict[str, Any] = {
    "type": "object",
    "properties": {"as_version": {"type": ["string", "null"], "description": "a Kafka release, such as 2.8"}},
    "additionalProperties": _LIMITS,
    "description": "names of APIs to their versions; what is not named is as it was. {} takes everything back",
}


async def read(asked: Asked) -> dict[str, Any]:
    """The versions that new connections are told, API by API."""
    told = asked.cluster.versions
    unstable = asked.cluster.settings.boolean("unstable.api.versions.enable")
    apis = {}
    for api in APIS:
        limits = told[api.key] if api.key in told else api.range(unstable=unstable)
        apis[api.key.title] = None if limits is None else {"min": limits[0], "max": limits[1]}
    return {"as_version": asked.cluster.options.as_version, "apis": apis}


async def write(asked: Asked) -> dict[str, Any]:
    """Tell new connections other versions of some APIs, and serve no others; {} takes that back."""
    body = dict(asked.body)
    release = body.pop("as_version", None)
    if release is not None:
        raise conflict(
            "a release cannot be played yet; name single APIs, such as {'InitProducerId': {'min': 0, 'max': 3}}"
        )
    reader = MatchReader(APIS, (), ())
    told = dict(asked.cluster.versions) if body else {}
    for name, limits in body.items():
        api = reader.api(name, name)
        told[api.key] = None if limits is None else _limits(api, name, limits)
    asked.cluster.versions = told
    return await read(asked)


def _limits(api: Api, name: str, limits: Any) -> tuple[int, int]:
    low, high = api.range(unstable=True)
    low = 0 if api.key is ApiKey.PRODUCE else low
    if (
        not isinstance(limits, Mapping)
        or set(limits) != {"min", "max"}
        or any(type(n) is not int for n in limits.values())
    ):
        raise unprocessable(f"{name!r} needs {{'min': {low}, 'max': {high}}} or so, or null, not {limits!r}", name)
    least, most = limits["min"], limits["max"]
    if not low <= least <= most <= high:
        raise unprocessable(f"{api.key.title} can be served in versions {low} to {high}, not {least} to {most}", name)
    return least, most
