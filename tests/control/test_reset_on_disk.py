"""Reset, snapshot and restore of data directories: a kill loses nothing, and other processes keep theirs."""

from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from storage.files import DirectoryLockedError, DiskFiles
from tests.control.conftest import QUICK
from tests.control.harness import ControlPlane
from tests.control.test_reset import busy, send, write, written
from tests.serving import Server, start
from understudy.errors import StartError


def test_a_data_directory_is_gone_back_to(tmp_path: Path) -> None:
    """As often as one likes, by real clients that go on; the copies are gone when the server stops."""
    process = start(data_dir=tmp_path / "data", topics=["t:2"], settings=QUICK)
    plane = ControlPlane(Server(process))
    producer = Producer({"bootstrap.servers": plane.bootstrap, "linger.ms": 0})
    assert send(producer, b"1") is None
    raw = busy(plane)
    snapshot = plane.kafka.snapshots.take()
    for value in (b"2", b"3"):
        assert send(producer, value) is None
        assert written(plane) == [b"1", b"before", value]
        plane.kafka.reset()
        assert written(plane) == []
        snapshot.restore()
        assert written(plane) == [b"1", b"before"]
        assert plane.kafka.transactions["x"].show().state == "Ongoing"
        assert plane.kafka.groups["g"].show().offsets[0].offset == 1
    assert raw.end().name == "NONE"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".data.understudy-snapshots", "data"]
    plane.server.finish_test()
    process.stop()
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_the_directories_of_several_brokers_are_gone_back_to(tmp_path: Path) -> None:
    """And a server that is started on them later finds what was restored."""
    process = start(data_dir=tmp_path / "data", brokers=2, topics=["t:2"])
    plane = ControlPlane(Server(process))
    write(plane, "1")
    before = plane.kafka.topics["t"].show()
    snapshot = plane.kafka.snapshots.take()
    write(plane, "2")
    plane.kafka.brokers[2].kill()
    snapshot.restore()
    assert written(plane) == [b"1"]
    after = plane.kafka.topics["t"].show()
    assert [each.leader for each in after.partitions] == [each.leader for each in before.partitions]
    process.stop()
    again = start(data_dir=tmp_path / "data", brokers=2)
    assert written(ControlPlane(Server(again))) == [b"1"]
    again.stop()


def test_a_snapshot_without_space_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    """Neither when it is taken, nor when it is restored."""
    folder = tmp_path / "data"
    process = start(data_dir=folder, topics=["t:2"])
    plane = ControlPlane(Server(process))
    write(plane, "1")
    (tmp_path / ".data.understudy-snapshots").touch()
    status, problem = plane.refused("POST", "/v1/snapshots")
    assert (status, "which exists and is not Understudy's; move it away" in problem["detail"]) == (409, True)
    (tmp_path / ".data.understudy-snapshots").unlink()
    snapshot = plane.kafka.snapshots.take()
    write(plane, "2")
    (folder / ".understudy-restoring").touch()
    status, problem = plane.refused("POST", "/v1/snapshots/2/restore")
    assert (status, "cannot be copied" in problem["detail"]) == (409, True)
    assert written(plane) == [b"1", b"2"]
    (folder / ".understudy-restoring").unlink()
    snapshot.restore()
    assert written(plane) == [b"1"]
    process.stop()


def test_what_a_killed_server_kept_is_not_kept_for_ever(tmp_path: Path) -> None:
    """The next server clears it away when it starts; one that only reads does not."""
    first = start(data_dir=tmp_path / "data")
    for _ in range(2):
        ControlPlane(Server(first)).kafka.snapshots.take()
    first.process.kill()
    first.process.wait()
    first.stop()
    folder = tmp_path / ".data.understudy-snapshots"
    assert sorted(path.name for path in folder.iterdir()) == ["1", "2", "understudy-snapshots"]
    start(data_dir=tmp_path / "data", read_only=True).stop()
    assert len(list(folder.iterdir())) == 3
    process = start(data_dir=tmp_path / "data")
    assert not folder.exists()
    ControlPlane(Server(process)).kafka.snapshots.take()
    assert sorted(path.name for path in folder.iterdir()) == ["1", "understudy-snapshots"]
    process.stop()


def test_the_directory_of_a_broker_that_is_down_may_be_another_process_s(tmp_path: Path) -> None:
    """A reset, or a restore, is refused while that uses it, and nothing has changed."""
    process = start(data_dir=tmp_path / "data", brokers=2, topics=["t:2"])
    plane = ControlPlane(Server(process))
    write(plane, "1")
    plane.kafka.snapshots.take()
    plane.kafka.brokers[2].stop()
    other = DiskFiles(tmp_path / "data" / "broker-2")
    other.lock()
    before = [path.name for path in sorted((tmp_path / "data").rglob("*.log"))]
    for path in ("/v1/reset", "/v1/snapshots/1/restore"):
        status, problem = plane.refused("POST", path)
        assert (status, "broker-2 is in use by another process" in problem["detail"]) == (409, True)
    assert [path.name for path in sorted((tmp_path / "data").rglob("*.log"))] == before
    other.close()
    plane.kafka.reset()
    assert written(plane) == []
    process.stop()


