"""What is in the files, and how it is recovered (transactions H.9). Its first row is in tests/protocol."""

import struct
from pathlib import Path

import pytest
from crc32c import crc32c

from broker.request.node import partition_for
from protocol.java import string_hash
from protocol.log_records.transaction import TransactionRecord, TransactionState, encode
from protocol.records.records import read_records
from tests.scenarios.transactions.client import Client, on_cluster, on_target
from tests.scenarios.transactions.partitions import COMMITTED, FOO, LOG

S = TransactionState


def snapshot(path: Path) -> dict[int, tuple[int, ...]]:
    """The entries of a producer snapshot by producer id, once its checksum is right (transactions F.6)."""
    data = path.read_bytes()
    version, checksum, count = struct.unpack_from(">hIi", data)
    assert (version, checksum, len(data)) == (1, crc32c(data[6:]), 10 + 46 * count)
    entries = [struct.unpack_from(">qhiqiqiq", data, 10 + 46 * number) for number in range(count)]
    return {entry[0]: entry[1:] for entry in entries}


async def test_DSK_02_the_index_of_aborted_transactions(tmp_path: Path) -> None:
    """Entries of 34 bytes: producer, first offset, marker, and where the next open transaction began."""
    async with on_target(topics={FOO: 1}, data_dir=tmp_path) as stage:
        c = Client(stage)
        producers = {name: await c.new(name) for name in ("one", "other", "kept")}
        for name in ("one", "other"):
            await c.sent(producer=producers[name], sequence=0, name=name)
        for name in ("one", "other"):
            await c.finish(producers[name], False, name)
        await c.sent(producer=producers["kept"], sequence=0, name="kept")
        await c.finish(producers["kept"], name="kept")
    (index,) = (tmp_path / "foo-0").glob("*.txnindex")
    data = index.read_bytes()
    assert [struct.unpack_from(">hqqqq", data, at) for at in range(0, len(data), 34)] == [
        (0, producers["one"][0], 0, 6, 3),
        (0, producers["other"][0], 3, 7, 8),
    ]


async def test_DSK_03_04_the_newest_snapshot_is_broken(tmp_path: Path) -> None:
    """A clean stop writes one; where it cannot be read, the same state is recovered from the log."""
    async with on_target(topics={FOO: 1}, data_dir=tmp_path) as stage:
        c = Client(stage)
        plain, open_one = await c.new(None), await c.new()
        await c.sent(producer=plain, sequence=0)
        await c.sent(producer=open_one, sequence=0, name="tx")
        before = await c.producers()
    newest = max((tmp_path / "foo-0").glob("*.snapshot"))
    assert int(newest.stem) == 6
    assert {pid: (entry[0], entry[1], entry[6]) for pid, entry in snapshot(newest).items()} == {
        plain[0]: (0, 2, -1),
        open_one[0]: (0, 2, 3),
    }
    broken = bytearray(newest.read_bytes())
    broken[-1] ^= 255
    newest.write_bytes(broken)
    async with on_target(data_dir=tmp_path) as stage:
        c = Client(stage)
        assert await c.producers() == before
        assert await c.stable() == 3
        await c.sent(producer=open_one, sequence=3, name="tx")
        assert await c.finish(open_one) == (open_one[0], 1)


def planted(name: str, state: S, epoch: int, now_ms: int, **more: int) -> tuple[bytes, bytes]:
    """A record as a restore tool writes it: producer id 4242."""
    record = TransactionRecord(name, 4242, epoch, 60_000, state, frozenset(), now_ms, now_ms, **more)
    key, value = encode(record)
    assert value is not None
    return key, value


def beside(name: str, which: str) -> str:
    """An id in the same partition."""
    return next(
        other for other in (f"{which}-{n}" for n in range(100)) if partition_for(other, 4) == partition_for(name, 4)
    )


@on_cluster()
async def test_DSK_05_unknown_records_are_read_over(c: Client) -> None:
    """A value or a key of a later Kafka; what follows them is believed."""
    producer = await c.new()
    odd, good = beside("tx", "odd"), beside("tx", "good")
    index, now_ms = partition_for("tx", 4), c.stage.clock.now_ms()
    key, value = planted(odd, S.COMPLETE_ABORT, 3, now_ms)
    good_key, good_value = planted(good, S.COMPLETE_ABORT, 3, now_ms)
    await c.plant(LOG, index, (key, b"\0\x09" + value[2:]), (b"\0\x07" + key[2:], value), (good_key, good_value))
    await c.stage.restart()
    c.hang_up()
    assert await c.state(good) == ("CompleteAbort", 4242, 3)
    assert await c.state() == ("Empty", *producer)
    assert (await c.describe(odd)).error_code == 105


@on_cluster()
async def test_DSK_06_unknown_tags_are_ignored(c: Client) -> None:
    """Unknown tagged fields of a stored value are skipped, and the rest counts."""
    await c.coordinator("tx")
    key, value = planted(
        "tx", S.COMPLETE_COMMIT, 7, c.stage.clock.now_ms(), previous_producer_id=4242, client_transaction_version=2
    )
    tags = value.index(bytes.fromhex("020008"))
    await c.plant(LOG, partition_for("tx", 4), (key, value[:tags] + b"\3" + value[tags + 1 :] + b"\x09\x05later"))
    await c.stage.restart()
    c.hang_up()
    assert await c.state() == ("CompleteCommit", 4242, 7)
    assert await c.init(producer=(4242, 7)) == (0, 4242, 8)


HASHES = {
    "": (0, 0), "test": (3556498, 48), "tx-1": (3572520, 20), "my-txn": (-1061187895, 45),
    "my-transactional-id": (-959806496, 46), "polygenelubricants": (-2147483648, 0), "tx-ü😀": (-859807594, 44),
}  # fmt: skip


def test_DSK_07_the_hash_of_an_id() -> None:
    """A transactional id's partition follows Java's hash over UTF-16."""
    assert {name: (string_hash(name) % 2**32, partition_for(name, 50)) for name in HASHES} == {
        name: (signed % 2**32, partition) for name, (signed, partition) in HASHES.items()
    }
    assert [partition_for(group, 50) for group in ("g1", "my-group", "test-group")] == [42, 12, 12]


@pytest.mark.parametrize("name", [name for name in HASHES if name])
@on_cluster()
async def test_DSK_07_an_id_is_logged_in_the_partition_of_its_hash(c: Client, name: str) -> None:
    """A transactional id is logged in the partition of its hash and in no other."""
    await c.new(name)
    holding = [
        index
        for index in range(4)
        for batch in (await c.read(LOG, partition=index)).batches
        if any((record.key or b"").endswith(name.encode()) for record in read_records(batch))
    ]
    assert holding == [partition_for(name, 4)]


@on_cluster(features={"transaction.version": 0})
async def test_DSK_08_the_version_of_a_value_follows_the_feature(c: Client) -> None:
    """Version 0 as long as transaction.version is 0; a newer end is then refused, and nothing is lost."""
    producer = await c.new()
    await c.add(producer, {FOO: [0]})
    records = await c.log()
    assert {record.value_version for record in records if isinstance(record, TransactionRecord)} == {0}
    assert await c.end(producer) == (35, -1, -1)
    await c.stage.restart()
    c.hang_up()
    await c.sent(producer=producer, sequence=0, name="tx", v=11)
    assert await c.finish(producer, v=4) == producer
    assert (await c.read(isolation=COMMITTED)).values == [b"a", b"b", b"c"]
