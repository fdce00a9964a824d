"""The controller's log of ours has the records that real brokers of 4.3 and 4.4 write for the same requests."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.ports import free_ports
from tests.serving import start
from tests.swap.metadata_records import RESTART, SETTINGS, Step, load, log, played
from tests.swap.metadata_steps import OLD, STEPS, STEPS_OF_OLD, Play
from tests.wire import Wire

RECORDED = load()
UNORDERED = {"settings of several", "settings of two at once", "least in-sync replicas of several"}
"""Kafka's order of resources differs from run to run."""


def compared(step: str, batches: Step) -> Step:
    """What has to be equal: all of it, or the records of a batch in any order; of a restart the controller's."""
    if step == RESTART:
        return [batch for batch in batches if batch[0].startswith("RegisterControllerRecord")]
    return [sorted(batch) for batch in batches] if step in UNORDERED else batches


def test_all_steps_were_recorded() -> None:
    """There are records of both releases; most of the steps write some."""
    assert set(RECORDED) == {"4.3", "4.4", "4.3, old", "4.4, old"}
    for name, steps in RECORDED.items():
        assert set(steps) == {"begin", *(STEPS_OF_OLD if "old" in name else STEPS), RESTART}
        assert sum(bool(batches) for batches in steps.values()) > len(steps) / 2


@pytest.mark.parametrize("release", ["4.3", "4.4"])
@pytest.mark.parametrize(
    ("name", "plays", "features"), [("", STEPS, {}), (", old", STEPS_OF_OLD, {"metadata.version": OLD})]
)
def test_the_controller_writes_what_kafkas_does(
    tmp_path: Path, release: str, name: str, plays: Mapping[str, Play], features: Mapping[str, int]
) -> None:
    """Types, versions, fields and batches; ids, times and addresses aside. Then it is stopped, and started again."""
    data = tmp_path / "data"
    (port,) = free_ports(1)
    again = {"port": port, "data_dir": data, "settings": SETTINGS, "as_version": release}
    server = start(**again, features=features)
    try:
        with Wire(server.ready.bootstrap_servers[0], "test") as wire:
            steps = played(wire, data, plays)
    finally:
        server.stop()
    before = sum(map(len, steps.values()))
    start(**again).stop()
    steps[RESTART] = [lines for _, lines in log(data)[before:]]
    for step, batches in RECORDED[release + name].items():
        assert compared(step, steps[step]) == compared(step, batches), step
