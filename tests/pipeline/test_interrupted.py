"""Exports and loads that are killed at any step: nothing half counts as whole, and the next run goes on. No Spark."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.transfer import export, load_notes, parquet
from pipeline.transfer import load as loading
from pipeline.transfer.manifest import NAME, Bounds, ExportedFile, Manifest, ManifestError, Store
from pipeline.transfer.mirror import mirror
from pipeline.transfer.producer import Producer
from pipeline.transfer.replay import replay
from pipeline.transfer.security import Security, SecurityError, from_properties
from pipeline.transfer.selection import Choice
from pipeline.transfer.staging import Staging, recover
from pipeline.transfer.targets import LoadError, Target, counts, targets
from pipeline.transfer.wire import EARLIEST, LATEST, Cluster, WireError
from protocol.errors import ErrorCode
from storage.files import DiskFiles
from storage.ownership import LOADING
from tests.forking import Started
from understudy.errors import StartError
from understudy.launcher import command_line

NOW_MS = 1_700_001_000_000


class Killed(BaseException):
    """As if the process had been killed: nothing catches it."""


def written(out: str, run: str, *topics: str, count: int = 3) -> tuple[ExportedFile, ...]:
    """The files of an export of these topics, one each."""
    columns = parquet.schema(producers=False)
    files: list[ExportedFile] = []
    for topic in topics:
        rows = [dict.fromkeys(columns.names) for _ in range(count)]
        for offset, row in enumerate(rows):
            row |= {"topic": topic, "partition": 0, "offset": offset, "value": b"%d" % offset}
            row |= {"timestamp_ms": NOW_MS, "timestampType": 0}
        files += parquet.write_files([pa.RecordBatch.from_pylist(rows, columns)], out, columns, 0, run)
    return tuple(files)


def manifest_of(files: tuple[ExportedFile, ...]) -> Manifest:
    """A manifest of files that `written` made."""
    topics = {each.topic: {0: Bounds(0, each.records, each.records, 0, each.records - 1)} for each in files}
    return Manifest("", False, "read_committed", topics, files=files)


def exported(store: Store, *topics: str, before: Manifest | None = None) -> Manifest:
    """A whole export."""
    staging = Staging(store)
    staging.begin()
    manifest = manifest_of(written(staging.out, staging.run, *topics))
    staging.commit(manifest, before)
    return manifest


def kill_at(step: int, patch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Kill the process at the n-th change that a `Store` makes; answers how many there were."""
    count = [0]

    def counted(name: str) -> None:
        real = getattr(Store, name)

        def change(self: Store, *arguments: Any) -> Any:
            count[0] += 1
            if count[0] == step:
                raise Killed
            return real(self, *arguments)

        patch.setattr(Store, name, change)

    for name in ("create", "move", "remove", "remove_folder"):
        counted(name)
    return lambda: count[0]


def of_a_dead_process(folder: Path) -> None:
    """The files that are being written belong to a process that has ended."""
    for owner in folder.glob("_writing-*/owner.json"):
        owner.write_text(json.dumps(json.loads(owner.read_text()) | {"pid": 2**22 + 1}))


