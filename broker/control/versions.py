"""Verbs about the API versions that clients are offered."""

from broker.cluster.emulation import versions_of
from broker.control.names import served_api
from broker.control.problems import unprocessable
from broker.control.request import ControlRequest
from broker.control.verbs import answers
from broker.handlers import APIS
from broker.request.api import ServedVersions
from broker.settings.releases import DEFAULT, NAMES, Behaviour, Release, release
from control_api.answers.cluster import VersionRange, Versions
from control_api.cluster import VersionLimits, VersionsChange
from protocol.apis import ApiKey


@answers("versions show")
async def read(request: ControlRequest) -> Versions:
    """Show the API versions offered to new connections."""
    changed = request.cluster.versions
    unstable = request.cluster.settings.boolean("unstable.api.versions.enable")
    apis = {}
    for api in APIS:
        limits = changed[api.key] if api.key in changed else api.range(unstable=unstable)
        apis[api.key.title] = None if limits is None else VersionRange(min=limits[0], max=limits[1])
    return {"as_version": request.cluster.release.name, "releases": list(NAMES), "apis": apis}


@answers("versions set")
async def write(request: ControlRequest, body: VersionsChange) -> Versions:
    """Emulate another release, or offer other versions of some APIs, for new connections; {} undoes that."""
    cluster, apis = request.cluster, body.get("apis", {})
    started_as = cluster.options.as_version or DEFAULT
    named = body.get("as_version") if body.get("as_version") is not None else started_as
    as_version = cluster.release.name if apis and "as_version" not in body else named
    if as_version not in NAMES:
        raise unprocessable(f"'as_version' must be one of {', '.join(NAMES)}, not {as_version!r}", "as_version")
    limits: dict[int, tuple[int, int] | None] = {}
    for name, wanted in apis.items():
        api = served_api(name, name)
        limits[api.key] = None if wanted is None else _limits(api, name, wanted, release(as_version))
    if "as_version" in body or not body:
        cluster.emulate(release(as_version))
        cluster.versions = versions_of(cluster.release)
    cluster.versions = {**cluster.versions, **limits}
    return await read(request)


def _limits(api: ServedVersions, name: str, limits: VersionLimits, played: Release) -> tuple[int, int]:
    _, high = api.range(unstable=True)
    low = api.versions[0] if played.has(Behaviour.OLD_VERSIONS_CLOSE) else api.oldest
    low = 0 if api.key is ApiKey.PRODUCE else low
    least, most = limits["min"], limits["max"]
    if not low <= least <= most <= high:
        raise unprocessable(f"{api.key.title} can be served in versions {low} to {high}, not {least} to {most}", name)
    return least, most
