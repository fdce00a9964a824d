"""Features of the cluster: supported ranges, finalized levels, and their updates (core A.5, B.13)."""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from protocol.errors import ErrorCode, KafkaError
from protocol.java import HashMap
from protocol.log_records.metadata import CHANGED_METADATA

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
TRANSACTION_VERSION = "transaction.version"
GROUP_VERSION = "group.version"
ELR_VERSION = "eligible.leader.replicas.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"

SCRAM_LEVEL, TRANSACTIONS_LEVEL, CONTROLLER_REGISTRATION_LEVEL, DIRECTORIES_LEVEL = 11, 13, 15, 17
CORDONED_LEVEL, CIDR_LEVEL, CONTROLLER_UNREGISTRATION_LEVEL = 30, 32, 33
"""The first levels of metadata.version with records of SCRAM credentials, metadata transactions, controllers, log
directories, cordoned log directories, CIDR hosts in ACLs, and unregistered controllers."""

SUPPORTED: Mapping[str, tuple[int, int]] = {
    METADATA_VERSION: (7, 33),
    KRAFT_VERSION: (0, 1),
    TRANSACTION_VERSION: (0, 2),
    GROUP_VERSION: (0, 1),
    ELR_VERSION: (0, 1),
    SHARE_VERSION: (0, 2),
    STREAMS_VERSION: (0, 1),
}
"""Feature -> supported (min, max) of the newest emulated release, Kafka 4.4."""

FRESH_LEVELS: Mapping[str, int] = {
    METADATA_VERSION: 33,
    ELR_VERSION: 1,
    GROUP_VERSION: 1,
    SHARE_VERSION: 2,
    STREAMS_VERSION: 1,
    TRANSACTION_VERSION: 2,
}
"""Finalized levels of a freshly formatted 4.4 cluster, in the order of its bootstrap records.

kraft.version is not among them: it is a control record of the raft log, and 0 if the voters are static.
"""


_DEFAULTS: Mapping[str, Sequence[tuple[int, int]]] = {
    GROUP_VERSION: ((22, 1),),
    TRANSACTION_VERSION: ((24, 2),),
    ELR_VERSION: ((26, 1),),
    SHARE_VERSION: ((28, 1), (31, 2)),
    STREAMS_VERSION: ((29, 1),),
}
"""Feature -> (metadata.version, level of a new cluster from that version on) pairs (``Feature.defaultLevel``)."""


def level_at(name: str, metadata_version: int) -> int:
    """Return a feature's level in a new cluster of a ``metadata.version`` (``kafka-storage version-mapping``)."""
    if name == METADATA_VERSION:
        return metadata_version
    return max((level for least, level in _DEFAULTS[name] if metadata_version >= least), default=0)


class UpgradeType(IntEnum):
    """Kinds of updates in an UpdateFeatures request."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """One feature of a request; ``upgrade_type`` as in the protocol."""

    name: str
    level: int
    upgrade_type: int = UpgradeType.UPGRADE


class Node(NamedTuple):
    """A node that has to support a level: ``kind`` is "Broker", "Controller" or "Local controller"."""

    kind: str
    id: int
    supports: Mapping[str, tuple[int, int]]


def fresh_levels(overrides: Mapping[str, int] | None = None) -> dict[str, int]:
    """Return the levels of a new cluster; an override of 0 removes a feature."""
    levels = {**FRESH_LEVELS, **(overrides or {})}
    return {name: level for name, level in levels.items() if level > 0 and name != KRAFT_VERSION}


def decide(updates: Sequence[FeatureUpdate], levels: Mapping[str, int], nodes: Sequence[Node]) -> dict[str, int]:
    """Return the new level of each feature in the updates, in the order of Kafka's map; all are valid or none.

    Raises:
        KafkaError: INVALID_UPDATE_VERSION for the first invalid update, with Kafka's message.
    """
    decided: dict[str, int] = {}
    proposed = {**levels, **{each.name: each.level for each in updates}}
    last = HashMap((each.name, each) for each in updates)  # the last update of a repeated feature counts
    for update in (last[name] for name in last):
        current = levels.get(update.name, 0)
        reason = _reason(update, current, nodes) or _missing(update, proposed)
        refused: str | None = None
        if reason is not None:
            refused = f"Invalid update version {update.level} for feature {update.name}. {reason}"
        elif update.name == METADATA_VERSION and update.level < current:
            refused = _loses(update, current)
        if refused is not None:
            raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, f"{_FAILED}: {refused}")
        decided[update.name] = update.level
    return decided


_FAILED = "The update failed for all features since the following feature had an error"


def _reason(update: FeatureUpdate, current: int, nodes: Sequence[Node]) -> str | None:
    """Return why an update is invalid, by the checks of FeatureControlManager.updateFeature in their order."""
    if update.upgrade_type not in set(UpgradeType):
        return "The controller does not support the given upgrade type."
    if update.level < 0:
        return "A feature version cannot be less than 0."
    unsupported = _unsupported(update, nodes)
    if unsupported is not None:
        return unsupported
    upgrade = update.upgrade_type == UpgradeType.UPGRADE
    if update.level < current and upgrade:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
    if update.level > current and not upgrade:
        return "Can't downgrade to a newer version."
    if update.name == KRAFT_VERSION and update.level < current:
        return "Can't downgrade the version of this feature."
    if update.name not in SUPPORTED:  # Feature.featureFromName
        return f"Feature {update.name} not found."
    return None


def _loses(update: FeatureUpdate, current: int) -> str | None:
    """Return why metadata.version cannot be downgraded to that level, or ``None``."""
    if not any(update.level < level <= current for level in CHANGED_METADATA):
        return None
    unsafe = update.upgrade_type == UpgradeType.UNSAFE_DOWNGRADE
    reason = (
        "Unsafe metadata downgrade is not supported in this version."
        if unsafe
        else "Refusing to perform the requested downgrade because it might delete metadata information."
    )
    return f"Unsupported metadata.version downgrade from {current} to {update.level}. {reason}"


def _unsupported(update: FeatureUpdate, nodes: Sequence[Node]) -> str | None:
    for node in nodes:
        if update.name not in node.supports:
            if update.level:
                return f"{node.kind} {node.id} does not support this feature."
            continue
        low, high = node.supports[update.name]
        if not low <= update.level <= high:
            return f"{node.kind} {node.id} only supports versions {low if low == high else f'{low}-{high}'}"
    return None


# Feature.dependencies: (feature, level) -> the level that metadata.version must have.
_NEEDS = {(ELR_VERSION, 1): 23}


_LEAST_METADATA = 7
"""3.3-IV3, the first level at which features are stored at all."""


def _missing(update: FeatureUpdate, levels: Mapping[str, int]) -> str | None:
    """Return the message about a missing dependency of a feature, or ``None`` (Feature.validateVersion)."""
    if update.name != METADATA_VERSION and update.level and levels.get(METADATA_VERSION, 0) < _LEAST_METADATA:
        return f"{update.name} could not be set to {update.level} because it depends on metadata.version=7 (3.3-IV3)"
    need = _NEEDS.get((update.name, update.level), 0)
    if levels.get(METADATA_VERSION, 0) >= need:
        return None
    return f"{update.name} could not be set to {update.level} because it depends on {METADATA_VERSION} level {need}"
