"""The release that the cluster plays: what new connections are told and may ask, and the features that go with it.

A connection plays the release that was played when it came (`broker.context.Connection`); what the cluster does by
itself follows the release of the moment.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING

from broker.context import AS_EVER, Versions
from broker.coordination.metadata.features import FRESH_LEVELS, METADATA_VERSION
from broker.handlers import APIS
from broker.node import Node
from broker.releases import Behaviour, Release
from broker.settings import BrokerSettings, ResourceType
from broker.verification import verifies
from protocol.errors import ErrorCode
from protocol.log_records.metadata import FeatureLevelRecord
from storage.producer_rules import REMEMBERED_BATCHES, ProducerRules

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


def rules_of(release: Release, settings: BrokerSettings) -> ProducerRules:
    """What a broker of that release with these settings decides about producers."""
    welcome, named = release.has(Behaviour.UNKNOWN_PRODUCERS_WELCOME), release.has(Behaviour.UNKNOWN_PRODUCER_ID)
    refused = ErrorCode.UNKNOWN_PRODUCER_ID if named else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    return ProducerRules(
        verification=verifies(release, settings),
        begins_at_zero=release.has(Behaviour.SEQUENCE_BEGINS_AT_ZERO),
        unknown=None if welcome else refused,
        remembered=REMEMBERED_BATCHES if release.has(Behaviour.FIVE_BATCHES_REMEMBERED) else 1,
        outlive_records=release.has(Behaviour.PRODUCERS_OUTLIVE_RECORDS),
    )


def keep_rules(cluster: "Cluster", node: Node) -> None:
    """Let a broker's logs, those that are open too, decide about producers as release and settings say now."""
    if node.logs is not None:
        rules = rules_of(cluster.release, node.settings)
        for each in fields(rules):
            setattr(node.logs.environment.producer_rules, each.name, getattr(rules, each.name))


def keep_settings(release: Release, settings: BrokerSettings) -> None:
    """Let a broker's settings be what they were in the release."""
    settings.play(
        release.defaults,
        retired=not release.has(Behaviour.NO_OLD_MESSAGES),
        small_segments=not release.has(Behaviour.SEGMENTS_OF_A_MEBIBYTE),
    )


def play(cluster: "Cluster", release: Release) -> None:
    """From now on the cluster behaves like that release, towards new connections and by itself."""
    if release.name == cluster.release.name:
        return
    cluster.release, cluster.versions = release, versions_of(release)
    for node in cluster.nodes.values():
        keep_settings(release, node.settings)
        keep_rules(cluster, node)
    cluster.hosting.reconfigure(ResourceType.BROKER, "")
    machine, levels = cluster.metadata.machine, cluster.image.features
    changed = [
        FeatureLevelRecord(name, level)
        for name, level in levels_of(release, cluster.options.features).items()
        if levels.get(name, 0) != level
    ]
    if changed:
        cluster.metadata.submit(lambda _now_ms: machine.remember(changed))
