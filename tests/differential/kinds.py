"""Keeps what a run of histories of one kind came to.

Usage: ``python -m tests.differential.kinds STATE KIND [RESTARTS [BROKERS]]``, where STATE is the file of
:mod:`tests.differential.many`. What is kept, of Kafka 4.4.0, is in docs/inside/rows.md.
"""

import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.compact_json import dumps

KEPT = Path(__file__).with_name("histories-kinds-4.4.json")


def kept() -> dict[str, Any]:
    """All runs, and how often each triple of API, version and error code was met in them."""
    state = json.loads(KEPT.read_text(encoding="utf-8"))
    seen = [[api, *counted] for api, triples in state["seen"].items() for counted in triples]
    return {"runs": state["runs"], "seen": seen}


def keep(state: Mapping[str, Any]) -> None:
    """Write what `kept` reads: a line for each run, and a line for the versions and codes of each API."""
    seen: dict[str, list[Any]] = {}
    for api, *counted in state["seen"]:
        seen.setdefault(api, []).append(counted)
    KEPT.write_text(dumps({"runs": state["runs"], "seen": seen}, depth=2), encoding="utf-8")


def with_run(state: dict[str, Any], run: dict[str, Any], kind: str, restarts: int, brokers: int) -> dict[str, Any]:
    """Return what is kept with another run. Raises ValueError: its seeds are there already."""
    whole = {"kind": kind, "restarts": restarts, "brokers": brokers, "seeds": run["seeds"]}
    for other in state["runs"]:
        alike = all(other[name] == whole[name] for name in ("kind", "restarts", "brokers"))
        if alike and any(low < above and below < high for low, high in run["seeds"] for below, above in other["seeds"]):
            raise ValueError(f"seeds of {kind} are kept already: {other['seeds']}")
    steady = sum(finding["steady"] for finding in run["found"])
    whole |= {"histories": run["histories"], "steps": run["steps"], "steady": steady}
    whole["once"] = len(run["found"]) - steady
    seen = Counter({(api, version, code): times for api, version, code, times in [*state["seen"]]})
    for api, version, code, times in run["seen"]:
        seen[api, version, code] += times
    order = sorted([*state["runs"], whole], key=lambda each: (each["kind"], each["brokers"], each["restarts"]))
    return {"runs": order, "seen": [[*key, times] for key, times in sorted(seen.items())]}


def main(file: Path, kind: str, restarts: int = 0, brokers: int = 1) -> None:
    """Add a run to what is kept."""
    state = with_run(kept(), json.loads(file.read_text(encoding="utf-8")), kind, restarts, brokers)
    keep(state)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], *(int(number) for number in sys.argv[3:]))
