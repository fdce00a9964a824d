"""What a controller writes into ``__cluster_metadata``: the same admin requests, on real brokers and on ours.

    python -m tests.swap.metadata_records RELEASE JARS

plays `STEPS` on a broker of the jars in that folder, and writes down the batches of records that each step appends
(`metadata_records.json`): types, versions and fields. Ids, times and addresses are left out.
"""

import json
import os
import struct
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any
from uuid import UUID

from protocol.log_records.metadata import decode
from protocol.records.batch import RecordBatch, batches
from protocol.records.records import read_records
from protocol.uvarint import read_uvarint
from tests.differential.cluster import KafkaCluster
from tests.swap.metadata_steps import OLD, STEPS, STEPS_OF_OLD, Play
from tests.wire import Wire
from tools.compact_json import dumps

RECORDED = Path(__file__).with_suffix(".json")
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.min.isr": "1",
}
RESTART = "restart"
Step = list[list[str]]
"""The batches that a step appends; a record is its type, its version and its fields."""
_ALONE = {"NoOpRecord"}
_OWN = {"broker_epoch", "host", "port", "incarnation_id", "timestamp", "stored_key", "server_key", "log_dirs"}


def shown(batch: RecordBatch) -> list[str]:
    """Its records, without those that mean nothing."""
    if batch.is_control:
        return []
    return [line for record in read_records(batch) if (line := _line(record.value)).split(" ")[0] not in _ALONE]


def _line(value: bytes | None) -> str:
    assert value is not None
    _, at = read_uvarint(value, 0)
    kind, at = read_uvarint(value, at)
    version, _ = read_uvarint(value, at)
    record = decode(None, value)
    if record is None:
        return f"kind {kind} v{version}"
    plain = {each.name: _plain(getattr(record, each.name), each.name) for each in fields(record)}
    return f"{type(record).__name__} v{version} {json.dumps(plain)}"


def _plain(value: Any, name: str = "") -> Any:
    if isinstance(value, UUID):
        return "an id" if value.int > 1 else str(value.int)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, tuple):
        elements = [_plain(each, name) for each in value]
        return sorted(elements, key=str) if name == "features" else elements
    if hasattr(value, "__dataclass_fields__"):
        return {
            each.name: _plain(getattr(value, each.name), each.name) for each in fields(value) if each.name not in _OWN
        }
    return "-" if name in _OWN and value else value


def log(folder: Path) -> list[tuple[int, list[str]]]:
    """The offset and the records of each batch of the controller's log that has any."""
    shown_batches = []
    for file in sorted((folder / "__cluster_metadata-0").glob("*.log")):
        data = file.read_bytes()
        whole = data[: _whole(data)]
        shown_batches += [(batch.base_offset, lines) for batch in batches(whole) if (lines := shown(batch))]
    return shown_batches


def _whole(data: bytes) -> int:
    """Where the last whole batch ends: the one behind it may be being written."""
    at = 0
    while at + 12 <= len(data) and at + 12 + (size := struct.unpack_from(">i", data, at + 8)[0]) <= len(data) and size:
        at += 12 + size
    return at


def played(wire: Wire, folder: Path, plays: Mapping[str, Play], after_s: float = 0) -> dict[str, Step]:
    """Begin, and every step: what it appended, also in the time after it."""
    pause = threading.Event()
    STEPS["producer ids"](wire)  # the test of its readiness may have got some
    seen = log(folder)
    steps = {"begin": [lines for _, lines in seen]}
    for name, play in plays.items():
        play(wire)
        pause.wait(after_s)
        now = log(folder)
        steps[name] = [lines for _, lines in now[len(seen) :]]
        seen = now
    return steps


def load() -> dict[str, dict[str, Step]]:
    """Release -> step -> batches."""
    recorded: dict[str, dict[str, Step]] = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {}
    return recorded


def main() -> None:
    """Play it on a real broker."""
    release, os.environ["KAFKA_LIBS"] = sys.argv[1:3]
    plays = {release: of_real(STEPS), f"{release}, old": of_real(STEPS_OF_OLD, {"metadata.version": OLD})}
    RECORDED.write_text(dumps({**load(), **plays}, depth=3), encoding="utf-8")


def of_real(plays: Mapping[str, Play], features: Mapping[str, int] | None = None) -> dict[str, Step]:
    """The steps, and the end and the next start, on a new broker."""
    with tempfile.TemporaryDirectory() as folder:
        cluster = KafkaCluster(Path(folder), settings=SETTINGS, features=features)
        cluster.start()
        try:
            with Wire(cluster.addresses[0], "test") as wire:
                steps = played(wire, Path(folder) / "data-1", plays, 1.0 if features else 0)
            before = sum(map(len, steps.values()))
            cluster.stop(clean=True)
            cluster.start()
            steps[RESTART] = [lines for _, lines in log(Path(folder) / "data-1")[before:]]
            return steps
        finally:
            cluster.stop(clean=False)


if __name__ == "__main__":
    main()
