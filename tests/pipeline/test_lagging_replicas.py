"""A replica that stopped before the others has less of the log: that is no fault of a transaction."""

from pathlib import Path

import pytest

from protocol.log_records.transaction import TransactionState as State
from tests.pipeline.audited import findings_of
from tests.pipeline.fault_files import Planting


def replica(folder: Path, node_id: int, *, has_marker: bool) -> None:
    """The directory of a broker with a transaction that its coordinator has finished."""
    where = Planting(folder / f"broker-{node_id}", node_id=node_id)
    log = where.shelf("orders")
    log.data(3, producer=7, transactional=True)
    where.transaction("writer", 7, 0, State.ONGOING, [("orders", 0)])
    if has_marker:
        log.marker(7, 0, committed=True)
    else:
        where.tick()
    where.transaction("writer", 7, 0, State.COMPLETE_COMMIT)
    where.close()


@pytest.mark.parametrize(("leader_has", "expected"), [(True, 0), (False, 2)])
def test_a_marker_that_one_replica_has_is_not_missing(tmp_path: Path, leader_has: bool, expected: int) -> None:
    """Where no replica has it, the transaction hangs in both."""
    replica(tmp_path, 1, has_marker=leader_has)
    replica(tmp_path, 2, has_marker=False)
    findings = findings_of(tmp_path, "transaction-hanging")
    assert sum(each.count for each in findings) == expected