def data_files(folder: Path) -> set[str]:
    """All Parquet files below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*.parquet")}


def steps(tmp_path: Path) -> int:
    """Number of changes that replacing an export makes."""
    store = Store(str(tmp_path / "counted"))
    before = exported(store, "a", "b")
    with pytest.MonkeyPatch.context() as patch:
        count = kill_at(-1, patch)
        exported(store, "b", "c", before=before)
        return count()


def test_an_export_that_is_killed_at_any_step_leaves_the_one_before_or_itself(tmp_path: Path) -> None:
    """What is in force is whole, and after the next look nothing else is left in the folder."""
    outcomes = set()
    for step in range(1, steps(tmp_path) + 1):
        folder = tmp_path / str(step)
        store = Store(str(folder))
        before = exported(store, "a", "b")
        with pytest.MonkeyPatch.context() as patch:
            kill_at(step, patch)
            with pytest.raises(Killed):
                exported(store, "b", "c", before=before)
        of_a_dead_process(folder)
        assert export.prepare(store, overwrite=True) == store.read_manifest()
        now = store.read_manifest()
        export.verify(store, now)
        assert data_files(folder) == {each.path for each in now.files}
        assert {path.name for path in folder.iterdir()} == {NAME, *data_files(folder)}
        outcomes.add(tuple(sorted(now.topics)))
    assert outcomes == {("a", "b"), ("b", "c")}


def test_a_killed_first_export_leaves_an_empty_folder(tmp_path: Path) -> None:
    """The next export needs no permission to overwrite."""
    store = Store(str(tmp_path))
    staging = Staging(store)
    staging.begin()
    written(staging.out, staging.run, "a")
    of_a_dead_process(tmp_path)
    assert export.prepare(store, overwrite=False) is None
    assert not list(tmp_path.iterdir())


def test_an_export_that_is_running_is_left_alone(tmp_path: Path) -> None:
    """It may be of another process of this machine, or of another machine."""
    store = Store(str(tmp_path))
    Staging(store).begin()
    (owner,) = tmp_path.glob("_writing-*/owner.json")
    document = json.loads(owner.read_text())
    for changed, message in (({"pid": os.getppid()}, "is running"), ({"host": "another"}, "started on another")):
        owner.write_text(json.dumps(document | changed))
        with pytest.raises(ManifestError, match=message):
            recover(store)
    assert owner.exists()


def test_pandas_and_pyarrow_read_an_export(tmp_path: Path) -> None:
    """The folder as a whole, internal topics too."""
    exported(Store(str(tmp_path)), "orders", "__consumer_offsets")
    assert pq.read_table(tmp_path).num_rows == 6
    frame = pd.read_parquet(tmp_path)
    assert set(frame["topic"]) == {"orders", "__consumer_offsets"}


def test_an_export_is_continued_with_the_same_options_only(tmp_path: Path) -> None:
    """And of the same topics: an id that differs, or a log that ends before, is another topic."""
    store = Store(str(tmp_path))
    before = replace(exported(store, "a"), ids={"a": "one"})
    later = replace(before, topics={"a": {0: Bounds(0, 9), 1: Bounds(0, 4)}})
    warnings: list[str] = []
    assert export.check_continued(store, before, later, warnings.append) == {"a": {"0": 3}}
    gone = replace(before, topics={"a": {0: Bounds(5, 9)}})
    export.check_continued(store, before, gone, warnings.append)
    assert warnings == ["a-0: offsets 3 to 4 were deleted before they were exported"]
    for changed, message in (
        (replace(later, isolation="read_uncommitted"), "other options"),
        (replace(later, selection={"sample": 0.1}), "other options"),
        (replace(later, ids={"a": "two"}), "created again"),
        (replace(later, topics={"a": {0: Bounds(0, 2)}}), "truncated"),
    ):
        with pytest.raises(ManifestError, match=message):
            export.check_continued(store, before, changed, warnings.append)


# --- loads into a directory -----------------------------------------------------------------------------------------


def wanted_of(tmp_path: Path, *topics: str) -> list[Target]:
    """The targets of a load of an export."""
    store = Store(str(tmp_path / "out"))
    return targets(store, exported(store, *topics), Choice())


def created(directory: Path, wanted: list[Target]) -> None:
    """The topics, in a data directory."""
    server = Started(command_line(data_dir=directory, port=0, control_port="off"))
    try:
        with Cluster(server.ready.bootstrap_servers[0]) as cluster:
            cluster.create(counts(wanted))
    finally:
        server.stop()


def test_a_killed_load_is_not_served_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker refuses the directory; another load is refused; the same one writes only what is missing."""
    directory = tmp_path / "data"
    wanted = wanted_of(tmp_path, "a", "b")
    created(directory, wanted)
    done: list[str] = []

    def here(_spark: object, shares: list[list[Target]], load: Callable[[list[Target]], list[dict[str, Any]]]) -> Any:
        answers = []
        for share in shares:
            if len(done) == 1:
                raise Killed
            done.append(share[0].topic)
            answers += load(share)
        return answers

    monkeypatch.setattr(loading, "_each", here)
    with pytest.raises(Killed):
        loading.into_directory(None, str(directory), wanted, NOW_MS)
    with pytest.raises(StartError, match="understudy load"):
        Started(command_line(data_dir=directory, port=0, control_port="off"))
    with pytest.raises(LoadError, match="another load"):
        loading.into_directory(None, str(directory), wanted[:1], NOW_MS)
    done.clear()
    done.append("a run that is not killed")
    written_again: list[str] = []
    monkeypatch.setattr(
        loading, "_each", lambda _spark, shares, load: [answer for share in shares for answer in load(share)]
    )
    monkeypatch.setattr(loading, "_end_at", lambda _log, target, _now_ms: written_again.append(target.topic))
    assert loading.into_directory(None, str(directory), wanted, NOW_MS) == 6
    assert written_again == ["b"]
    assert not (directory / LOADING).exists()
    with pytest.raises(LoadError, match="--overwrite"):
        loading.into_directory(None, str(directory), wanted, NOW_MS)
    assert loading.into_directory(None, str(directory), wanted, NOW_MS, overwrite=True) == 6
    server = Started(command_line(data_dir=directory, port=0, control_port="off"))
    try:
        with Cluster(server.ready.bootstrap_servers[0]) as cluster:
            assert [cluster.offset(topic, 0, LATEST) for topic in ("a", "b")] == [3, 3]
    finally:
        server.stop()


