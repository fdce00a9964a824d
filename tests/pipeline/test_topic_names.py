"""Topics that share a name: one that was deleted and its namesake, two that an export would put together."""

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from pipeline.reports.asking import Selection
from pipeline.reports.duck_tables import DuckReportTables
from pipeline.reports.registry import chosen
from pipeline.transfer import export
from pipeline.transfer.manifest import Store
from pipeline.transfer.producer import Producer
from pipeline.transfer.selection import Choice, ChoiceError
from pipeline.transfer.wire import Cluster
from protocol.log_records import metadata
from tests.forking import Started
from tests.pipeline.conftest import Refused
from tests.pipeline.fault_files import Planting
from tests.pipeline.logs import chain
from understudy.cli import main
from understudy.launcher import command_line

FORMER = UUID(int=900)


def namesake(root: Path, *again: metadata.ConfigRecord) -> Path:
    """A topic with these settings, after one of its name that had others was deleted."""
    where = Planting(root)
    where.metadata_before += [
        metadata.TopicRecord("orders", FORMER),
        metadata.ConfigRecord(2, "orders", "cleanup.policy", "compact"),
        metadata.ConfigRecord(2, "orders", "retention.ms", "5"),
        metadata.RemoveTopicRecord(FORMER),
    ]
    where.shelf("orders").data(3)
    where.metadata_behind += again
    return where.close()


@pytest.mark.parametrize("again", [None, "7"])
def test_settings_of_a_deleted_topic_are_not_those_of_its_namesake(tmp_path: Path, again: str | None) -> None:
    """In exports, reports and audits; Kafka forgets them with the topic, and writes no record for that."""
    records = [] if again is None else [metadata.ConfigRecord(2, "orders", "retention.ms", again)]
    root = str(namesake(tmp_path / "data", *records))
    own = {} if again is None else {"retention.ms": again}
    assert export.topic_settings(root, ["orders"]).get("orders", {}) == own
    assert export.export(None, root, str(tmp_path / "out")).configs.get("orders", {}) == own
    tables = DuckReportTables(root, None, Selection(("orders",)))
    tables.prepare(chosen(["size"]))
    ask = tables.engine.plain
    (is_compacted,) = ask("SELECT is_compacted FROM partitions WHERE topic = 'orders'").to_pylist()
    settings = ask("SELECT cleanup_policy, retention_ms FROM settings WHERE topic = 'orders'").to_pylist()
    tables.forget()
    assert is_compacted == {"is_compacted": False}
    assert settings == ([] if again is None else [{"cleanup_policy": None, "retention_ms": int(again)}])


@pytest.mark.parametrize(
    ("renamed", "topics"), [({"a": "c", "b": "c"}, ()), ({"a": "b"}, ()), ({"a": "b"}, ("a", "b"))]
)
def test_two_topics_do_not_become_one(
    tmp_path: Path, renamed: dict[str, str], topics: tuple[str, ...], refused: Refused
) -> None:
    """Their records would have the same offsets: refused before anything is written, by the command in a sentence."""
    where = Planting(tmp_path / "data")
    where.shelf("a").data(3)
    where.shelf("b").data(2)
    root, out = str(where.close()), tmp_path / "out"
    with pytest.raises(ChoiceError, match=r"two topics would become [bc]; .*--topic-map"):
        export.export(None, root, str(out), choice=Choice(topics=topics, renamed=renamed))
    options = [part for pair in renamed.items() for part in ("--topic-map", "=".join(pair))]
    options += [part for each in topics for part in ("--topic", each)]
    assert "two topics would become" in refused("export", root, str(out), "--quiet", *options)
    assert not out.exists()


def test_a_topic_may_take_the_name_of_one_that_is_not_exported(tmp_path: Path) -> None:
    """A topic can be renamed to the name of one that is not part of the export."""
    where = Planting(tmp_path / "data")
    where.shelf("a").data(3)
    where.shelf("b").data(2)
    choice = Choice(topics=("a",), renamed={"a": "b"})
    manifest = export.export(None, str(where.close()), str(tmp_path / "out"), choice=choice)
    assert (list(manifest.topics), manifest.records) == (["b"], 3)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A running cluster."""
    server = Started(command_line(port=0, control_port="off"))
    try:
        with Cluster(server.ready.bootstrap_servers[0]) as connected:
            yield connected
    finally:
        server.stop()


def filled(cluster: Cluster, *counts: int) -> None:
    """A new topic with batches of so many records."""
    cluster.create({"orders": (1, {})})
    cluster.wait_for_leaders([("orders", 0)])
    producer = Producer(cluster)
    for count in counts:
        producer.produce("orders", 0, chain(count)[0])


def test_an_export_of_a_cluster_is_not_continued_with_another_topic(
    tmp_path: Path, cluster: Cluster, refused: Refused
) -> None:
    """One that was deleted and created again, and has grown beyond the export: its id gives it away."""
    address, out = ",".join(f"{host}:{port}" for host, port in cluster._nodes.values()), str(tmp_path / "out")
    filled(cluster, 2)
    assert main(["export", address, out, "--quiet"]) == 0
    assert main(["export", address, out, "--quiet", "--append"]) == 0
    before = Store(out).read_manifest()
    assert before.records == 2
    cluster.delete(["orders"])
    filled(cluster, 2, 3)
    message = refused("export", address, out, "--quiet", "--append", code=1)
    assert "orders was deleted and created again since the export" in message
    assert Store(out).read_manifest() == before
