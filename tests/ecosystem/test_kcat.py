"""kcat, as Debian packages it."""

import json
import subprocess

import pytest
from confluent_kafka import Producer

from tests.ecosystem.cluster import Cluster
from tests.ecosystem.programs import fetch

pytestmark = [pytest.mark.nightly, pytest.mark.interop, pytest.mark.timeout(600)]


def kcat(kafka: Cluster, *arguments: str, stdin: str = "") -> list[str]:
    """Run it to its end; the lines that it prints."""
    fetch("debian", "kcat")
    command = ["kcat", "-b", kafka.bootstrap, *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_metadata_as_json(kafka: Cluster) -> None:
    """-L -J: brokers, a controller, leaders, replicas and those in sync."""
    kafka.create({"orders": 3})
    (line,) = kcat(kafka, "-L", "-J")
    document = json.loads(line)
    addresses = {broker["name"] for broker in document["brokers"]}
    assert addresses == set(kafka.bootstrap.split(","))
    ids = {broker["id"] for broker in document["brokers"]}
    assert document["controllerid"] in ids
    (orders,) = [topic for topic in document["topics"] if topic["topic"] == "orders"]
    assert [each["partition"] for each in orders["partitions"]] == [0, 1, 2]
    for each in orders["partitions"]:
        replicas, in_sync = ({broker["id"] for broker in each[name]} for name in ("replicas", "isrs"))
        assert each["leader"] in replicas
        assert in_sync == replicas <= ids


def test_records_with_keys_and_headers(kafka: Cluster) -> None:
    """-P and -C: what is written in one go comes back, with keys, headers and offsets."""
    kafka.create({"orders": 1})
    lines = "".join(f"key {number}:value {number}\n" for number in range(50))
    kcat(kafka, "-P", "-t", "orders", "-K", ":", "-H", "from=kcat", "-z", "zstd", stdin=lines)
    read = kcat(kafka, "-C", "-t", "orders", "-o", "beginning", "-e", "-q", "-f", "%o %k %s %h\n")
    assert read == [f"{number} key {number} value {number} from=kcat" for number in range(50)]
    assert kcat(kafka, "-Q", "-t", "orders:0:-1") == ["orders [0] offset 50"]
    assert kcat(kafka, "-C", "-t", "orders", "-o", "-2", "-e", "-q", "-f", "%o\n") == ["48", "49"]


def test_a_transaction_and_who_sees_it(kafka: Cluster) -> None:
    """-X transactional.id: all in one transaction; an aborted one is seen by read_uncommitted only."""
    kafka.create({"orders": 1})
    kcat(kafka, "-P", "-t", "orders", "-X", "transactional.id=kcat", stdin="committed 1\ncommitted 2\n")
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": "another"})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("orders", "aborted")
    producer.flush(20)
    producer.abort_transaction(20)
    kcat(kafka, "-P", "-t", "orders", stdin="plain\n")

    read = ["-C", "-t", "orders", "-o", "beginning", "-e", "-q", "-X"]
    assert kcat(kafka, *read, "isolation.level=read_committed") == ["committed 1", "committed 2", "plain"]
    assert kcat(kafka, *read, "isolation.level=read_uncommitted") == ["committed 1", "committed 2", "aborted", "plain"]


def test_a_group_goes_on_where_it_ended(kafka: Cluster) -> None:
    """-G: two turns of one group read each record once."""
    kafka.create({"orders": 3})
    kafka.write("orders", [(str(number), str(number)) for number in range(90)])
    options = ["-q", "-X", "auto.offset.reset=earliest", "-X", "session.timeout.ms=6000"]
    first = kcat(kafka, "-G", "kcat", *options, "-c", "30", "orders")
    second = kcat(kafka, "-G", "kcat", *options, "-c", "60", "orders")
    assert sorted(map(int, first + second)) == list(range(90))
    assert kafka.lag("kcat") == {"orders": 0}
    assert kafka.groups() == {"kcat": "EMPTY"}
