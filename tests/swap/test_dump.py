"""Every file of a directory that the server wrote, read by Kafka's own DumpLogSegments without a complaint."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.storage.kafka_tools import dump_log, need_kafka
from tests.storage.test_dump_log import complaints
from tests.swap.contents import TOPICS, fill
from tests.swap.nodes import Node

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What a stopped server leaves behind that has done all that the swap asks for."""
    need_kafka()
    node = Node(tmp_path_factory.mktemp("dump"))
    try:
        server = node.start_ours()
        clients = fill(node.bootstrap)
        assert server.control("POST", "/v1/compaction/run")["logs_cleaned"] > 4
        clients.close()
        node.stop()
        yield node.data
    finally:
        node.stop(clean=False)


def files_of(directory: Path, pattern: str) -> list[Path]:
    """Those that match; of a topic that was deleted nothing is left to be read."""
    return [path for path in sorted(directory.glob(pattern)) if not path.parent.name.endswith("-delete")]


def dumped(directory: Path, pattern: str, *options: str) -> str:
    """What the tool prints of all files that match; nothing in it may be a complaint."""
    files = files_of(directory, pattern)
    assert files
    text = dump_log(*options, "--files", ",".join(map(str, files)))
    assert complaints(text) == []
    assert text.count("Dumping ") == len(files)
    return text


def test_records_of_all_topics(directory: Path) -> None:
    """Every batch valid, every record printed; codecs as they were asked for, horizons, empty batches, markers."""
    text = dumped(directory, "[!_]*/*.log", "--deep-iteration", "--print-data-log")
    assert text.count("isvalid: true") == text.count("isvalid: ") > 300
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        assert f"compresscodec: {codec}" in text
        assert f"payload: {codec}-19-9" in text
    for part in ("deleteHorizonMs: OptionalLong[", "count: 0", "endTxnMarker: ABORT", "payload: open-3"):
        assert part in text
    partitions = {path.parent.name for path in files_of(directory, "[!_]*/*.log")}
    assert len(partitions) == sum(count for count, _ in TOPICS.values())


def test_indexes(directory: Path) -> None:
    """Sane, and in accord with the logs behind them, those of the internal topics too."""
    files = len(files_of(directory, "*/*.index")) + len(files_of(directory, "*/*.timeindex"))
    text = dumped(directory, "*/*.index", "--index-sanity-check")
    text += dumped(directory, "*/*.timeindex", "--index-sanity-check")
    assert text.count("passed sanity check") + text.count("is empty.") == files
    assert text.count("passed sanity check") > files / 2
    assert dumped(directory, "*/*.index", "--deep-iteration").count("offset: ") > 20
    assert dumped(directory, "*/*.timeindex", "--deep-iteration").count("timestamp: ") > 20


def test_transaction_indexes_and_snapshots(directory: Path) -> None:
    """Aborted transactions; producers with the transaction that is open."""
    assert dumped(directory, "*/*.txnindex").count("producerId: ") >= 20
    text = dumped(directory, "*/*.snapshot")
    assert "currentTxnFirstOffset: OptionalLong[" in text
    assert "currentTxnFirstOffset: OptionalLong.empty" in text


def test_the_logs_of_the_coordinators(directory: Path) -> None:
    """Transactions and offsets, each with its decoder."""
    text = dumped(directory, "__transaction_state-*/*.log", "--transaction-log-decoder")
    for name in ("open", "done", "leaving"):
        assert f'"transactionalId":"{name}"' in text
    ongoing, complete_commit = 1, 4
    assert {ongoing, complete_commit} <= set(map(int, re.findall(r'"transactionStatus":(\d)', text)))
    text = dumped(directory, "__consumer_offsets-*/*.log", "--offsets-decoder")
    assert '"group":"simple"' in text
    assert '"metadata":"here' in text


def test_the_metadata(directory: Path) -> None:
    """Each record decodes to JSON; those of snapshots as well."""
    text = dumped(directory, "__cluster_metadata-0/*.log", "--cluster-metadata-decoder")
    text += dumped(directory, "__cluster_metadata-0/*.checkpoint", "--cluster-metadata-decoder")
    for kind in ("SnapshotHeader", "SnapshotFooter"):
        assert kind in text
    records = [json.loads(line.partition("payload: ")[2]) for line in text.splitlines() if "payload: {" in line]
    assert {record["data"]["name"] for record in records if record["type"] == "TOPIC_RECORD"} >= set(TOPICS)
    assert {record["type"] for record in records} >= {
        "REGISTER_BROKER_RECORD",
        "PARTITION_RECORD",
        "CONFIG_RECORD",
        "REMOVE_TOPIC_RECORD",
        "PRODUCER_IDS_RECORD",
    }
    assert "FEATURE_LEVEL_RECORD" in dumped(directory, "bootstrap.checkpoint", "--cluster-metadata-decoder")
