"""What a data directory must be like, and what becomes of unknown things in it."""

import shutil
from pathlib import Path

import pytest
from confluent_kafka import Producer

from protocol.records.compression import Codec
from tests.protocol.records.test_message_set import message_set
from tests.serving import start
from tests.storage.test_read_only import fingerprint
from tests.swap.contents import send
from tests.swap.looking import look
from tests.swap.nodes import Node
from tests.swap.test_crash import make_topic, values
from understudy.errors import StartError

pytestmark = pytest.mark.timeout(60)


def refused(node: Node, **options: object) -> str:
    """The one sentence with which a server ends, exit code 1, that is started on the directory."""
    with pytest.raises(StartError, match="ended with code 1: ") as reported:
        start(data_dir=node.data, **options)
    (sentence,) = str(reported.value).partition("code 1: ")[2].splitlines()
    assert sentence.startswith("understudy serve: ")
    return sentence.removeprefix("understudy serve: ")


def test_a_second_process_is_refused_in_one_sentence(bare_node: Node) -> None:
    """A second process on a directory is refused in one sentence, and the first one goes on."""
    bare_node.start_ours()
    make_topic(bare_node.bootstrap)
    assert (
        refused(bare_node) == f"the data directory {bare_node.data} is in use by another process (its .lock is taken)"
    )
    send(Producer({"bootstrap.servers": bare_node.bootstrap}), "t", b"goes on")
    assert values(bare_node.bootstrap) == [b"goes on"]


@pytest.mark.interop
@pytest.mark.timeout(180)
def test_kafka_and_we_keep_each_other_out(node: Node, tmp_path: Path) -> None:
    """Each takes the lock that the other looks at."""
    node.start_kafka()
    assert "is in use by another process" in refused(node)
    node.stop()
    node.start_ours()
    other = Node(tmp_path / "other")
    other.folder.mkdir()
    other.data.symlink_to(node.data)
    with pytest.raises(RuntimeError, match="Failed to acquire lock"):
        other.start_kafka()


def test_what_is_no_data_directory_is_refused(bare_node: Node) -> None:
    """Nothing there to be read; a file in its place; another node's; partitions whose metadata is missing."""
    assert "is not a data directory: it has no meta.properties" in refused(bare_node, read_only=True)
    bare_node.data.write_text("")
    assert "--data-dir needs a directory, and" in refused(bare_node)
    bare_node.data.unlink()
    bare_node.start_ours()
    make_topic(bare_node.bootstrap)
    bare_node.stop()
    properties = bare_node.data / "meta.properties"
    text = properties.read_text()
    properties.write_text(text.replace("node.id=1", "node.id=7"))
    assert refused(bare_node, broker_id=1) == "the data directory belongs to node 7, not to node 1"
    properties.write_text(text)
    shutil.rmtree(bare_node.data / "__cluster_metadata-0")
    before = fingerprint(bare_node.data)
    assert "has partitions (t-0) but no __cluster_metadata-0" in refused(bare_node)
    assert fingerprint(bare_node.data) == before


def test_one_broker_and_several_have_different_directories(bare_node: Node, tmp_path: Path) -> None:
    """Each would look empty to the other."""
    bare_node.start_ours()
    bare_node.stop()
    assert refused(bare_node, brokers=2) == f"{bare_node.data} is the data directory of one broker, not of 2"
    several = Node(tmp_path / "several")
    several.folder.mkdir()
    start(data_dir=several.data, brokers=2).stop()
    sentence = f"{several.data} is the data directory of several brokers; pass the same --brokers as before"
    assert refused(several) == sentence


def test_logs_that_the_metadata_does_not_know_are_put_aside(bare_node: Node) -> None:
    """Their directories are renamed, as Kafka does; the rest is served."""
    bare_node.start_ours()
    make_topic(bare_node.bootstrap)
    send(Producer({"bootstrap.servers": bare_node.bootstrap}), "t", b"known")
    reported = look(bare_node.bootstrap, ())
    bare_node.stop()
    for name in ("ghost-0", "t-1"):
        shutil.copytree(bare_node.data / "t-0", bare_node.data / name)
    bare_node.start_ours()
    assert look(bare_node.bootstrap, ()) == reported
    names = {path.name.partition(".")[0] for path in bare_node.data.glob("*-stray")}
    assert names == {"ghost-0", "t-1"}
    assert not (bare_node.data / "ghost-0").exists()


def test_a_directory_that_is_refused_is_as_it_was(bare_node: Node) -> None:
    """Of several brokers too: the marker of the first one's clean stop stays, and none is made."""
    start(data_dir=bare_node.data, brokers=2, topics=["t:2"]).stop()
    second = bare_node.data / "broker-2" / "meta.properties"
    text = second.read_text()
    for changed, sentence in (
        (text.replace("node.id=2", "node.id=7"), "the data directory belongs to node 7, not to node 2"),
        (text.replace("cluster.id=", "cluster.id=other"), "belongs to cluster other"),
    ):
        second.write_text(changed)
        before = fingerprint(bare_node.data)
        assert sentence in refused(bare_node, brokers="1,2")
        assert fingerprint(bare_node.data) == before
    second.write_text(text)
    shutil.rmtree(bare_node.data / "broker-1")
    before = fingerprint(bare_node.data)
    assert "broker-1 is missing or empty, but other directories are not" in refused(bare_node, brokers="1,2")
    assert fingerprint(bare_node.data) == before
    assert not (bare_node.data / "broker-1").exists()


def test_records_that_only_kafka_reads_are_found_before_anything_is_changed(bare_node: Node) -> None:
    """Of a directory that a real broker has made, so that it can still be given to one."""
    bare_node.start_ours()
    make_topic(bare_node.bootstrap)
    bare_node.stop()
    (bare_node.data / "understudy.properties").unlink()
    (bare_node.data / "t-0" / f"{0:020}.log").write_bytes(message_set(1, Codec.NONE))
    before = fingerprint(bare_node.data)
    assert "t-0 begins with records as brokers before 0.11 wrote them" in refused(bare_node)
    assert fingerprint(bare_node.data) == before


def test_a_metadata_log_without_its_end_is_that_of_its_snapshot(bare_node: Node) -> None:
    """A power cut may take what was not synced: the topics that it has are there, and not put aside."""
    bare_node.start_ours()
    make_topic(bare_node.bootstrap)
    send(Producer({"bootstrap.servers": bare_node.bootstrap}), "t", b"kept")
    for number in range(10):  # for a snapshot that has the first topic
        make_topic(bare_node.bootstrap, f"u{number}")
    bare_node.stop(clean=False)
    folder = bare_node.data / "__cluster_metadata-0"
    assert list(folder.glob("*.checkpoint"))
    for path in folder.iterdir():
        if path.suffix != ".checkpoint":
            path.unlink()
    bare_node.start_ours()
    assert values(bare_node.bootstrap) == [b"kept"]
    assert not list(bare_node.data.glob("t-*-stray"))
