"""A data directory is never taken from its owner: files that this program did not make stay, byte for byte."""

import shutil
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from tests.control.harness import ControlPlane
from tests.serving import Server, start
from tests.swap.contents import send
from tests.swap.nodes import Node
from tests.swap.test_crash import make_topic, values
from tests.swap.test_directory import refused
from understudy.errors import StartError

pytestmark = pytest.mark.timeout(60)


def tree(folder: Path) -> dict[str, bytes | None]:
    """Every path below a folder with its bytes; None for a directory."""
    return {str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes() for path in folder.rglob("*")}


def fill_with_sources(folder: Path) -> dict[str, bytes | None]:
    """Put a small project with a repository into a folder."""
    (folder / ".git" / "objects").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "src-1").mkdir()  # looks like a partition
    (folder / "src-1" / "main.py").write_text("print('mine')\n")
    (folder / "README.md").write_text("mine\n")
    return tree(folder)


@pytest.mark.parametrize("brokers", [1, 2])
def test_a_folder_with_other_files_is_refused_and_not_touched(bare_node: Node, brokers: int) -> None:
    """The error lists what is there and what to do."""
    before = fill_with_sources(bare_node.data)
    sentence = refused(bare_node, brokers=brokers)
    assert ".git, README.md, src-1" in sentence
    assert sentence.endswith("choose an empty directory, or one that does not exist yet")
    assert tree(bare_node.data) == before


def test_no_broker_of_several_is_formatted_when_one_cannot_be(bare_node: Node) -> None:
    """Broker 2's directory has other files: broker 1 gets none."""
    before = fill_with_sources(bare_node.data / "broker-2")
    assert "broker-2 is not empty and not a data directory" in refused(bare_node, brokers=2)
    assert tree(bare_node.data / "broker-2") == before
    assert [path.name for path in bare_node.data.iterdir()] == ["broker-2"]


@pytest.mark.parametrize("entry", ["notes.txt", "src/main.py", "src-1/main.py", "t-0/notes.txt", "00-backup/t.log"])
def test_a_data_directory_with_a_foreign_entry_is_refused(bare_node: Node, entry: str) -> None:
    """At the root, in a folder, in a folder that looks like a partition, in a partition."""
    bare_node.start_ours()
    make_topic(bare_node.bootstrap)
    bare_node.stop()
    (bare_node.data / entry).parent.mkdir(exist_ok=True)
    (bare_node.data / entry).write_text("mine")
    before = tree(bare_node.data)
    sentence = refused(bare_node)
    assert "has entries that are neither partitions nor Kafka's own files" in sentence
    assert entry.partition("/")[0] in sentence
    assert "--read-only" in sentence
    assert tree(bare_node.data) == before
    bare_node.start_ours(read_only=True)
    bare_node.stop()
    assert tree(bare_node.data) == before


def test_what_operating_systems_leave_behind_is_no_reason_to_refuse(bare_node: Node) -> None:
    """A mounted volume has lost+found, a folder that was looked at on a Mac .DS_Store; both survive a reset."""
    (bare_node.data / "lost+found").mkdir(parents=True)
    (bare_node.data / ".DS_Store").write_text("mine")
    plane = ControlPlane(bare_node.start_ours())
    plane.kafka.reset()
    bare_node.stop()
    bare_node.start_ours()
    bare_node.stop()
    assert (bare_node.data / ".DS_Store").read_text() == "mine"
    assert (bare_node.data / "lost+found").is_dir()


