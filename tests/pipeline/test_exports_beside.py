"""Exports and loads beside others: what another export, another process or a power cut must not take. No Spark."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.commands.export import starts_of
from pipeline.reading import read_batches
from pipeline.transfer import export, load_notes
from pipeline.transfer import load as loading
from pipeline.transfer.connection import Connection
from pipeline.transfer.manifest import NAME, Bounds, Manifest, ManifestError, Store
from pipeline.transfer.mirror import mirror
from pipeline.transfer.selection import Choice
from pipeline.transfer.staging import Staging, recover
from pipeline.transfer.targets import LoadError, counts
from pipeline.transfer.wire import LATEST, Cluster, WireError
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchResponse
from protocol.records.batch import batches
from tests.forking import Started
from tests.pipeline.test_interrupted import NOW_MS, created, data_files, exported, manifest_of, wanted_of, written
from tests.storage.test_files import synced
from understudy.launcher import command_line


def test_an_export_does_not_replace_one_that_has_ended_meanwhile(tmp_path: Path) -> None:
    """Two that continue the same one, at the same time: the second would take the records of the first out of force."""
    store = Store(str(tmp_path))
    before = exported(store, "a")
    late = Staging(store)
    late.begin()
    manifest = manifest_of(written(late.out, late.run, "b"))
    in_force = exported(store, "c", before=before)
    with pytest.raises(
        ManifestError, match=r"another export into .* has completed meanwhile, so this one was discarded"
    ):
        late.commit(manifest, before)
    late.discard()
    assert store.read_manifest().encode() == in_force.encode()
    assert {path.name for path in tmp_path.iterdir()} == {NAME, *data_files(tmp_path)}


def test_a_partition_that_comes_during_an_export_is_counted(tmp_path: Path) -> None:
    """Of a data directory that is served meanwhile: its bounds, and those of a log that grew, are what was copied."""
    files = written(str(tmp_path), "0123abcd", "a")
    for known in ({}, {0: Bounds(0, 0)}, {0: Bounds(0, 2)}):
        assert export.with_counts({"a": known}, files) == {"a": {0: Bounds(0, 3, 3, 0, 2)}}


def test_a_folder_of_the_users_is_not_taken_for_a_killed_export(tmp_path: Path) -> None:
    """By its name alone: an export notes who writes before anything else."""
    store = Store(str(tmp_path))
    for name in ("_writing-notes", "_writing-0123abcd"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.txt").write_text("mine")
    (tmp_path / "_writing-0123abce").mkdir()  # of an export that was killed in its first step
    recover(store)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.txt")) == [
        "_writing-0123abcd/mine.txt",
        "_writing-notes/mine.txt",
    ]
    assert not (tmp_path / "_writing-0123abce").exists()


def test_what_a_load_has_written_is_durable_before_it_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker that serves it finds the marker of a clean stop, and checks nothing."""
    wanted = wanted_of(tmp_path, "a")
    created(tmp_path / "data", wanted)
    names = synced(monkeypatch)
    assert loading.into_directory(None, str(tmp_path / "data"), wanted, NOW_MS) == 3
    assert names.index(f"{0:020}.log") < names.index("replication-offset-checkpoint.tmp")


def test_a_log_that_goes_on_far_behind_the_loaded_records_has_its_end(tmp_path: Path) -> None:
    """Farther than one batch without records can reach."""
    (wanted,) = wanted_of(tmp_path, "a")
    end = 5 * 2**31 + 7
    created(tmp_path / "data", [wanted])
    assert loading.into_directory(None, str(tmp_path / "data"), [replace(wanted, log_end=end)], NOW_MS) == 3
    pieces = list(read_batches(tmp_path / "data", topics=["a"], columns=["last_offset", "record_count"]))
    batches = [row for each in pieces for row in each.to_pylist()]
    assert batches[-1]["last_offset"] == end - 1
    assert sum(row["record_count"] for row in batches) == 3
    assert len(batches) == 7


def test_records_in_partitions_that_are_not_loaded_are_not_left_among_the_new_ones(tmp_path: Path) -> None:
    """A topic that has more partitions than the export: it is refused, as it is by a load into a cluster."""
    directory = tmp_path / "data"
    (wanted,) = wanted_of(tmp_path, "a")
    more = [wanted, replace(wanted, partition=1, files=(), log_end=0)]
    created(directory, more)
    assert loading.into_directory(None, str(directory), [wanted], NOW_MS) == 3
    filled = (directory / "a-0" / f"{0:020}.log").read_bytes()
    (directory / "a-1" / f"{0:020}.log").write_bytes(filled)
    with pytest.raises(LoadError, match="a-1 holds records already, and the export has no such partition"):
        loading.into_directory(None, str(directory), [wanted], NOW_MS, overwrite=True)
    assert not load_notes.is_unfinished(str(directory))
    assert loading.into_directory(None, str(directory), more, NOW_MS, overwrite=True) == 3
    assert not (directory / "a-1" / f"{0:020}.log").stat().st_size


