"""Broker ids by options, by server.properties or by a data directory; and clusters whose ids are not 1 to N."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

import understudy
from broker.options.broker_ids import BrokerIdError, ids_in_directory, ids_of_options
from storage.ownership import REPLACING
from tests.control.harness import ControlPlane
from tests.serving import Server, start

DEFAULT: dict[str, str] = {}


@pytest.mark.parametrize(
    ("brokers", "first", "settings", "ids"),
    [
        ("1", None, DEFAULT, ((1,), False)),
        ("3", None, DEFAULT, ((1, 2, 3), False)),
        ("3", "0", DEFAULT, ((0, 1, 2), True)),
        ("0,1,2", None, DEFAULT, ((0, 1, 2), True)),
        ("7,", None, DEFAULT, ((7,), True)),
        ("1001, 3", None, DEFAULT, ((1001, 3), True)),
        ("1", None, {"node.id": "5"}, ((5,), True)),
        ("2", None, {"broker.id": "0"}, ((0, 1), True)),
        ("1", "9", {"node.id": "5"}, ((9,), True)),
        ("1", None, {"broker.id": "-1"}, ((1,), False)),
    ],
)
def test_options_determine_the_ids(
    brokers: str, first: str | None, settings: dict[str, str], ids: tuple[tuple[int, ...], bool]
) -> None:
    """By a count, a list, the first id, or `node.id`; with whether they take precedence over a directory's."""
    assert ids_of_options(brokers, first, settings) == ids


@pytest.mark.parametrize(
    ("brokers", "first", "settings", "sentence"),
    [
        ("0", None, DEFAULT, "--brokers needs a number from 1 to 1000, or a list of ids such as 0,1,2, not '0'"),
        ("three", None, DEFAULT, "--brokers needs a number from 1 to 1000"),
        ("1,1", None, DEFAULT, "--brokers 1,1 lists an id twice"),
        ("1,-2", None, DEFAULT, "--brokers needs an id from 0 to 2147483647, not '-2'"),
        ("1,,2", None, DEFAULT, "--brokers needs an id from 0 to 2147483647, not ''"),
        ("1,2", "4", DEFAULT, "--brokers 1,2 already lists the ids; remove --broker-id 4"),
        ("1,2", None, {"node.id": "4"}, "--brokers 1,2 already lists the ids; remove node.id 4"),
        ("1", "x", DEFAULT, "--broker-id needs an id from 0"),
    ],
)
def test_invalid_ids_are_refused(brokers: str, first: str | None, settings: dict[str, str], sentence: str) -> None:
    """With one sentence that names the option."""
    with pytest.raises(BrokerIdError) as refused:
        ids_of_options(brokers, first, settings)
    assert sentence in str(refused.value)


def test_ids_of_a_data_directory(tmp_path: Path) -> None:
    """That of the only broker, or those of all `broker-ID` folders; further brokers get the next ids."""
    assert ids_in_directory(tmp_path, (1,)) == (1,)
    assert ids_in_directory(tmp_path, (1, 2)) == (1, 2)
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=0\n")
    assert ids_in_directory(tmp_path, (1,)) == (0,)
    for name in ("broker-4", "broker-0", "broker-x"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "meta.properties").touch()
    assert ids_in_directory(tmp_path, (1, 2)) == (0, 4)
    assert ids_in_directory(tmp_path, (1, 2, 3)) == (0, 4, 5)


def test_a_cluster_of_brokers_from_0_on(tmp_path: Path) -> None:
    """Real clients work with it; a second start needs only the directory, and finds the ids there."""
    process = start(brokers=[0, 1, 2], topics={"t": 3}, data_dir=tmp_path)
    plane = ControlPlane(Server(process))
    kafka = plane.kafka
    assert [broker.id for broker in kafka.info().brokers] == [0, 1, 2]
    seen = AdminClient({"bootstrap.servers": plane.bootstrap}).list_topics(timeout=60)
    assert sorted(seen.brokers) == [0, 1, 2]
    assert seen.controller_id in seen.brokers
    assert {partition.leader for partition in seen.topics["t"].partitions.values()} == {0, 1, 2}
    producer = Producer({"bootstrap.servers": plane.bootstrap, "transactional.id": "x"})
    producer.init_transactions(60)
    producer.begin_transaction()
    for partition in range(3):
        producer.produce("t", b"v", partition=partition)
    producer.commit_transaction(60)
    kafka.brokers[2].kill()
    kafka.brokers[2].start()
    assert kafka.brokers.add().id == 3
    kafka.brokers[3].remove()
    process.stop()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broker-0", "broker-1", "broker-2", "broker-3"]

    with understudy.start(brokers=3, data_dir=tmp_path) as again:
        assert [broker.id for broker in again.info().brokers] == [0, 1, 2]
        consumer = Consumer(
            {"bootstrap.servers": again.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe(["t"])
        assert len(consumer.consume(3, 60)) == 3
        consumer.close()
        again.reset()
        assert [broker.id for broker in again.info().brokers] == [0, 1, 2]


def test_a_server_properties_sets_the_brokers_id(tmp_path: Path) -> None:
    """And so does the data directory that such a broker left."""
    (tmp_path / "server.properties").write_text("process.roles=broker,controller\nnode.id=0\nnum.partitions=2\n")
    with understudy.start(config=tmp_path / "server.properties", data_dir=tmp_path / "data") as kafka:
        assert [broker.id for broker in kafka.info().brokers] == [0]
    for read_only in (False, True):
        with understudy.start(data_dir=tmp_path / "data", read_only=read_only) as kafka:
            assert [broker.id for broker in kafka.info().brokers] == [0]
    with pytest.raises(understudy.StartError, match="belongs to node 0, not to node 4"):
        understudy.start(data_dir=tmp_path / "data", broker_id=4)


def test_a_reset_that_was_killed_changes_no_ids(tmp_path: Path) -> None:
    """The directory of the first broker is empty by then, and those of the others are about to be."""
    for broker_id in (1, 2, 3):
        (tmp_path / f"broker-{broker_id}").mkdir()
    assert ids_in_directory(tmp_path, (1, 2, 3, 4)) == (1, 2, 3, 4)
    for broker_id in (2, 3):
        (tmp_path / f"broker-{broker_id}" / REPLACING).mkdir()
    assert ids_in_directory(tmp_path, (1, 2, 3, 4)) == (1, 2, 3, 4)
    (tmp_path / "broker-1" / "meta.properties").touch()
    (tmp_path / "broker-1").rename(tmp_path / "broker-7")
    assert ids_in_directory(tmp_path, (1, 2, 3, 4)) == (2, 3, 7, 8)
