"""Every verb with a real client: what it does to the client, or what it shows of it; and the walk that counts them.

A test names its verbs by ``@pytest.mark.verb("brokers kill")``; the fixture in ``conftest.py`` verifies
that it uses them.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

from control_api.verb import Verb
from control_api.verbs import VERBS
from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane
from tests.serving import until
from tests.test_steering import TASKS
from tests.understudy.test_client import CALLS

FOLDER = Path(__file__).parent
LIBRARIES = ("confluent_kafka", "kafka", "aiokafka")
CLIENTS = {
    "SchemaRegistryClient",
    "Producer",
    "Consumer",
    "AdminClient",
    "KafkaProducer",
    "KafkaConsumer",
    "AIOKafkaProducer",
    "AIOKafkaConsumer",
}
Heard = list[KafkaError | None]


@pytest.fixture
def three(plane_of: ControlPlaneOf) -> ControlPlane:
    """Three brokers; t has three replicas of which two must be in sync."""
    settings = {"default.replication.factor": 3, "min.insync.replicas": 2, "group.initial.rebalance.delay.ms": 0}
    return plane_of(brokers=3, topics=["t:1"], settings=settings)


def send(producer: Producer, value: bytes, patience_s: float = 20) -> KafkaError | None:
    """One record to t-0; what became of it."""
    reported: Heard = []
    producer.produce("t", value, partition=0, on_delivery=lambda error, _: reported.append(error))
    assert producer.flush(patience_s) == 0
    return reported[0]


def values(plane: ControlPlane) -> list[bytes]:
    """What a consumer finds in t-0."""
    consumer = Consumer({"bootstrap.servers": plane.bootstrap, "group.id": "look", "enable.partition.eof": True,
                         "fetch.wait.max.ms": 10})  # fmt: skip
    consumer.assign([TopicPartition("t", 0, OFFSET_BEGINNING)])
    consumed = []
    while (message := until(lambda: consumer.poll(0.2), "the end")).error() is None:
        consumed.append(message.value() or b"")
    consumer.close()
    return consumed


# --- what verbs show of a client -------------------------------------------------------------------------------------


@pytest.mark.verb("health", "cluster", "metrics", "topics list", "topics show", "partitions show", "producers list")
@pytest.mark.verb("transactions list", "groups list", "versions show", "journal list", "journal clear")
def test_what_clients_did_is_shown(plane: ControlPlane) -> None:
    """A producer of transactions and a member of a group, connected by the address that the cluster reports."""
    kafka = plane.kafka
    assert kafka.health().status == "ok"
    (broker,) = kafka.info().brokers
    conf = {"bootstrap.servers": f"{broker.host}:{broker.port}", "client.id": "app"}
    producer = Producer({**conf, "transactional.id": "x"})
    producer.init_transactions(60)
    producer.begin_transaction()
    assert send(producer, b"v") is None
    producer.commit_transaction(60)
    consumer = Consumer({**conf, "group.id": "g"})
    consumer.subscribe(["t"])
    until(lambda: consumer.poll(0.05) or consumer.assignment(), "an assignment")
    assert [topic.name for topic in kafka.topics.list() if not topic.internal] == ["t", "u"]
    assert [each.high_watermark for each in kafka.topics["t"].show().partitions] == [2, 0]
    (known,) = kafka.topics["t"].partitions[0].show().producers
    assert [each.producer_id for each in kafka.producers.list()] == [known.producer_id]
    assert [(each.transactional_id, each.state) for each in kafka.transactions.list()] == [("x", "CompleteCommit")]
    assert [(group.group_id, len(group.members)) for group in kafka.groups.list()] == [("g", 1)]
    (commit,) = kafka.journal.find(api="EndTxn", client_id="app")
    assert kafka.versions.show()["EndTxn"].max >= commit.version
    assert re.search(r'understudy_requests_total\{api="EndTxn"\} [1-9]', kafka.metrics())
    kafka.journal.clear()
    assert kafka.journal.find(api="EndTxn") == []
    assert send(Producer(conf), b"w") is None
    assert kafka.journal.find(api="Produce", client_id="app")
    consumer.close()


@pytest.mark.verb("groups why", "groups evict")
def test_the_refusal_of_an_evicted_member_is_explained(plane: ControlPlane) -> None:
    """Its next heartbeat is refused, and `why` has the reason."""
    conf = {"group.id": "g", "client.id": "app", "heartbeat.interval.ms": 50, "session.timeout.ms": 6000}
    consumer = Consumer({"bootstrap.servers": plane.bootstrap, **conf})
    consumer.subscribe(["t"])
    until(lambda: consumer.poll(0.05) or consumer.assignment(), "an assignment")
    (member,) = plane.kafka.groups["g"].show().members
    plane.kafka.groups["g"].evict(member.member_id)
    reported = until(lambda: consumer.poll(0.05) or plane.kafka.groups["g"].why(), "a refusal")
    until(lambda: plane.kafka.groups["g"].why().error == "UNKNOWN_MEMBER_ID", f"the refusal, not {reported}")
    assert re.match(
        rf"no longer a member: at .* member '{member.member_id}' .*evict", plane.kafka.groups["g"].why().why
    )
    consumer.close()


# --- what verbs do to a client ---------------------------------------------------------------------------------------


@pytest.mark.verb("clock freeze", "clock thaw", "clock show")
def test_a_frozen_clock_keeps_an_answer_back(plane: ControlPlane) -> None:
    """An answer that is due in 50 ms does not come while the clock is frozen, and comes when it goes on."""
    producer = Producer({"bootstrap.servers": plane.bootstrap, "linger.ms": 0})
    assert send(producer, b"before") is None
    plane.kafka.clock.freeze()
    fault = plane.kafka.faults.add(api="Produce", delay_ms=50, where="after")
    producer.produce("t", b"v", partition=0)
    until(lambda: producer.poll(0) or fault.show().met, "the request")
    assert producer.flush(0.2) == 1
    assert plane.kafka.clock.show().frozen
    plane.kafka.clock.thaw()
    assert producer.flush(60) == 0


@pytest.mark.verb("isr set", "producers why")
def test_too_few_replicas_stop_a_producer(three: ControlPlane) -> None:
    """`why` has the reason, and the producer goes on when they are back."""
    part = three.kafka.topics["t"].partitions[0]
    part.move_leader(1)
    part.set_isr([1])
    producer = Producer({"bootstrap.servers": three.bootstrap, "enable.idempotence": True, "linger.ms": 0})
    producer.produce("t", b"v", partition=0)
    until(lambda: producer.poll(0) or three.kafka.journal.find(error="NOT_ENOUGH_REPLICAS"), "a refusal")
    (reported,) = three.kafka.producers.list()
    why = three.kafka.producers[reported.producer_id].why()
    assert (why.error, "the ISR is 1 now" in why.why) == ("NOT_ENOUGH_REPLICAS", True)
    part.set_isr([1, 2, 3])
    assert producer.flush(60) == 0


@pytest.mark.verb("retention run", "compaction run")
def test_what_is_cleaned_is_gone_for_a_consumer(plane_of: ControlPlaneOf) -> None:
    """Now, rather than at the next interval."""
    rolls = "segment.ms=1000,message.timestamp.type=LogAppendTime"  # clients have the machine's time
    topics = [f"t:1:cleanup.policy=compact,{rolls}", f"u:1:retention.ms=1000,{rolls}"]
    plane = plane_of(topics=topics, settings={"log.cleaner.backoff.ms": 600_000})
    producer = Producer({"bootstrap.servers": plane.bootstrap, "linger.ms": 0})
    for value in (b"1", b"2", b"3"):
        for topic in ("t", "u"):
            producer.produce(topic, value, key=b"k")
        assert producer.flush(60) == 0
        plane.kafka.clock.advance(seconds=5)
    assert values(plane) == [b"1", b"2", b"3"]
    plane.kafka.compaction.run()
    assert values(plane) in ([b"2", b"3"], [b"3"])
    consumer = Consumer({"bootstrap.servers": plane.bootstrap, "group.id": "g"})
    before = consumer.get_watermark_offsets(TopicPartition("u", 0), 20)
    plane.kafka.retention.run()
    after = consumer.get_watermark_offsets(TopicPartition("u", 0), 20)
    assert before == (0, 3)
    assert after[0] > 0
    consumer.close()


@pytest.mark.verb("brokers fail-log-dir", "brokers repair-log-dir")
def test_a_producer_outlives_a_log_directory(three: ControlPlane) -> None:
    """Its leader moves while the broker goes on; after the repair the broker leads again."""
    part = three.kafka.topics["t"].partitions[0]
    part.move_leader(2)
    producer = Producer({"bootstrap.servers": three.bootstrap, "linger.ms": 0})
    assert send(producer, b"1") is None
    three.kafka.brokers[2].fail_log_dir()
    assert send(producer, b"2") is None
    assert part.show().leader in (1, 3)
    three.kafka.brokers[2].repair_log_dir()
    until(lambda: 2 in part.show().isr, "the replica in sync")
    part.move_leader(2)
    assert send(producer, b"3") is None
    assert [record.value for record in part.records()] == [b"1", b"2", b"3"]


@pytest.mark.verb("brokers kill", "brokers start", "brokers stop")
def test_a_producer_outlives_its_leaders(three: ControlPlane) -> None:
    """One is killed and missed by the clock, one stops in good order; both come back with what they have missed."""
    part = three.kafka.topics["t"].partitions[0]
    part.move_leader(2)
    conf = {"bootstrap.servers": three.bootstrap, "linger.ms": 0, "topic.metadata.refresh.interval.ms": 500}
    producer = Producer(conf)
    assert send(producer, b"1") is None
    three.kafka.brokers[2].kill()
    three.kafka.clock.advance(seconds=30)
    assert send(producer, b"2") is None
    assert part.show().leader in (1, 3)
    three.kafka.brokers[2].start()
    part.move_leader(3)
    three.kafka.brokers[3].stop()
    assert send(producer, b"3") is None
    three.kafka.brokers[3].start()
    until(lambda: part.show().isr == (1, 2, 3), "all replicas")
    assert values(three) == [b"1", b"2", b"3"]


@pytest.mark.verb("brokers pause", "brokers resume")
def test_a_client_waits_for_a_broker_that_hangs(plane: ControlPlane) -> None:
    """Nothing is answered until it is resumed; nothing is lost."""
    producer = Producer({"bootstrap.servers": plane.bootstrap, "linger.ms": 0})
    assert send(producer, b"1") is None
    plane.kafka.brokers[1].pause()
    producer.produce("t", b"2", partition=0)
    assert producer.flush(0.2) == 1
    plane.kafka.brokers[1].resume()
    assert producer.flush(60) == 0
    assert values(plane) == [b"1", b"2"]


@pytest.mark.verb("faults add", "faults show", "faults list", "faults remove", "faults clear")
def test_faults_are_met_until_they_are_taken_back(plane: ControlPlane) -> None:
    """A producer tries again and again; it gets through when the fault is gone."""
    producer = Producer({"bootstrap.servers": plane.bootstrap, "linger.ms": 0, "retry.backoff.ms": 20})
    fault = plane.kafka.faults.add(api="Produce", error="NOT_LEADER_OR_FOLLOWER", times=None)
    never = plane.kafka.faults.add(api="EndTxn", drop=True, optional=True)
    producer.produce("t", b"1", partition=0)
    producer.poll(0)
    assert fault.wait_hits(2, timeout_ms=20_000).hits >= 2
    assert [each.id for each in plane.kafka.faults.list(unmet=True)] == [never.id]
    fault.remove()
    assert producer.flush(60) == 0
    plane.kafka.faults.add(api="Produce", delay_ms=600_000)
    producer.produce("t", b"2", partition=0)
    assert producer.flush(0.2) == 1
    plane.kafka.faults.clear()
    assert producer.flush(60) == 0
    assert values(plane) == [b"1", b"2"]


@pytest.mark.verb("journal pcap", "journal list")
def test_a_capture_holds_what_a_client_sent(plane: ControlPlane) -> None:
    """Of one API alone, if that is requested."""
    assert send(Producer({"bootstrap.servers": plane.bootstrap, "client.id": "app"}), b"a value") is None
    every, produced = plane.kafka.journal.pcap(), plane.kafka.journal.pcap(api="Produce")
    other = plane.kafka.journal.pcap(api="EndTxn")
    assert len(every) > len(produced) > len(other)
    assert b"a value" in produced
    assert [entry.client_id for entry in plane.kafka.journal.find(api="Produce")] == ["app"]


# --- the walk --------------------------------------------------------------------------------------------------------


@cache
def tree(path: Path) -> ast.Module:
    """A module."""
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(path: Path) -> dict[str, ast.FunctionDef]:
    """Of a module, at its top."""
    return {node.name: node for node in tree(path).body if isinstance(node, ast.FunctionDef)}


def marked(path: Path) -> Iterator[tuple[str, str]]:
    """Verb and test."""
    for name, function in functions(path).items():
        for mark in function.decorator_list:
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.verb":
                yield from ((ast.literal_eval(argument), name) for argument in mark.args)


def makes_a_client(path: Path, name: str) -> bool:
    """Whether a test, or a function of its module that it uses, makes a client out of a library."""
    imported = {alias.name for node in tree(path).body if isinstance(node, ast.ImportFrom)
                and (node.module or "").partition(".")[0] in LIBRARIES for alias in node.names} & CLIENTS  # fmt: skip
    known, left, seen = functions(path), [name], set()
    while left:
        here = left.pop()
        seen.add(here)
        used = {node.id for node in ast.walk(known[here]) if isinstance(node, ast.Name)}
        used |= {argument.arg for argument in known[here].args.args}
        if used & imported:
            return True
        left += [each for each in used if each in known and each not in seen]
    return False


def test_every_verb_is_tried_in_four_ways() -> None:
    """By the same call over HTTP, in Python and in a shell (test_steering.py makes them), and beside a real client."""
    clients = {verb for path in FOLDER.glob("test_*.py") for verb, name in marked(path) if makes_a_client(path, name)}
    plain = [verb for verb in VERBS if verb.example is None]
    assert [verb.name for verb in plain if not any(re.fullmatch(line(verb), http) for http, _, _ in TASKS)] == []
    assert [verb.name for verb in plain if verb.name not in CALLS] == []  # in Python, with the answer typed
    assert [verb.name for verb in VERBS if verb.name not in clients] == []
    assert clients - {verb.name for verb in VERBS} == set()


def line(verb: Verb) -> str:
    """A pattern of how a verb is written over HTTP in docs/faults-and-time.md."""
    return rf"{verb.method} {re.sub(r'{[a-z_]+}', '[^/ ]+', verb.path)}([? ].*)?"


def test_a_verb_without_a_client_would_be_seen() -> None:
    """A test that creates none does not count, marked or not."""
    path = FOLDER / "test_versions.py"
    assert makes_a_client(path, "test_a_real_client_uses_the_versions_that_it_is_given")
    assert not makes_a_client(path, "test_an_api_can_be_taken_away")
