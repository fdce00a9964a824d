"""A copy from topic to topic, exactly once, with faults planted at known places."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from protocol.log_records.transaction import TransactionState as State
from tests.pipeline.fault_files import Planting

INPUT, OUTPUT, GROUP = "in", "out", "copier"
OFFSETS = "__consumer_offsets"


class IdentityFinding(NamedTuple):
    """Where an audit has to point."""

    check: str
    topic: str
    partition: int
    offset: int


def _values(ids: Iterable[str]) -> list[bytes]:
    return [json.dumps({"order": {"id": each}}).encode() if each else b"no JSON" for each in ids]


class Copier:
    """Transactions of a producer that write outputs and commit input offsets."""

    def __init__(self, where: Planting, producer: int) -> None:
        self.where, self.producer, self.epoch = where, producer, 0
        where.shelf(OUTPUT)
        where.shelf(OFFSETS, retention_ms="-1", cleanup_policy="delete")

    def copy(
        self, ids: Sequence[str], commits: dict[int, int], *, keys: Sequence[bytes] = (), committed: bool = True
    ) -> int:
        """One transaction; the offset of its first output. `commits`: input partition -> offset."""
        where, name = self.where, f"tx-{self.producer}"
        touched = [(OUTPUT, 0), (OFFSETS, 0)]
        where.transaction(name, self.producer, self.epoch, State.ONGOING, touched)
        at = where.shelf(OUTPUT).data(
            len(ids), producer=self.producer, epoch=self.epoch, transactional=True, values=_values(ids), keys=keys
        )
        for partition, offset in commits.items():
            where.committed_offset(GROUP, INPUT, partition, offset, producer=self.producer, epoch=self.epoch)
        self.epoch += 1
        for topic, number in touched if commits else touched[:1]:
            where.shelf(topic, number).marker(self.producer, self.epoch, committed=committed)
        where.transaction(name, self.producer, self.epoch, State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT)
        return at


def fed(where: Planting, partition: int, ids: Sequence[str], keys: Sequence[bytes] = ()) -> None:
    """Append inputs."""
    where.shelf(INPUT, partition).data(len(ids), values=_values(ids), keys=keys)


def clean(where: Planting) -> Copier:
    """Inputs that are in the output once: in several transactions, one of them aborted and repeated."""
    fed(where, 0, ["a0", "a1", "a2", "a3"])
    fed(where, 1, ["b0", "b1"])
    copier = Copier(where, 700)
    copier.copy(["a0", "a1"], {0: 2})
    copier.copy(["a2", "b0"], {0: 3, 1: 1}, committed=False)
    copier.copy(["a2", "b0"], {0: 3, 1: 1})
    copier.copy(["a3", "b1"], {0: 4, 1: 2})
    where.committed_offset("another-group", INPUT, 0, 1)
    return copier


def planted(root: Path) -> set[IdentityFinding]:
    """Write the directory with every fault; what has to be found."""
    where = Planting(root)
    copier = clean(where)
    fed(where, 0, ["lost", "twice", "k1", "k2", ""], keys=[b"x", b"y", b"z", b"z", b"w"])
    fed(where, 1, ["apart", "early"])
    first = copier.copy(["twice", "k2", "k1"], {0: 9}, keys=[b"y", b"z", b"z"])
    second = copier.copy(["twice", "early", "unknown"], {})
    other = Copier(where, 701)
    apart = other.copy(["apart"], {})
    copier.copy(["a filler that is not there"], {1: 3})
    filler = where.shelf(OUTPUT).next_offset - 2
    where.close()
    return {
        IdentityFinding("identity-lost", INPUT, 0, 4),
        IdentityFinding("identity-twice", OUTPUT, 0, second),
        IdentityFinding("identity-order", OUTPUT, 0, first + 2),
        IdentityFinding("identity-uncommitted", OUTPUT, 0, second + 1),
        IdentityFinding("identity-unknown", OUTPUT, 0, second + 2),
        IdentityFinding("identity-unknown", OUTPUT, 0, filler),
        IdentityFinding("identity-transaction", OUTPUT, 0, apart),
        IdentityFinding("identity-missing", INPUT, 0, 8),
    }
