"""What brokers may answer, right and wrong, and counts of records: rows beside a planted data directory."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.pipeline.fault_files import Planting

Rows = Mapping[str, list[dict[str, Any]]]
FINDINGS = {
    ("live-bounds", "stable after mark"),
    ("live-bounds", "start after stable"),
    ("live-bounds", "negative"),
    ("live-bounds-back", "cut"),
    ("live-hanging", "hanging"),
    ("live-overdue", "overdue"),
    ("live-overdue", "unfinished"),
    ("live-stable", "held back"),
    ("live-commit", "orders"),
    ("live-commit", "beyond"),
    ("count-differs", 120_000),
    ("count-differs", 180_000),
}
"""Check, and the topic, transactional id or bucket."""


def planted(root: Path) -> Rows:
    """Make the directory; the rows of all tables."""
    where = Planting(root)
    where.shelf("orders").data(5)
    where.committed_offset("g", "orders", 0, 3)
    where.close()
    bounds = {
        "right": (0, 5, 5), "stable after mark": (0, 6, 5), "start after stable": (4, 3, 5), "negative": (-1, 5, 5),
        "hanging": (0, 2, 5), "open": (0, 2, 5), "held back": (0, 2, 5), "unanswered": (0, 2, 5), "beyond": (0, 5, 5),
    }  # fmt: skip
    partitions = [
        {
            "topic": topic, "partition": 0, "log_start": start, "last_stable_offset": stable, "high_watermark": mark,
            "has_producers": topic not in {"unanswered", "start after stable"}, "has_transactions": True,
        }
        for topic, (start, stable, mark) in bounds.items()
    ]  # fmt: skip
    producers = [
        {"topic": topic, "partition": 0, "producer_id": producer, "producer_epoch": 0, "transaction_offset": offset}
        for topic, producer, offset in (("hanging", 1, 2), ("open", 2, 2), ("right", 3, -1), ("held back", 4, -1))
    ]
    known = {
        "open": (2, "Ongoing", 60_000, 1_000, None, "open"),
        "ended": (1, "CompleteCommit", 60_000, None, None, "hanging"),
        "overdue": (8, "Ongoing", 60_000, 91_000, None, "orders"),
        "late": (9, "Ongoing", 60_000, 89_000, None, "orders"),
        "unfinished": (10, "PrepareAbort", 60_000, 5_000, 31_000, "orders"),
        "finishing": (11, "PrepareAbort", 60_000, 5_000, 29_000, "orders"),
    }
    transactions = [
        {
            "transactional_id": name, "producer_id": producer, "producer_epoch": 0, "state": state,
            "timeout_ms": timeout, "age_ms": age, "in_state_ms": in_state, "topic": topic, "partition": 0,
            "coordinator": 1,
        }
        for name, (producer, state, timeout, age, in_state, topic) in known.items()
    ]  # fmt: skip
    commits = [
        {"group_id": "g", "topic": topic, "partition": 0, "committed_offset": offset}
        for topic, offset in (("orders", 4), ("right", 5), ("beyond", 6))
    ]
    change = {"topic": "cut", "partition": 0, "what": "high_watermark", "offset": 3, "before": 5, "step": 2}
    return {
        "live_partitions": partitions, "live_producers": producers, "live_transactions": transactions,
        "live_commits": commits, "live_changes": [change], **counted(),
    }  # fmt: skip


def counted() -> Rows:
    """One bucket that retention has cut, one that is whole, one with a loss, one with a surplus."""
    counts = {0: (9, 2), 60_000: (5, 5), 120_000: (5, 4), 180_000: (0, 1)}
    return {
        "record_counts": [
            {"role": role, "topic": topic, "bucket_ms": at, "bucket_end_ms": at + 60_000, "records": count}
            for at, records in counts.items()
            for role, topic, count in zip(("input", "output"), ("in", "out"), records, strict=True)
            if count
        ]
        + [{"role": None, "topic": "other", "bucket_ms": 60_000, "bucket_end_ms": 120_000, "records": 7}],
        "counted_from": [
            {"role": "output", "topic": "out", "from_ms": 60_000},
            {"role": None, "topic": "other", "from_ms": 600_000},
        ],
    }