def test_a_broker_that_was_added_is_restored_after_a_reset(tmp_path: Path) -> None:
    """The reset has taken it out of the cluster, with its directory."""
    process = start(data_dir=tmp_path / "data", brokers=2, topics=["t:1"])
    plane = ControlPlane(Server(process))
    plane.kafka.brokers.add()
    write(plane, "1")
    snapshot = plane.kafka.snapshots.take()
    plane.kafka.reset()
    snapshot.restore()
    assert written(plane) == [b"1"]
    assert [broker.id for broker in plane.kafka.info().brokers] == [1, 2, 3]
    process.stop()


def test_a_snapshot_that_fails_names_the_reason_and_leaves_nothing(tmp_path: Path) -> None:
    """A file that cannot be copied: here, a link to nothing."""
    process = start(data_dir=tmp_path / "data", topics=["t:1"])
    plane = ControlPlane(Server(process))
    write(plane, "1")
    (tmp_path / "data" / "t-0" / f"{7:020}.log").symlink_to("nothing")
    status, problem = plane.refused("POST", "/v1/snapshots")
    assert (status, "No such file or directory" in problem["detail"]) == (409, True)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    process.stop()


def test_a_restore_that_is_killed_is_finished_by_the_next_start(tmp_path: Path) -> None:
    """With the ids that the brokers had; until then the directory is not read."""
    data = tmp_path / "data"
    process = start(data_dir=data, brokers="7,", topics=["t:1"])
    write(ControlPlane(Server(process)), "1")
    process.stop()
    (data / ".understudy-replacing").mkdir()
    for path in list(data.iterdir()):
        if path.name not in (".understudy-replacing", ".lock"):
            path.rename(data / ".understudy-replacing" / path.name)
    (data / "t-0").mkdir()
    (data / "t-0" / f"{0:020}.log").touch()
    with pytest.raises(StartError, match="serve it once without --read-only"):
        start(data_dir=data, read_only=True)
    again = start(data_dir=data)
    plane = ControlPlane(Server(again))
    assert (written(plane), [broker.id for broker in plane.kafka.info().brokers]) == ([b"1"], [7])
    again.stop()
    assert not list(data.glob(".understudy-*"))


def test_the_controller_s_directory_stays_locked_while_its_broker_is_down(tmp_path: Path) -> None:
    """The controller goes on writing its log there; the directory of another broker is free."""
    process = start(data_dir=tmp_path / "data", brokers=2)
    plane = ControlPlane(Server(process))
    for broker_id in (1, 2):
        plane.kafka.brokers[broker_id].stop()
    with pytest.raises(DirectoryLockedError):
        DiskFiles(tmp_path / "data" / "broker-1").lock()
    other = DiskFiles(tmp_path / "data" / "broker-2")
    other.lock()
    other.close()
    for broker_id in (1, 2):
        plane.kafka.brokers[broker_id].start()
    process.stop()


def test_a_log_that_begins_elsewhere_is_there_after_a_kill(tmp_path: Path) -> None:
    """The start that it had before, which is noted now and then, is not taken for its own."""
    process = start(data_dir=tmp_path / "data", topics=["t:1"])
    plane = ControlPlane(Server(process))
    for value in "abcde":
        write(plane, value)
    admin = AdminClient({"bootstrap.servers": plane.bootstrap})
    admin.delete_records([TopicPartition("t", 0, 3)])[TopicPartition("t", 0, 3)].result(60)
    plane.kafka.clock.advance(minutes=1)
    assert "t 0 3" in (tmp_path / "data" / "log-start-offset-checkpoint").read_text()
    plane.http("POST", "/v1/topics/t/partitions/0/start", {"offset": 0})
    write(plane, "new")
    process.process.kill()
    process.process.wait()
    process.stop()
    again = start(data_dir=tmp_path / "data")
    assert written(ControlPlane(Server(again))) == [b"new"]
    again.stop()


def test_a_reset_that_keeps_topics_needs_the_directories_too(tmp_path: Path) -> None:
    """Brokers that are down come back with it. It is refused before anything has changed."""
    process = start(data_dir=tmp_path / "data", brokers=3, topics=["t:3"])
    plane = ControlPlane(Server(process))
    write(plane, "1")
    fault = plane.kafka.faults.add(api="Fetch", error="UNKNOWN_SERVER_ERROR", times=1)
    for broker_id in (2, 3):
        plane.kafka.brokers[broker_id].kill()
    other, free = (DiskFiles(tmp_path / "data" / f"broker-{broker_id}") for broker_id in (3, 2))
    other.lock()
    for body in ({"keep": ["topics"]}, {}):
        status, problem = plane.refused("POST", "/v1/reset", body)
        assert (status, "broker-3 is in use by another process" in problem["detail"]) == (409, True)
        free.lock()
        free.close()
    assert [each.id for each in plane.kafka.faults.list()] == [fault.id]
    other.close()
    plane.kafka.reset(keep=["topics"])
    assert [broker.state for broker in plane.kafka.info().brokers] == ["running"] * 3
    assert written(plane) == [b"1"]
    process.stop()
