# Made from understudy/aio/scenario.py by tools/generate_client.py: change it there.
"""Scenarios: the steps that have steered a cluster, kept in a file, and done again."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from understudy.client.verbs import ScenarioVerbs
from understudy.control_api.scenario_file import read


class Scenario(ScenarioVerbs):
    """The steps since the start or the last reset."""

    def record(self) -> dict[str, Any]:
        """The steps as the document of a scenario file, for `json.dump`."""
        found: dict[str, Any] = self._ask("scenario record")
        return found

    def run(self, scenario: str | Path | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> int:
        """Do the steps of a file, of its document or of a list; returns how many were done."""
        if isinstance(scenario, str | Path):
            scenario = read(str(scenario)).steps
        steps = scenario["steps"] if isinstance(scenario, Mapping) else scenario
        done: int = (self._ask("scenario run", steps=list(steps)))["steps"]
        return done
