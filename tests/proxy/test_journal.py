"""The journal of a proxy in files: complete, readable by the conformance report, and without large records."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from protocol.apis import ApiKey
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.conftest import BrokerWith
from tests.proxy.conftest import ProxyTo
from understudy.cli import main


def lines(folder: Path) -> Iterator[dict[str, object]]:
    """The requests in the finished files."""
    for file in sorted(folder.glob("*.jsonl")):
        yield from map(json.loads, file.read_text(encoding="utf-8").splitlines())


def test_the_journal_of_a_proxy_is_read_by_the_conformance_report(
    broker_with: BrokerWith, proxy_to: ProxyTo, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A large batch is produced and fetched: sizes and headers are there, the records are not."""
    server = broker_with(topics={"t": 1})
    proxy = proxy_to(server.addresses[0], journal=str(tmp_path / "journal"))
    producer = Producer({"bootstrap.servers": proxy.addresses[0], "client.id": "sender", "linger.ms": 50})
    for _ in range(50):
        producer.produce("t", value=b"a secret of many bytes " * 100)
    assert producer.flush(60) == 0
    request = FetchRequest(
        max_bytes=1 << 22, topics=[FetchTopic("t", [FetchPartition(0, partition_max_bytes=1 << 22)])]
    )
    fetched = proxy.wire(client_id="reader").call(ApiKey.FETCH, 11, request)
    del producer
    (partition,) = fetched.responses[0].partitions
    assert partition.high_watermark == 50
    proxy.control("POST", "/v1/journal/rotate")

    entries = list(lines(tmp_path / "journal"))
    assert {"sender", "reader"} <= {each["client_id"] for each in entries}
    assert "a secret" not in json.dumps(entries)
    (fetch,) = [each for each in entries if each["api"] == "Fetch"]
    shown = fetch["response"]["responses"][0]["partitions"][0]["records"]  # type: ignore[index]
    assert shown["size_bytes"] == len(partition.records)
    assert shown["count"] == 50
    assert main(["conformance", str(tmp_path / "journal"), "--format", "json"]) in {0, 1}
    (software,) = {str(each["software"]) for each in entries if each["client_id"] == "sender" and each["software"]}
    assert software in capsys.readouterr().out
