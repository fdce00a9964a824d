# Made from understudy/aio/scenario.py by tools/generate_client.py: change it there.
"""Scenarios: the recorded control steps of a cluster, which can be saved and repeated."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from control_api.scenario_file import read
from understudy.client.verbs import ScenarioVerbs


class Scenario(ScenarioVerbs):
    """The steps since the start or the last reset."""

    def record(self) -> dict[str, Any]:
        """Return the steps as the document of a scenario file, for `json.dump`."""
        document: dict[str, Any] = self._ask("scenario record")
        return document

    def run(self, scenario: str | Path | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> int:
        """Run the steps of a file, of its document or of a list; return their number."""
        if isinstance(scenario, str | Path):
            scenario = read(str(scenario)).steps
        steps = scenario["steps"] if isinstance(scenario, Mapping) else scenario
        done: int = (self._ask("scenario run", steps=list(steps)))["steps"]
        return done
