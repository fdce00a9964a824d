"""The releases of Kafka that can be emulated: API versions, features, behaviours.

`table.json` is recorded from the releases themselves by `tools/record_releases.py`. It holds only changes: a range of
versions is listed under the first release that has it, and `settings.json` likewise. `behaviours.py` has what neither
shows.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from broker.settings.releases.behaviours import Behaviour
from broker.settings.releases.definitions import Definition, definitions_of
from protocol.deferred import dataclass

__all__ = ["DEFAULT", "NAMES", "NEWEST", "Behaviour", "Definition", "Release", "newest_behaves", "release"]

NAMES = (
    *("0.11", "1.0", "1.1"),
    *(f"2.{minor}" for minor in range(9)),
    *(f"3.{minor}" for minor in range(10)),
    *("4.0", "4.1", "4.2", "4.3", "4.4"),
)
"""Oldest first."""
NEWEST = NAMES[-1]
DEFAULT = NEWEST
"""The release that is emulated by default."""


@dataclass(frozen=True, slots=True)
class Release:
    """A release of Kafka.

    Attributes:
        name: such as "2.8".
        version: the patch release from whose broker or classes the data were recorded.
        run: whether a broker of it was run; else only its classes were read.
        apis: API's name -> lowest and highest version on the broker's listener.
        supported: feature -> lowest and highest level; empty before features (KIP-584).
        levels: the finalized levels of a fresh cluster.
        features_epoch: the features' epoch that a release without features sends; -1 for none.
        last_error: the highest error code of the release.
        behaviours: the behaviours of the release that older ones did not have.
    """

    name: str
    version: str
    run: bool
    apis: Mapping[str, tuple[int, int]]
    supported: Mapping[str, tuple[int, int]]
    levels: Mapping[str, int]
    features_epoch: int
    last_error: int
    behaviours: frozenset[Behaviour]

    @property
    def unstable_versions(self) -> bool:
        """Whether its versions in development, and the APIs that it serves unlisted, are emulated (since 4.3)."""
        return self.at_least("4.3")

    def at_least(self, other: str) -> bool:
        """Whether it is that release or a later one."""
        return NAMES.index(self.name) >= NAMES.index(other)

    def has(self, behaviour: Behaviour) -> bool:
        """Whether the release has this behaviour."""
        return behaviour in self.behaviours

    @property
    def settings(self) -> Mapping[str, Definition]:
        """`broker NAME`, `topic NAME`, `group NAME` -> a definition that differs from the newest release's."""
        return definitions_of(self.name, NAMES)

    @property
    def newest(self) -> bool:
        """Whether it is the newest release, which offers everything that the code serves."""
        return self.name == NEWEST


@cache
def release(name: str) -> Release:
    """Return a release by its name. Raises KeyError."""
    table = _table()
    facts = table["releases"][name]
    position = NAMES.index(name)
    apis: dict[str, tuple[int, int]] = {}
    for api, ranges in table["apis"].items():
        limits = next((ranges[each] for each in reversed(NAMES[: position + 1]) if each in ranges), None)
        if limits is not None:
            apis[api] = (limits[0], limits[1])
    return Release(
        name,
        facts["version"],
        facts["run"],
        apis,
        {feature: (low, high) for feature, (low, high) in facts.get("supported", {}).items()},
        facts.get("levels", {}),
        facts.get("features_epoch", -1),
        facts["last_error"],
        frozenset(each for each in Behaviour if NAMES.index(each.since) <= position),
    )


def newest_behaves(behaviour: Behaviour) -> bool:
    """Whether the newest release has this behaviour."""
    return release(NEWEST).has(behaviour)


@cache
def _table() -> Any:
    return json.loads(Path(__file__).with_name("table.json").read_text(encoding="ascii"))