def test_files_that_came_while_the_server_ran_survive_everything(bare_node: Node) -> None:
    """A reset, a restored snapshot, a deleted topic: what Kafka does not write stays where it was put."""
    server = bare_node.start_ours()
    plane = ControlPlane(server)
    make_topic(bare_node.bootstrap)
    snapshot = plane.kafka.snapshots.take()
    mine = ("notes.txt", "t-0/notes.txt", "docs/notes.txt")
    (bare_node.data / "docs").mkdir()
    for path in mine:
        (bare_node.data / path).write_text("mine")

    def kept() -> list[str]:
        return [path for path in mine if (bare_node.data / path).read_text() == "mine"]

    snapshot.restore()
    assert kept() == list(mine)
    make_topic(bare_node.bootstrap, "u")
    (bare_node.data / "u-0" / "notes.txt").write_text("mine")
    admin = AdminClient({"bootstrap.servers": bare_node.bootstrap})
    (deleted,) = admin.delete_topics(["u"]).values()
    deleted.result(10)
    plane.kafka.clock.advance(minutes=2)
    (gone,) = bare_node.data.glob("u-0.*-delete")
    assert [path.name for path in gone.iterdir()] == ["notes.txt"]
    plane.kafka.reset()
    assert kept() == list(mine)
    assert (gone / "notes.txt").read_text() == "mine"
    left = [line for line in server.log_lines() if line["event"] == "foreign files were left in the data directory"]
    assert any("t-0/notes.txt" in line["left"] for line in left)
    make_topic(bare_node.bootstrap)
    send(Producer({"bootstrap.servers": bare_node.bootstrap}), "t", b"goes on")
    assert values(bare_node.bootstrap) == [b"goes on"]


def test_our_own_directory_is_reset_also_by_a_later_server(bare_node: Node) -> None:
    """After an orderly stop and after a kill."""
    for clean in (True, False):
        plane = ControlPlane(bare_node.start_ours())
        make_topic(bare_node.bootstrap)
        plane.kafka.reset()
        make_topic(bare_node.bootstrap)
        bare_node.stop(clean=clean)
        plane = ControlPlane(bare_node.start_ours())
        assert [topic.name for topic in plane.kafka.topics.list()] == ["t"]
        plane.kafka.reset()
        assert plane.kafka.topics.list() == []
        bare_node.stop()


def test_a_directory_of_another_origin_is_not_reset(bare_node: Node) -> None:
    """Until the user permits it by name; a reset that keeps some of it is refused as well."""
    bare_node.start_ours()
    make_topic(bare_node.bootstrap)
    bare_node.stop()
    (bare_node.data / "understudy.properties").unlink()  # as in a directory that a real broker left
    plane = ControlPlane(bare_node.start_ours())
    for body in ({}, {"keep": ["topics"]}):
        status, problem = plane.refused("POST", "/v1/reset", body)
        assert status == 409
        assert "--read-only" in problem["detail"]
        assert "--allow-reset" in problem["detail"]
    assert [topic.name for topic in plane.kafka.topics.list()] == ["t"]
    bare_node.stop()
    allowed = start(data_dir=bare_node.data, port=bare_node.port, allow_reset=True)
    ControlPlane(Server(allowed)).kafka.reset()
    assert not (bare_node.data / "t-0").exists()
    allowed.stop()


@pytest.mark.interop
@pytest.mark.timeout(180)
@pytest.mark.parametrize("first", ["kafka", "ours"])
def test_a_directory_that_kafka_served_is_not_reset(node: Node, first: str) -> None:
    """Whether Kafka formatted it, or went on with ours: its records are not thrown away."""
    if first == "ours":
        node.start_ours()
        make_topic(node.bootstrap)
        node.stop()
    node.start_kafka()
    make_topic(node.bootstrap, "of-kafka")
    node.stop()
    for _ in range(2):
        plane = ControlPlane(node.start_ours())
        status, problem = plane.refused("POST", "/v1/reset", {})
        assert (status, "--allow-reset" in problem["detail"]) == (409, True)
        assert "of-kafka" in [topic.name for topic in plane.kafka.topics.list()]
        node.stop()


def test_a_copied_directory_is_reset_where_the_copy_lies(bare_node: Node, tmp_path: Path) -> None:
    """The marker travels with a copy of ours, and the original stays as it was."""
    bare_node.start_ours()
    make_topic(bare_node.bootstrap)
    bare_node.stop()
    before = tree(bare_node.data)
    shutil.copytree(bare_node.data, tmp_path / "copy")
    copy = start(data_dir=tmp_path / "copy")
    ControlPlane(Server(copy)).kafka.reset()
    copy.stop()
    assert tree(bare_node.data) == before


def test_the_start_error_of_a_fixture_names_the_folder(tmp_path: Path) -> None:
    """`understudy.start(data_dir=...)`, which the pytest fixture calls, raises and changes nothing."""
    before = fill_with_sources(tmp_path / "project")
    with pytest.raises(StartError, match="is not empty and not a data directory"):
        start(data_dir=tmp_path / "project")
    assert tree(tmp_path / "project") == before
