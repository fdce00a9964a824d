"""Verbs about the versions of the APIs that clients are told."""

from collections.abc import Mapping
from typing import Any

from broker.chain import Api
from broker.control.asked import Asked
from broker.control.fault_body import MatchReader
from broker.control.problems import unprocessable
from broker.handlers import APIS
from broker.playing import play, versions_of
from broker.releases import NAMES, NEWEST, Behaviour, Release, release
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
    "properties": {
        "as_version": {
            "type": ["string", "null"],
            "description": "a Kafka release, such as 2.8; null: as it was started",
        }
    },
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
    return {"as_version": asked.cluster.release.name, "releases": list(NAMES), "apis": apis}


async def write(asked: Asked) -> dict[str, Any]:
    """Play another release, or tell other versions of some APIs, to new connections; {} takes that back."""
    cluster, body = asked.cluster, dict(asked.body)
    started_as = cluster.options.as_version or NEWEST
    as_version = body.pop("as_version", None) or (cluster.release.name if body else started_as)
    if not isinstance(as_version, str) or as_version not in NAMES:
        as_text = f': write it as a text, "{as_version}"' if str(as_version) in NAMES else ""
        known = ", ".join(NAMES)
        raise unprocessable(f"'as_version' must be one of {known}, not {as_version!r}{as_text}", "as_version")
    reader = MatchReader(APIS, (), ())
    limits: dict[int, tuple[int, int] | None] = {}
    for name, asked_for in body.items():
        api = reader.api(name, name)
        limits[api.key] = None if asked_for is None else _limits(api, name, asked_for, release(as_version))
    if "as_version" in asked.body or not body:
        play(cluster, release(as_version))
        cluster.versions = versions_of(cluster.release)
    cluster.versions = {**cluster.versions, **limits}
    return await read(asked)


def _limits(api: Api, name: str, limits: Any, played: Release) -> tuple[int, int]:
    _, high = api.range(unstable=True)
    low = api.versions[0] if played.has(Behaviour.OLD_VERSIONS_CLOSE) else api.oldest
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