def test_an_export_of_a_cluster_whose_log_was_truncated_is_not_continued(tmp_path: Path) -> None:
    """As from a directory: the ids of topics are not known of brokers before 3.1, and stay where a log is cut."""
    (wanted,) = wanted_of(tmp_path, "a")
    store = Store(str(tmp_path / "continued"))

    def exported_of(cluster: Cluster, name: str, before: Manifest | None) -> Manifest:
        (tmp_path / name).mkdir()
        mirror(cluster, tmp_path / name, Choice(), starts_of(before))
        return export.export(None, str(tmp_path / name), store.path, append=before is not None)

    server = Started(command_line(port=0, control_port="off"))
    try:
        address = server.ready.bootstrap_servers[0]
        with Cluster(address) as cluster:
            cluster.create(counts([wanted]))
            loading.into_cluster(None, address, [wanted])
            first = exported_of(cluster, "first", None)
            assert exported_of(cluster, "same", first).topics == first.topics
            cluster.delete(["a"])
            cluster.create(counts([wanted]))
            cluster.wait_for_leaders([("a", 0)])
            assert cluster.offset("a", 0, LATEST) == 0
            with pytest.raises(ManifestError, match="the log was truncated"):
                exported_of(cluster, "truncated", first)
    finally:
        server.stop()


def test_a_client_over_its_quota_fetches_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker answers it with no partition at all (KIP-219); one that never gives any is an error."""
    (wanted,) = wanted_of(tmp_path, "a")
    real, throttled = Cluster._at_leader, [2]

    def answered(self: Cluster, topic: str, partition: int, key: ApiKey, request: Any) -> Any:
        if key is ApiKey.FETCH and throttled[0]:
            throttled[0] -= 1
            return FetchResponse(throttle_time_ms=0, responses=[])
        return real(self, topic, partition, key, request)

    monkeypatch.setattr(Cluster, "_at_leader", answered)
    server = Started(command_line(port=0, control_port="off"))
    try:
        with Cluster(server.ready.bootstrap_servers[0]) as cluster:
            cluster.create(counts([wanted]))
            loading.into_cluster(None, server.ready.bootstrap_servers[0], [wanted])
            piece, end = cluster.fetch("a", 0, 0)
            assert (len(piece) > 0, end, throttled) == (True, 3, [0])
            throttled[0] = 1000
            with pytest.raises(WireError, match="quota"):
                cluster.fetch("a", 0, 0)
    finally:
        server.stop()


def test_a_leader_whose_connection_breaks_is_looked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An export goes on from its offset over a new connection, for as long as it would wait for a leader."""
    wanted = wanted_of(tmp_path, "a")
    real = Connection.ask
    breaks = {ApiKey.LIST_OFFSETS: 1, ApiKey.FETCH: 2}

    def ask(self: Connection, key: ApiKey, request: Any, version: int | None = None) -> Any:
        if breaks.get(key):
            breaks[key] -= 1
            self.close()
            raise ConnectionResetError(104, "Connection reset by peer")
        return real(self, key, request, version)

    monkeypatch.setattr("pipeline.transfer.wire._PAUSE_S", 0.0)
    server = Started(command_line(port=0, control_port="off"))
    try:
        with Cluster(server.ready.bootstrap_servers[0]) as cluster:
            cluster.create(counts(wanted))
            loading.into_cluster(None, server.ready.bootstrap_servers[0], wanted)
            monkeypatch.setattr(Connection, "ask", ask)
            mirror(cluster, tmp_path / "mirrored", Choice())
            assert breaks == {ApiKey.LIST_OFFSETS: 0, ApiKey.FETCH: 0}
            (log,) = (tmp_path / "mirrored" / "a-0").glob("*.log")
            assert [batch.next_offset for batch in batches(log.read_bytes())][-1] == 3
            breaks[ApiKey.LIST_OFFSETS] = 10**9
            cluster._patience_s = 0.0
            with pytest.raises(WireError, match="the leader of a-0 does not answer: Connection reset by peer"):
                cluster.offset("a", 0, LATEST)
    finally:
        server.stop()


def test_a_partition_that_moves_is_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its new leader may not know it yet (KIP-207); a topic that is gone is an error at once, as any other is."""
    (wanted,) = wanted_of(tmp_path, "a")
    real = Cluster._at_leader
    errors: list[ErrorCode] = []

    def answered(self: Cluster, topic: str, partition: int, key: ApiKey, request: Any) -> Any:
        answer = real(self, topic, partition, key, request)
        if errors:
            part = answer.topics[0].partitions[0] if key is ApiKey.LIST_OFFSETS else answer.responses[0].partitions[0]
            part.error_code = errors.pop(0)
        return answer

    monkeypatch.setattr(Cluster, "_at_leader", answered)
    monkeypatch.setattr("pipeline.transfer.wire._PAUSE_S", 0.0)
    server = Started(command_line(port=0, control_port="off"))
    try:
        with Cluster(server.ready.bootstrap_servers[0]) as cluster:
            cluster.create(counts([wanted]))
            loading.into_cluster(None, server.ready.bootstrap_servers[0], [wanted])
            errors += [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.OFFSET_NOT_AVAILABLE]
            assert (cluster.offset("a", 0, LATEST), errors) == (3, [])
            errors += [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
            assert (cluster.fetch("a", 0, 0)[1], errors) == (3, [])
            errors += [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
            with pytest.raises(WireError, match="TOPIC_AUTHORIZATION_FAILED"):
                cluster.offset("a", 0, LATEST)
            cluster.delete(["a"])
            with pytest.raises(WireError, match="has no leader"):
                cluster.offset("a", 0, LATEST)
    finally:
        server.stop()
