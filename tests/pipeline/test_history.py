"""The history before each batch of a log, compared with the same computed batch by batch. No Spark."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from pipeline.audits import history
from pipeline.audits.history import HISTORY, READ, READ_COLUMNS, History

DAMAGE = {
    "checksum mismatch": "crc",
    "more records than offsets": "count",
    "offsets 7-9, out of order in what goes from 20": "offsets",
    "leader epoch 1, out of order": "epoch",
    "17 of 99 bytes are there": "torn",
    "400 bytes of zeros": "torn",
    "3 bytes are fewer than a header": "torn",
    "bytes that belong to no batch": "damaged",
    "magic 9": "damaged",
}


def row(chance: Random, at: int, base: int) -> dict[str, Any]:
    """A batch of one of a few producers, or a marker, or something that is none."""
    known: dict[str, Any] = dict.fromkeys(READ.names)
    known |= {"topic": "t", "partition": 0, "segment": f"/data/t-0/{base:020d}.log", "position": at * 100, "size": 100}
    if chance.random() < 0.1:
        return known | {"damage": chance.choice(list(DAMAGE))}
    is_control = chance.random() < 0.3
    known |= {
        "base_offset": at * 3, "last_offset": at * 3 + 2, "record_count": 3, "magic": 2, "codec": "none",
        "leader_epoch": at // 20, "timestampType": chance.randrange(2), "max_timestamp_ms": chance.randrange(10**12),
        "producer_id": chance.choice([-1, 0, 1, 2, 2**62]), "producer_epoch": chance.choice([-1, 0, 5, 32767]),
        "base_sequence": at, "last_sequence": chance.choice([-1, at + 2, 2**31 - 1]), "is_transactional": True,
        "is_control": is_control,
    }  # fmt: skip
    if is_control:
        known |= {"control_type": "COMMIT", "coordinator_epoch": chance.choice([None, 0, 3, 4])}
    return known


def expected(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Compute what `HISTORY` describes, one row after the other."""
    last: dict[str, Any] = dict.fromkeys(READ.names)
    producers: dict[int, dict[str, Any]] = {}
    latest: dict[str, int] = {}
    for number, each in enumerate(rows):
        damage = each["damage"]
        is_stated = damage is not None and damage.startswith("offsets")
        following = rows[number + 1] if number + 1 < len(rows) else None
        history_row = {
            **each,
            "directory": "/data",
            "segment_base": int(each["segment"][-24:-4]),
            "damage_kind": DAMAGE.get(damage),
            "stated_offset": 7 if is_stated else None,
            "stated_last": 9 if is_stated else None,
            "previous_last_offset": last["last_offset"],
            "previous_leader_epoch": last["leader_epoch"],
            "previous_timestamp_ms": last["max_timestamp_ms"],
            "previous_timestamp_type": last["timestampType"],
            "previous_damage": last["damage"],
            "next_segment_base": following and int(following["segment"][-24:-4]),
        }
        behind = None if last["last_offset"] is None else last["last_offset"] + 1
        places = (each["base_offset"], history_row["stated_offset"], behind, history_row["segment_base"])
        history_row["place"] = next(place for place in places if place is not None)
        if damage is None:
            latest[each["segment"]] = max(each["max_timestamp_ms"], latest.get(each["segment"], 0))
        history_row["latest_ms"] = latest.get(each["segment"])
        last = each
        answer: dict[str, Any] = dict.fromkeys(HISTORY.names[len(READ_COLUMNS) + 8 :])
        if damage is None and each["producer_id"] >= 0:
            answer = producers.setdefault(each["producer_id"], {**answer, "turn": 0})
            highest = each["producer_epoch"] if answer["highest_epoch"] is None else answer["highest_epoch"]
            after = {**answer, "highest_epoch": max(each["producer_epoch"], highest)}
            if each["is_control"]:
                after["turn"] += 1
                if each["coordinator_epoch"] is not None:
                    after["previous_coordinator_epoch"] = each["coordinator_epoch"]
            else:
                after |= {
                    "data_epoch": each["producer_epoch"],
                    "data_sequence": each["last_sequence"],
                    "data_offset": each["base_offset"],
                }
            producers[each["producer_id"]] = after
        yield {**history_row, **answer}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_each_batch_has_the_history_before_it(seed: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows are processed at once; with damage, several segments, producers that return."""
    chance = Random(seed)
    rows = [row(chance, at, at // 50 * 150) for at in range(400)]
    monkeypatch.setattr(history, "ROWS", size)
    pieces, start = [], 0
    while start < len(rows):
        stop = start + chance.choice([1, 2, 30])
        pieces.append(pa.RecordBatch.from_pylist(rows[start:stop], READ))
        start = stop
    history_rows = [each for batch in History("/data").rows(pieces) for each in batch.to_pylist()]
    assert history_rows == list(expected(rows))
    assert {each["damage_kind"] for each in history_rows} == {None, *DAMAGE.values()}


def test_a_log_without_producers_and_an_empty_one() -> None:
    """The columns of producers are empty; an empty log has no rows."""
    chance = Random(1)
    plain = {**row(chance, 0, 0), "damage": None, "producer_id": -1}
    [batch] = History("/data").rows([pa.RecordBatch.from_pylist([plain], READ)])
    assert batch.column("turn").to_pylist() == [None]
    assert list(History("/data").rows([])) == []
