"""The emulated release: API versions for new connections, feature levels, and rules for producers.

A connection keeps the release of its first request (`broker.request.connection.Connection`); the cluster's own
behaviour follows the current release.
"""

from collections.abc import Mapping
from dataclasses import fields

from broker.coordination.metadata.features import FRESH_LEVELS, METADATA_VERSION, SUPPORTED, level_at
from broker.handlers import APIS
from broker.options.released import setting_tables
from broker.partitions.transactions.verification import verifies
from broker.request.api import ServedVersions
from broker.request.connection import AS_EVER, Versions
from broker.request.node import Node
from broker.settings import BrokerSettings
from broker.settings.releases import Behaviour, Release
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from storage.producers.rules import REMEMBERED_BATCHES, ProducerRules

UNADVERTISED_METADATA_VERSION = 30
"""The metadata.version used for the metadata log if the release had none (before 3.3); it is not advertised."""


def versions_of(release: Release) -> Versions:
    """Return the versions that a release serves of each API; ``None`` for APIs that it did not have.

    APIs whose range in a recent release equals the newest release's are left out, so that unlisted APIs and versions in
    development are served too.
    """
    if release.newest:
        return AS_EVER
    advertised: dict[int, tuple[int, int] | None] = {}
    for api in APIS:
        low, high = release.apis.get(api.key.title, (1, 0))
        least, most = max(low, api.oldest), min(high, api.versions[1])
        unchanged = not api.listed or (least, most) == listed_range(api)
        if release.unstable_versions and unchanged:
            continue
        advertised[api.key] = (least, most) if least <= most else None
    if ApiKey.REMOVE_RAFT_VOTER.title not in release.apis:  # UpdateRaftVoter, of controllers only, came with it
        advertised[ApiKey.UPDATE_RAFT_VOTER] = None
    return advertised


def listed_range(api: ServedVersions) -> tuple[int, int]:
    """Return the versions of an API that ApiVersions lists by default (Produce from 0: core A.5.4)."""
    return 0 if api.key is ApiKey.PRODUCE else api.versions[0], api.versions[1]


def feature_levels(release: Release, overrides: Mapping[str, int]) -> dict[str, int]:
    """Return the feature levels of a new cluster of that release, 0 for none; ``overrides`` take precedence.

    With a lower ``metadata.version`` the others have the levels that ``kafka-storage format`` gives them there. A
    release without it (before 3.3) gets a level that is not advertised: the metadata log is always KRaft's.
    """
    levels = dict(FRESH_LEVELS)
    if not release.newest:
        levels = {name: release.levels.get(name, 0) for name in FRESH_LEVELS}
        levels[METADATA_VERSION] = release.levels.get(METADATA_VERSION, UNADVERTISED_METADATA_VERSION)
    chosen = overrides.get(METADATA_VERSION)
    if chosen is not None:
        levels = {name: min(level, level_at(name, chosen)) for name, level in levels.items()}
    return {**levels, **overrides}


def supported_features(release: Release) -> Mapping[str, tuple[int, int]]:
    """Return the feature levels that brokers of that release register; the newest release's if it had no features."""
    return release.supported or SUPPORTED


def producer_rules_of(release: Release, settings: BrokerSettings) -> ProducerRules:
    """Return the producer rules of a broker of that release with these settings."""
    welcome, named = release.has(Behaviour.UNKNOWN_PRODUCERS_WELCOME), release.has(Behaviour.UNKNOWN_PRODUCER_ID)
    refused = ErrorCode.UNKNOWN_PRODUCER_ID if named else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    return ProducerRules(
        verification=verifies(release, settings),
        begins_at_zero=release.has(Behaviour.SEQUENCE_BEGINS_AT_ZERO),
        unknown=None if welcome else refused,
        remembered=REMEMBERED_BATCHES if release.has(Behaviour.FIVE_BATCHES_REMEMBERED) else 1,
        outlive_records=release.has(Behaviour.PRODUCERS_OUTLIVE_RECORDS),
    )


def apply_producer_rules(release: Release, node: Node) -> None:
    """Apply the release's producer rules, with the broker's settings, to its logs, including open ones."""
    rules = producer_rules_of(release, node.settings)
    for log_dir in node.log_dirs:
        for rule in fields(rules):
            setattr(log_dir.context.producer_rules, rule.name, getattr(rules, rule.name))


def apply_release_defaults(release: Release, settings: BrokerSettings) -> None:
    """Apply the settings tables of a release to a broker's settings."""
    settings.emulate(
        setting_tables(release.name),
        bounds_as_ranges=release.has(Behaviour.BOUNDS_AS_RANGES),
        refuses_duplicates=release.has(Behaviour.DUPLICATES_OF_BROKERS_REFUSED),
        names_unknown_operations=release.has(Behaviour.LOGGER_OPERATIONS_NAMED),
    )
