"""The controller's log of ours has the records that real brokers of 4.3 and 4.4 write for the same requests."""

from pathlib import Path

import pytest

from tests.ports import free_ports
from tests.serving import start
from tests.swap.metadata_records import SETTINGS, STEPS, Step, load, played
from tests.wire import Wire

RECORDED = load()
UNORDERED = {"settings of several", "all settings at once"}
"""Kafka's order of resources differs from run to run; that of settings which go is not ours (GAPS.md)."""
CONTROLLER = "RegisterControllerRecord"
"""Ours is no process of its own, and does not register (GAPS.md)."""


def compared(step: str, batches: Step) -> Step:
    """What has to be equal: all of it, or the records in any order and in any batches."""
    found = [batch for batch in batches if not batch[0].startswith(CONTROLLER)]
    return [sorted(record for batch in found for record in batch)] if step in UNORDERED else found


def test_all_steps_were_recorded() -> None:
    """There are records of both releases; most of the steps write some."""
    assert set(RECORDED) == {"4.3", "4.4"}
    for steps in RECORDED.values():
        assert set(steps) == {"begin", *STEPS}
        assert sum(bool(batches) for batches in steps.values()) > 30
        assert steps["begin"][1][0].startswith(CONTROLLER)


@pytest.mark.parametrize("release", ["4.3", "4.4"])
def test_the_controller_writes_what_kafkas_does(tmp_path: Path, release: str) -> None:
    """Types, versions, fields and batches; ids, times and addresses aside."""
    (port,) = free_ports(1)
    server = start(port=port, data_dir=tmp_path / "data", settings=SETTINGS, as_version=release)
    try:
        with Wire(server.ready.bootstrap_servers[0], "test") as wire:
            found = played(wire, tmp_path / "data")
    finally:
        server.stop()
    for step, batches in RECORDED[release].items():
        assert compared(step, found[step]) == compared(step, batches), step
