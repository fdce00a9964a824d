"""The release that the cluster plays: what new connections are told and may ask, and the features that go with it.

A connection plays the release that was played when it came (`broker.context.Connection`); what the cluster does by
itself follows the release of the moment.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from broker.context import AS_EVER, Versions
from broker.coordination.metadata.features import FRESH_LEVELS, METADATA_VERSION
from broker.handlers import APIS
from broker.releases import Release
from protocol.log_records.metadata import FeatureLevelRecord

if TYPE_CHECKING:
    from broker.cluster import Cluster


def versions_of(release: Release) -> Versions:
    """The versions that a release serves of the APIs that are served here; ``None`` for those that it did not have."""
    if release.newest:
        return AS_EVER
    told: dict[int, tuple[int, int] | None] = {}
    for api in APIS:
        low, high = release.apis.get(api.key.title, (1, 0))
        least, most = max(low, api.oldest), min(high, api.versions[1])
        told[api.key] = (least, most) if least <= most else None
    return told


def levels_of(release: Release, overrides: Mapping[str, int]) -> dict[str, int]:
    """The features of a new cluster of that release, 0 for none; ``overrides`` win.

    A release without metadata.version (before 3.3) has ours, and does not tell it: our log of the metadata is KRaft's.
    """
    if release.newest:
        return {**FRESH_LEVELS, **overrides}
    levels = {name: release.levels.get(name, 0) for name in FRESH_LEVELS}
    levels[METADATA_VERSION] = release.levels.get(METADATA_VERSION, FRESH_LEVELS[METADATA_VERSION])
    return {**levels, **overrides}


def play(cluster: "Cluster", release: Release) -> None:
    """From now on the cluster behaves like that release, towards new connections and by itself."""
    if release.name == cluster.release.name:
        return
    cluster.release, cluster.versions = release, versions_of(release)
    machine, levels = cluster.metadata.machine, cluster.image.features
    changed = [
        FeatureLevelRecord(name, level)
        for name, level in levels_of(release, cluster.options.features).items()
        if levels.get(name, 0) != level
    ]
    if changed:
        cluster.metadata.submit(lambda _now_ms: machine.remember(changed))
