"""An administrator who changes feature levels, and checks which requests are refused (KIP-584, KIP-1022)."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from random import Random

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from simulator.clients.client import RETRIABLE, Client, Lost, World, first_error

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3  # FeatureUpdate.UpgradeType
METADATA_VERSION, SHARE_VERSION = "metadata.version", "share.version"
ELR_VERSION = "eligible.leader.replicas.version"
_CHANGED = {"metadata.version": (7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33)}
"""Levels of `metadata.version` with new records or fields: no safe downgrade crosses them (KIP-778)."""
_FEATURES = (
    METADATA_VERSION, SHARE_VERSION, ELR_VERSION, "group.version", "transaction.version", "streams.version",
)  # fmt: skip
_TRIES = 50  # with pauses some ten seconds, longer than the faults


@dataclass(frozen=True, slots=True)
class Levels:
    """Features in an ApiVersions response: supported levels of the broker, and finalized levels of the cluster."""

    supported: Mapping[str, tuple[int, int]]
    finalized: Mapping[str, int]

    def refuses(self, name: str, level: int, kind: int) -> bool:
        """Whether a request for a level of one feature must be refused."""
        least, most = self.supported.get(name, (0, 0))
        current = self.finalized.get(name, 0)
        lost = level < current and any(level < each <= current for each in _CHANGED.get(name, ()))
        return (
            not least <= level <= most
            or lost
            or (level < current and kind == UPGRADE)
            or (level > current and kind != UPGRADE)
        )


class Administrator(Client):
    """Changes feature levels. It resets a connection whose request it gives up, so that no request arrives late.

    ``needed`` are features that the run's groups need.
    """

    def __init__(self, world: World, name: str, needed: Collection[str]) -> None:
        super().__init__(world, name)
        self._needed = frozenset(needed)
        self.resets = True
        self._one_at_a_time = asyncio.Lock()

    async def change(self, chance: Random, *, keeps_eligible: bool) -> str | None:
        """Request another level of a feature once; return a line for the story, None if there was no request.

        ``keeps_eligible``: the feature of eligible leader replicas is not changed.
        """
        name, kind = chance.choice(_FEATURES), chance.choice((UPGRADE, UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE))
        broker = chance.choice(sorted(self.world.network.broker_of.values()))
        async with self._one_at_a_time:
            try:
                before = await self._levels(broker)
                least, most = before.supported.get(name, (0, 1))
                # Arbitrary: few levels of metadata.version, so that changes go down as often as up.
                low = most - 4 if name == METADATA_VERSION else max(least, 1) if name in self._needed else least
                level = chance.choice(range(low, most + 2))
                if level == before.finalized.get(name, 0) or (keeps_eligible and name == ELR_VERSION):
                    return None
                return await self._update(broker, before, name, level, kind)
            except Lost:
                return None

    async def _update(self, broker: int, before: Levels, name: str, level: int, kind: int) -> str:
        """Send UpdateFeatures, and check the response. Raises Lost."""
        update = FeatureUpdateKey(name, level, upgrade_type=kind)
        history = self.world.history
        change = f"{name} from {before.finalized.get(name, 0)} to {level}, type {kind}"
        # As long as a controller may need: the client gives up before.
        answer = await self.ask(broker, ApiKey.UPDATE_FEATURES, 2, UpdateFeaturesRequest(60_000, [update]), change)
        code, refused = first_error(answer), before.refuses(name, level, kind)
        after = await self._levels(broker)
        if after.supported != before.supported or self.world.history is not history:
            return f"{change}: {code.name}, but the cluster was reset or restored"
        if code not in RETRIABLE and (code is ErrorCode.INVALID_UPDATE_VERSION) is not refused:
            self.history.violate(f"{self.name}: {change}, got {code.name}")
        if code is ErrorCode.NONE and (finalized := after.finalized.get(name, 0)) != level:
            self.history.violate(f"{self.name}: {change}, got NONE, but broker {broker} has {finalized}")
        return f"{change}: {code.name}"

    async def raise_all(self) -> None:
        """Raise all features to their highest levels, except `metadata.version`, which could never be lowered again."""
        for _ in range(_TRIES):
            try:
                broker = min(self.world.network.broker_of.values())
                levels = await self._levels(broker)
                missing = [
                    name
                    for name in _FEATURES
                    if name != METADATA_VERSION
                    and levels.finalized.get(name, 0) < levels.supported.get(name, (0, 0))[1]
                ]
                if not missing:
                    return
                name = missing[0]
                await self._update(broker, levels, name, levels.supported[name][1], UPGRADE)
            except Lost:
                await self.pause()
        self.history.violate(f"{self.name}: the features cannot be raised")

    async def _levels(self, broker: int) -> Levels:
        """Return the feature levels that a broker reports. Raises Lost."""
        request = ApiVersionsRequest("simulator", "1")
        answer: ApiVersionsResponse = await self.ask(broker, ApiKey.API_VERSIONS, 4, request)
        return Levels(
            {each.name: (each.min_version, each.max_version) for each in answer.supported_features},
            {each.name: each.max_version_level for each in answer.finalized_features},
        )