def test_a_log_that_is_replaced_begins_where_the_new_one_does(tmp_path: Path) -> None:
    """Not where DeleteRecords had cut the one before."""
    directory = tmp_path / "data"
    (wanted,) = wanted_of(tmp_path, "a")
    created(directory, [wanted])
    cut = replace(wanted, log_start=2)
    assert loading.into_directory(None, str(directory), [cut], NOW_MS) == 3
    assert bounds_of(directory, "a") == (2, 3)
    assert loading.into_directory(None, str(directory), [wanted], NOW_MS, overwrite=True) == 3
    assert bounds_of(directory, "a") == (0, 3)


def bounds_of(directory: Path, topic: str) -> tuple[int, int]:
    """The first and the next offset of a topic of one partition, by a broker over a data directory."""
    server = Started(command_line(data_dir=directory, port=0, control_port="off"))
    try:
        with Cluster(server.ready.bootstrap_servers[0]) as cluster:
            return cluster.offset(topic, 0, EARLIEST), cluster.offset(topic, 0, LATEST)
    finally:
        server.stop()


def test_the_note_of_a_load_is_of_its_records_and_partitions(tmp_path: Path) -> None:
    """Neither its speed nor the folder for selected records counts."""
    wanted = wanted_of(tmp_path, "a")
    (tmp_path / "data").mkdir()
    files = DiskFiles(tmp_path / "data")
    load_notes.begin(files, wanted, "of export x")
    load_notes.begin(files, [replace(each, store="/elsewhere", speed=2.0) for each in wanted], "of export x")
    with pytest.raises(LoadError, match="another load"):
        load_notes.begin(files, wanted, "of export y")


