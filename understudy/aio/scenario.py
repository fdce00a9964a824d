"""Scenarios: the recorded control steps of a cluster, which can be saved and repeated."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from control_api.scenario_file import read
from understudy.aio.verbs import ScenarioVerbs


class AsyncScenario(ScenarioVerbs):
    """The steps since the start or the last reset."""

    async def record(self) -> dict[str, Any]:
        """Return the steps as the document of a scenario file, for `json.dump`."""
        document: dict[str, Any] = await self._ask("scenario record")
        return document

    async def run(self, scenario: str | Path | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> int:
        """Run the steps of a file, of its document or of a list; return their number."""
        if isinstance(scenario, str | Path):
            scenario = read(str(scenario)).steps
        steps = scenario["steps"] if isinstance(scenario, Mapping) else scenario
        done: int = (await self._ask("scenario run", steps=list(steps)))["steps"]
        return done
