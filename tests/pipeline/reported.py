"""A directory and a journal made for reports: everything that a report shows of them is known."""

import json
import random
from collections.abc import Mapping
from pathlib import Path

from storage.cleaner.cleaner import LogCleaner
from storage.files import DiskFiles
from storage.log import retention
from storage.log.config import LogConfig
from storage.log.context import LogContext
from storage.log_dir import LogDir
from tests.pipeline.fault_files import Planting, Shelf
from tests.pipeline.journal_lines import Wiring

DAY_MS = 86_400_000
SETTINGS = {
    "table": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.3"},
    "young": {"cleanup.policy": "compact", "min.compaction.lag.ms": "4000"},
    "pinned": {"cleanup.policy": "compact"},
    "aged": {"retention.ms": str(3 * DAY_MS)},
    "sized": {"retention.bytes": "1000"},
    "both": {"cleanup.policy": "compact,delete", "retention.ms": str(3 * DAY_MS)},
}
"""The topics whose settings matter; the same go to the storage that is asked what it would do."""


def directory(root: Path) -> int:
    """Write it; returns the time at which it is looked at, in milliseconds."""
    where = Planting(root)
    for topic, settings in SETTINGS.items():
        where.shelf(topic)
        where.configs[topic] = dict(settings)
    _skewed(where)
    _compacted(where)
    _aging(where)
    _values(where)
    where.committed_offset("readers", "skewed", 0, 10)
    where.committed_offset("readers", "skewed", 0, 45)
    where.committed_offset("readers", "skewed", 1, 20)
    where.close()
    return where.now_ms + 1000


def _skewed(where: Planting) -> None:
    """60, 20, 20 and 0 records; the key `hot` has 50 of them, one has no key, one lies in two partitions."""
    where.shelf("skewed", 0).data(60, keys=[b"hot"] * 50 + [b"k%d" % number for number in range(9)] + [None])
    where.shelf("skewed", 1).data(20, keys=[b"a%d" % number for number in range(20)])
    where.shelf("skewed", 2).data(20, keys=[b"k0"] + [b"\xff%d" % number for number in range(19)])
    where.shelf("skewed", 3)


def _put(log: Shelf, keys: str, **fields: int | bool) -> None:
    """One batch; a key in capitals is a tombstone, `-` a record without a key."""
    log.records(
        [(None if key == "-" else key.lower().encode(), None if key.isupper() else b"value " * 9) for key in keys],
        **fields,
    )


def _compacted(where: Planting) -> None:
    """Compacted topics, and what delays cleaning: an active segment, young records, open and aborted transactions."""
    table = where.shelf("table")
    for keys in ("abcabc", "aBd", "-ee"):
        _put(table, keys)
        table.roll()
    _put(table, "ff", producer=5, transactional=True)
    table.marker(5, 0, committed=False)
    _put(table, "f")
    table.roll()
    _put(table, "aaf")
    young = where.shelf("young")
    _put(young, "aa")
    young.roll()
    where.tick()
    where.tick()
    _put(young, "ab")
    young.roll()
    pinned = where.shelf("pinned")
    _put(pinned, "aa")
    pinned.roll()
    _put(pinned, "xy", producer=6, transactional=True)
    pinned.roll()
    _put(pinned, "aa")
    pinned.roll()
    where.tick()
    _put(where.shelf("young"), "aa")
    chance = random.Random(3)
    for partition in range(3):
        log = where.shelf("random", partition, cleanup_policy="compact")
        for _ in range(5):
            _put(log, "".join(chance.choice("abcdefABC-") for _ in range(chance.randrange(1, 9))))
            if chance.random() < 0.5:
                log.roll()


def _aging(where: Planting) -> None:
    """Segments of different days; one whose late record comes early, which keeps what is behind it."""
    now_ms = where.now_ms
    for topic in ("aged", "sized", "both"):
        log = where.shelf(topic)
        for days in (9, 8, 2, 7, 1):
            log.data(3, at_ms=now_ms - days * DAY_MS)
            log.roll()
    where.shelf("sized").data(3)
    lasting = where.shelf("lasting")
    lasting.data(3, at_ms=now_ms - 9 * DAY_MS)
    where.shelf("old").data(3, at_ms=now_ms - 30 * DAY_MS)
    where.shelf("old").high_watermark = 1


def _values(where: Planting) -> None:
    """JSON of several shapes, and what is none."""
    answer = [
        {"id": number, "name": None if number % 4 == 0 else f"n{number}", "lines": [{"sku": "x", "n": 1.5}]}
        for number in range(8)
    ]
    values = [json.dumps(each).encode() for each in answer] + [b'{"id": "nine", "a b": true}', b"[1]", b"3", b"plain"]
    values += [b"", b"\0\0\0\0\x07\x02x", b"\xfe\xff"]
    where.shelf("shapes").data(len(values) + 1, values=[*values, None], keys=[b"k"] * (len(values) + 1))


def journal(folder: Path, scratch: Path) -> Path:
    """A group that falls behind, and catches up in part; a client without a group; an aborted TxnOffsetCommit."""
    wiring = Wiring(Planting(scratch))
    producer, reader = wiring.connect("producer"), wiring.connect("reader")
    wiring.connect("apart").fetch("orders", 4, [(4, 5)], stable=10)
    for step in range(10):
        producer.produce("orders", offset=10 * step, count=10)
        if step in {2, 4}:
            reader.commit("group", "m", 1, "orders", 10 * step)
    mover = wiring.connect("mover")
    for offset, committed in ((50, True), (90, False)):
        mover.commit_in_transaction("mover", (7, 0), "group", "m", 1, "orders", offset)
        mover.end("mover", (7, 0), committed=committed)
    return wiring.write(folder)


def kept(
    root: Path, now_ms: int, *, clean: bool, what_if: Mapping[str, int] | None = None
) -> dict[tuple[str, int], int]:
    """What the storage itself leaves: records of each partition after cleaning, or retention, of the directory."""
    logs = LogDir.open(LogContext(DiskFiles(root)), node_id=1, now_ms=now_ms)
    logs.was_clean = True
    others = {name.replace("_", "."): str(number) for name, number in (what_if or {}).items()}
    logs.load_all(lambda topic: LogConfig.from_settings(_settings(topic) | others), now_ms=now_ms)
    if clean:
        LogCleaner(logs).run(now_ms, force=True)
    else:
        for log in logs:
            retention.run(log, now_ms)
    left = {
        (log.topic, log.partition): sum(
            batch.record_count for batch in log.reader.replay_from(log.log_start_offset) if not batch.is_control
        )
        for log in logs
    }
    logs.context.files.close()
    return left


def _settings(topic: str) -> dict[str, str | None]:
    compacted = {"cleanup.policy": "compact"}
    return dict(compacted if topic == "random" or topic.startswith("__") else SETTINGS.get(topic, {}))