# --- loads into a cluster -------------------------------------------------------------------------------------------


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A running cluster."""
    server = Started(command_line(port=0, control_port="off"))
    try:
        with Cluster(server.ready.bootstrap_servers[0]) as connected:
            yield connected
    finally:
        server.stop()


def test_a_batch_whose_answer_was_lost_is_appended_once(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is sent again with its sequence; a refusal that is no matter of time is an error."""
    (wanted,) = wanted_of(tmp_path, "a")
    cluster.create(counts([wanted]))
    real = Cluster.append
    lost = [2]

    def losing(self: Cluster, topic: str, partition: int, batch: bytearray) -> ErrorCode | None:
        code = real(self, topic, partition, batch)
        lost[0] -= 1
        if lost[0] >= 0:
            raise ConnectionError("lost")
        return code

    monkeypatch.setattr(Cluster, "append", losing)
    producer = Producer(cluster, sleep=lambda _: None)
    assert replay([wanted], lambda each, batch: producer.produce(each.topic, each.partition, batch)) == [3]
    assert lost[0] < 0
    assert cluster.offset("a", 0, LATEST) == 3
    monkeypatch.setattr(Cluster, "append", lambda *_: ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(WireError, match="TOPIC_AUTHORIZATION_FAILED"):
        producer.produce("a", 0, bytearray(next(iter(_batches(tmp_path, cluster)))))


def _batches(tmp_path: Path, cluster: Cluster) -> Iterator[bytes]:
    (tmp_path / "mirror").mkdir()
    mirror(cluster, tmp_path / "mirror", Choice())
    yield next((tmp_path / "mirror" / "a-0").glob("*.log")).read_bytes()


def test_a_load_into_topics_that_are_not_empty_is_refused_or_goes_on(tmp_path: Path, cluster: Cluster) -> None:
    """What is there has to be the beginning of the load; with permission the topic is deleted first."""
    from pipeline.transfer import cluster_target  # noqa: PLC0415 - for this test alone

    (wanted,) = wanted_of(tmp_path, "a")
    cluster.create(counts([wanted]))

    def load(target: Target, done: int, most: int = 9) -> None:
        producer = Producer(cluster)
        sent = [0]

        def produce(each: Target, batch: bytearray) -> None:
            if sent[0] < most:
                producer.produce(each.topic, each.partition, batch)
            sent[0] += 1

        replay([target], produce, done=[done])

    (half,) = written(str(tmp_path / "half"), "0", "a", count=2)
    load(replace(wanted, store=str(tmp_path / "half"), files=(half.path,)), 0)
    assert cluster.offset("a", 0, LATEST) == 2
    with pytest.raises(LoadError, match="--resume"):
        cluster_target.prepare(cluster, [wanted], resume=False, overwrite=False)
    (part,) = cluster_target.prepare(cluster, [wanted], resume=True, overwrite=False)
    load(part, cluster.offset("a", 0, LATEST) - part.base_offset)
    assert cluster.offset("a", 0, LATEST) == 3
    load(wanted, 0)
    with pytest.raises(LoadError, match="other records"):
        cluster_target.prepare(cluster, [wanted], resume=True, overwrite=False)
    cluster_target.prepare(cluster, [wanted], resume=False, overwrite=True)
    assert cluster.offset("a", 0, LATEST) == 0


def test_topics_whose_times_are_the_logs_are_named(tmp_path: Path, cluster: Cluster) -> None:
    """The cluster replaces the times of loaded records there."""
    from pipeline.transfer import cluster_target  # noqa: PLC0415 - for this test alone

    wanted = wanted_of(tmp_path, "a", "b")
    wanted[1] = replace(wanted[1], configs={"message.timestamp.type": "LogAppendTime"})
    cluster.create(counts(wanted))
    assert cluster_target.replaced_times(cluster, wanted) == ["b"]


# --- secured clusters -----------------------------------------------------------------------------------------------


def test_client_properties_are_read_or_refused() -> None:
    """As Kafka's tools and librdkafka have them; a setting that would be ignored is an error."""
    java = from_properties(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": 'org.apache.kafka.Scram required username="al\\"ice" password="secret";',
            "ssl.truststore.location": "ca.pem",
            "ssl.truststore.type": "PEM",
            "ssl.endpoint.identification.algorithm": "",
        }
    )
    assert (java.username, java.password, java.authorities, java.checks_host) == ('al"ice', "secret", "ca.pem", False)
    assert from_properties({}) == Security()
    for wrong in ({"acks": "0"}, {"security.protocol": "TLS"}, {"sasl.jaas.config": "none"},
                  {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}):  # fmt: skip
        with pytest.raises(SecurityError, match="--client-config"):
            from_properties(wrong)
