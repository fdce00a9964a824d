"""A user's program on virtual time: its processes, its surroundings, what is found, and what cannot be simulated."""

import argparse
import asyncio
import datetime as dt
import gc
import random
import re
import socket
import ssl
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import confluent_kafka.admin
import kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import ProducerFenced
from aiokafka.producer.transaction_manager import TransactionManager

from broker.coordination.metadata.image import NO_LEADER
from simulator import plan
from simulator.application import ApplicationRun, Options
from simulator.loop import VirtualLoop, sleep_ms
from simulator.network import Disturbance, Network
from simulator.supervisor import summary
from simulator.trace import Trace
from tests.simulator import copier
from understudy import simulation
from understudy.ctl_values import duration_ms
from understudy.simulation import Simulation, SimulationError

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]


def calm_run(main: Callable[[Simulation], Coroutine[Any, Any, Any]], **options: Any) -> simulation.Outcome:
    """The outcome of a run without faults, findings included."""
    return simulation.run(main, 1, faults="none", check=False, **{"minutes": 0.05, **options})


def test_a_right_program_has_no_finding_and_the_same_run_each_time() -> None:
    """Two plays of a seed send and receive the same bytes at the same times."""
    first, again = (simulation.run(copier.right, 9, topics=copier.TOPICS, minutes=0.2) for _ in range(2))
    assert first.digest == again.digest
    assert first.faults
    assert first.digest != simulation.run(copier.right, 10, topics=copier.TOPICS, minutes=0.2).digest


def test_a_planted_mistake_is_found() -> None:
    """A copier that commits offsets before it copies loses records when it is killed; the right one passes the seed."""
    with pytest.raises(SimulationError, match="without an outcome in out"):
        simulation.run(copier.hasty, 3, topics=copier.TOPICS, faults="processes")
    assert simulation.run(copier.right, 3, topics=copier.TOPICS, faults="processes").ok


def test_a_killed_process_runs_no_further_line_and_does_not_leave_its_group() -> None:
    """Its ``finally`` blocks do not run, and no LeaveGroup arrives; a clean stop has both."""
    lines: list[str] = []

    async def consume(sim: Simulation, name: str) -> None:
        try:
            await copier.copy(sim.bootstrap_servers)
        finally:
            lines.append(name)

    async def main(sim: Simulation) -> None:
        killed = sim.process("killed", lambda: consume(sim, "killed"))
        await sleep_ms(3_000)
        killed.kill()
        await sleep_ms(20_000)
        assert lines == []
        assert not await sim.cluster.journal.find(api="LeaveGroup")
        stopped = sim.process("stopped", lambda: consume(sim, "stopped"))
        await sleep_ms(20_000)
        assert await stopped.stop()
        assert lines == ["stopped"]
        assert await sim.cluster.journal.find(api="LeaveGroup")

    assert calm_run(main, topics=copier.TOPICS).findings == ()
    assert lines[:1] == ["stopped"]


def test_a_paused_process_runs_no_line_and_goes_on_with_what_became_due() -> None:
    """Its connections stay, another instance takes its partitions, and it comes back as a zombie, which is fenced."""
    ticks: list[float] = []
    ended: list[str] = []

    async def tick(sim: Simulation) -> None:
        while True:
            await sleep_ms(1_000)
            ticks.append(sim.now_s)

    async def instance(sim: Simulation) -> None:
        beside = asyncio.create_task(tick(sim)) if not ticks else None
        try:
            await copier.copy(sim.bootstrap_servers)
        except Exception as error:
            ended.append(type(error).__name__)
            raise
        finally:
            if beside is not None:
                beside.cancel()

    async def main(sim: Simulation) -> None:
        process = sim.process("copier", lambda: instance(sim), restart=False)
        await sim.feed("in", range(10), over_s=4.5)
        paused_s = sim.now_s
        process.pause()
        process.start()
        await sim.feed("in", range(10, 40), over_s=20)
        assert process.running == 2
        assert max(ticks) < paused_s
        process.resume()
        await sleep_ms(10)
        assert [each for each in ticks if each > paused_s] == [pytest.approx(sim.now_s, abs=0.02)]
        await sim.feed("in", range(40, 60), over_s=20)
        assert process.running == 1

    calm_run(main, topics=copier.TOPICS)
    assert ended == ["ProducerFenced"]


def test_a_killed_or_stopped_process_may_be_paused() -> None:
    """SIGKILL ends it, and a clean stop reaches it when it goes on."""
    lines: list[str] = []

    async def linger(name: str) -> None:
        try:
            await sleep_ms(1_000_000)
        finally:
            lines.append(name)

    async def main(sim: Simulation) -> None:
        killed = sim.process("killed", lambda: linger("killed"))
        stopped = sim.process("stopped", lambda: linger("stopped"))
        await sleep_ms(1_000)
        killed.pause()
        stopped.pause()
        killed.kill()
        stop = asyncio.create_task(stopped.stop())
        await sleep_ms(5_000)
        assert lines == []
        stopped.resume()
        assert await stop

    assert calm_run(main).findings == ()
    assert lines[:1] == ["stopped"]


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        ("freeze", r"copier\.\d+ +goes on"),
        ("rebalance", "the group copiers rebalances"),
        ("eviction", "the session of a member of the group copiers times out"),
        ("quota", r"clients have no \w+ any more"),
        ("outage", r"brokers \[.*\] stop, one after another"),
        ("slow answer", r"slow answer: \d+% of"),
        ("commit answer", r"(lose|slow) answer to a commit: \d+%"),
        ("no leader", "(in|out) has leaders again"),
        ("handover", "the markers of copier are written again"),
    ],
)
def test_each_fault_of_programs_happens(monkeypatch: pytest.MonkeyPatch, fault: str, line: str) -> None:
    """It is in the story, and a right program survives it."""
    monkeypatch.setattr(plan, "OF_PROGRAMS", {"network": (fault,)})
    engine = ApplicationRun(lambda own: copier.right(Simulation(own)), 5, Options(0.5, 3, copier.TOPICS, ("network",)))
    engine.run(apart=False)
    assert engine.findings == {}
    assert any(re.search(line, each) for each in engine.trace.story(20_000)), engine.trace.story(20_000)


@pytest.mark.parametrize("fault", ["quota", "no leader"])
def test_a_restart_of_all_brokers_does_not_make_a_fault_last(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """What the metadata keep, such as a quota, is undone when the fault is over, also if all brokers started again."""
    left: list[object] = []

    async def main(sim: Simulation) -> None:
        await sim.calm()
        image = sim._engine.servers.cluster.image
        left.extend(image.quotas)
        left.extend(each for *each, state in image.all_partitions() if state.leader == NO_LEADER)

    faults = [
        plan.Fault(0, 1_500, fault, 1, 3_000, "1 0"),
        plan.Fault(1, 2_500, "restart all", 1, 3_000, "1 1"),
    ]
    monkeypatch.setattr("simulator.application.plan_of_program", lambda *_: faults)
    engine = ApplicationRun(lambda own: main(Simulation(own)), 1, Options(0.1, 3, {"in": 2}, ("quotas",)))
    engine.run(apart=False)
    assert engine.findings == {}
    assert any("start again" in each for each in engine.trace.story())
    assert left == []


def test_two_instances_run_at_once_and_the_first_is_fenced() -> None:
    """A second instance with the same transactional id ends the first one, which fails."""
    ended: list[str] = []

    async def instance(sim: Simulation) -> None:
        try:
            await copier.copy(sim.bootstrap_servers)
        except Exception as error:
            ended.append(type(error).__name__)
            raise

    async def main(sim: Simulation) -> None:
        process = sim.process("copier", lambda: instance(sim), restart=False)
        await sim.feed("in", range(10), over_s=3)
        process.start()
        await sim.feed("in", range(10, 60), over_s=20)
        assert process.running == 1

    calm_run(main, topics=copier.TOPICS)
    assert ended == ["ProducerFenced"]


def test_a_hang_is_reported_with_the_line_that_waits() -> None:
    """A program that makes no progress after the last fault is a finding."""

    async def stuck(sim: Simulation) -> None:
        servers = sim.bootstrap_servers
        consumer = AIOKafkaConsumer("in", bootstrap_servers=servers, group_id="g", auto_offset_reset="earliest")
        await consumer.start()
        await consumer.getone()
        await consumer.commit()
        other = AIOKafkaConsumer("other", bootstrap_servers=servers)
        await other.start()
        await other.getone()  # the line in the report

    async def main(sim: Simulation) -> None:
        sim.process("stuck", lambda: stuck(sim))
        await sim.feed("in", range(20))
        await sim.calm(within_s=30)

    (finding, *_) = calm_run(main, topics={"in": 1, "other": 1}).findings
    assert "makes no progress for 30 s" in finding
    assert "group g has committed 1 of in-0, 19 behind its end" in finding
    assert "test_programs.py" in finding
    assert "stuck.1: Fetch other-0 has no response of broker" in finding


def test_calm_does_not_wait_for_transactions_that_begin_later() -> None:
    """A program that always has a transaction open is idle when its groups are; one that feeds itself is a finding."""

    async def writes(sim: Simulation) -> None:
        async with AIOKafkaProducer(bootstrap_servers=sim.bootstrap_servers, transactional_id="writer") as producer:
            while True:
                async with producer.transaction():
                    await producer.send_and_wait("other", b"")
                    await sleep_ms(2_000)

    async def main(sim: Simulation) -> None:
        sim.process("writer", lambda: writes(sim))
        sim.process("copier", lambda: copier.copy(sim.bootstrap_servers))
        await sim.feed("in", range(10))
        began_s = sim.now_s
        await sim.calm()
        assert sim.now_s - began_s < 10

    assert calm_run(main, topics=copier.TOPICS).findings == ()

    async def fed(sim: Simulation) -> None:
        process = sim.process("copier", lambda: copier.copy(sim.bootstrap_servers))
        feeding = asyncio.create_task(sim.feed("in", range(2_000), over_s=60))
        try:
            await sim.calm(within_s=20)
        finally:
            feeding.cancel()
            process.kill()

    (finding, *_) = calm_run(fed, topics=copier.TOPICS).findings
    assert "the program commits, but has not less to do for 20 s" in finding


def test_a_partition_separates_a_process_from_a_broker_until_it_ends() -> None:
    """Its connections stall and new ones wait, while another process is served."""
    loop = VirtualLoop()
    network = Network(loop, Random(1), Trace())
    network.broker_of = {9092: 1, 9093: 2}
    for port in network.broker_of:
        network._listen(Echo, "", port).serving = True
    separated = Disturbance(
        "partition", 5_000_000, Random(1), 0.5, frozenset({1}), apart={"left": True, "right": False}
    )
    network.disturbances.append(separated)

    async def connected_s(client: str, port: int) -> float:
        await network.connect(client, port)
        return round(loop.time(), 1)

    async def main() -> list[float]:
        clients = (("left", 9092), ("right", 9092), ("left", 9093))
        return list(await asyncio.gather(*(connected_s(*each) for each in clients)))

    assert loop.run_until_complete(main()) == [5.0, 0.0, 0.0]
    loop.close()


class Echo(asyncio.Protocol):
    """A broker's protocol that does nothing."""


def test_surroundings_are_the_runs_and_come_back() -> None:
    """Time, random numbers and ids depend on the seed alone, within the run."""

    def taken() -> list[object]:
        return [
            time.time(), time.time_ns(), time.monotonic(), time.perf_counter(), dt.datetime.now(dt.UTC),
            random.random(), random.Random().random(), uuid.uuid4(), uuid.uuid1(),
        ]  # fmt: skip

    seen: list[list[object]] = []

    async def main(_: Simulation) -> None:
        await sleep_ms(5_000)
        seen.append(taken())

    calm_run(main)
    before = random.getstate()
    calm_run(main)
    assert seen[0] == seen[1]
    assert seen[0][2] == 5.0
    assert random.getstate() == before
    assert abs(time.time() - dt.datetime.now(dt.UTC).timestamp()) < 60
    assert uuid.uuid4() != uuid.uuid4()


async def sleeps() -> None:
    """Block the loop."""
    block = time.sleep
    block(1)


async def starts_a_thread() -> None:
    """Start a thread."""
    threading.Thread(target=print, name="worker").start()


async def goes_elsewhere() -> None:
    """Connect to another server."""
    await asyncio.open_connection("example.test", 443)


async def uses_tls() -> None:
    """Connect with TLS."""
    await asyncio.open_connection("127.0.0.1", 9092, ssl=ssl.create_default_context())


async def uses_sasl() -> None:
    """Authenticate itself to a broker."""
    plain = {"sasl_mechanism": "PLAIN", "sasl_plain_username": "u", "sasl_plain_password": "p"}
    await AIOKafkaConsumer(
        "in", bootstrap_servers="127.0.0.1:9092", security_protocol="SASL_PLAINTEXT", **plain
    ).start()


async def uses_librdkafka() -> None:
    """Start its threads."""
    confluent_kafka.Producer({"bootstrap.servers": "127.0.0.1:9092"})


async def administers_with_librdkafka() -> None:
    """Use a class that inherits from the one in C."""
    confluent_kafka.admin.AdminClient({"bootstrap.servers": "127.0.0.1:9092"})


async def uses_kafka_python() -> None:
    """Use a client that blocks the loop."""
    kafka.KafkaProducer(bootstrap_servers="127.0.0.1:9092")


async def connects_and_waits() -> None:
    """Block the loop until another server answers."""
    socket.create_connection(("127.0.0.1", 1), timeout=1)


async def starts_a_program() -> None:
    """Start another process."""
    await asyncio.create_subprocess_exec("true")


async def awaits_a_socket() -> None:
    """Wait for bytes of the operating system."""
    ours, _theirs = socket.socketpair()
    asyncio.get_running_loop().add_reader(ours, print)


async def sends_a_datagram() -> None:
    """Send UDP."""
    await asyncio.get_running_loop().create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=("127.0.0.1", 9))


async def uses_an_executor() -> None:
    """Run a function in a thread."""
    await asyncio.to_thread(print)


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        (sleeps, r"time\.sleep\(1\) cannot be simulated; use await asyncio\.sleep"),
        (starts_a_thread, "the thread 'worker' cannot be simulated; use a task"),
        (goes_elsewhere, "a connection to example.test:443, which is no broker, cannot be simulated"),
        (uses_tls, "TLS cannot be simulated; use security_protocol PLAINTEXT"),
        (uses_sasl, "SASL cannot be simulated; use security_protocol PLAINTEXT"),
        (uses_librdkafka, r"confluent_kafka\.Producer cannot be simulated; it works in threads or blocks"),
        (administers_with_librdkafka, r"confluent_kafka\.AdminClient cannot be simulated; it works in threads"),
        (uses_kafka_python, r"kafka\.KafkaProducer cannot be simulated; .* use a client on asyncio"),
        (connects_and_waits, r"a blocking connection to \('127.0.0.1', 1\) cannot be simulated; replace that service"),
        (starts_a_program, "another process cannot be simulated; replace what it does"),
        (awaits_a_socket, "as a socket or a pipe, cannot be simulated; replace it"),
        (sends_a_datagram, "as a socket or a pipe, cannot be simulated; replace it"),
        (uses_an_executor, "a thread for .* cannot be simulated; call it directly"),
    ],
)
def test_what_cannot_be_simulated_is_named_with_its_line(
    what: Callable[[], Coroutine[Any, Any, None]], sentence: str
) -> None:
    """One sentence has the line of the program, and what to do instead."""

    async def main(_: Simulation) -> None:
        await what()

    (finding,) = calm_run(main).findings
    assert finding.startswith("tests/simulator/test_programs.py:")
    assert re.search(sentence, finding), finding


def test_a_failed_task_that_nothing_awaits_is_found() -> None:
    """The exception of a task is a finding, unless it is awaited."""

    async def fail() -> None:
        raise ValueError("lost")

    async def main(_: Simulation) -> None:
        task = asyncio.create_task(fail(), name="careless")
        kept = asyncio.create_task(fail(), name="careful")
        with pytest.raises(ValueError, match="lost"):
            await kept
        await asyncio.wait([task])

    (finding,) = calm_run(main).findings
    assert "the task careless fails with ValueError: lost" in finding


def test_a_topic_that_is_missing_is_named() -> None:
    """The sentence has the option that creates it."""

    async def main(sim: Simulation) -> None:
        await sim.feed("orders", [1])

    (finding,) = calm_run(main).findings
    assert "there is no topic 'orders'; name it in topics= or with --topic orders" in finding


def test_a_process_that_does_not_end_is_found() -> None:
    """A clean stop that a program ignores is a finding: it swallows its cancellation."""

    async def swallow() -> None:
        while True:
            try:
                await sleep_ms(1_000)
            except asyncio.CancelledError:
                continue

    async def main(sim: Simulation) -> None:
        sim.process("deaf", swallow)

    (finding,) = calm_run(main).findings
    assert "deaf.1 does not end within 30 s" in finding


def test_a_finding_names_the_line_that_calls_a_check() -> None:
    """Not the line inside the check that raises."""
    with pytest.raises(argparse.ArgumentTypeError) as raised:
        duration_ms("soon")
    assert re.search(r" at \S*test_programs\.py:\d+$", summary(raised.value))


def test_a_request_that_breaks_a_rule_of_the_protocol_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without being asked for: the first one of an instance, with its time, API and broker."""
    increment = TransactionManager.increment_sequence_number

    def skip(self: Any, partition: Any, count: int) -> None:
        increment(self, partition, count + (len(skipped) == 20))
        skipped.append(count)

    for wrong in (False, True):
        skipped: list[int] = [] if wrong else [0] * 100
        monkeypatch.setattr(TransactionManager, "increment_sequence_number", skip)
        outcome = calm_run(copier.right, topics=copier.TOPICS, minutes=0.2)
        broken = [each for each in outcome.findings if "breaks a rule of the protocol" in each]
        assert bool(broken) == wrong, outcome.findings
    assert any("OUT_OF_ORDER_SEQUENCE_NUMBER" in line for line in outcome.diagram), "it is not what is drawn"
    assert re.search(
        r"copier\.\d breaks a rule .* at \d+\.\d{3} s: Produce v\d+ to broker \d: .* comes next", broken[0]
    )


@pytest.mark.parametrize("of_aiokafka", [True, False])
def test_a_callback_that_fails_is_a_finding(of_aiokafka: bool) -> None:
    """Except the one of aiokafka, which drops a batch twice if its producer fails while the batch is to be sent again.

    The producer is fenced while the batch waits, because its topic is gone.
    """

    async def produce(sim: Simulation) -> None:
        async with transactional(sim) as producer:
            await producer.begin_transaction()
            await producer.send_and_wait("lost", b"1")
            await sim.cluster.topics["lost"].delete()
            lost = await producer.send("lost", b"2")
            await sleep_ms(1_000)
            async with transactional(sim):
                with pytest.raises(ProducerFenced):
                    await producer.send_and_wait("other", b"3")
            if not of_aiokafka:
                lost.add_done_callback(lambda _: {"a": 1}["b"])
            with pytest.raises(ProducerFenced):
                await lost

    def transactional(sim: Simulation) -> AIOKafkaProducer:
        return AIOKafkaProducer(bootstrap_servers=sim.bootstrap_servers, transactional_id="fenced")

    outcome = simulation.run(
        produce, 1, topics={"lost": 1, "other": 1}, faults="none", minutes=0.05, check=False,
        settings={"auto.create.topics.enable": "false"},
    )  # fmt: skip
    assert any("_pop_batch" in line for line in outcome.story) or of_aiokafka
    assert [each for each in outcome.findings if "a callback fails with KeyError" in each] == list(outcome.findings)
    assert bool(outcome.findings) != of_aiokafka


def test_client_logs_are_checked_by_one_call() -> None:
    """What the program notes is checked as `audit --history` does; a record that comes twice is named."""

    async def main(sim: Simulation, times: int) -> None:
        sim.log("producer", "sent", id="1", topic="in")
        for offset in range(times):
            sim.log("reader", "polled", id="1", topic="in", partition=0, offset=offset)
        await sim.check_client_logs()

    assert calm_run(lambda sim: main(sim, 1)).findings == ()
    (finding,) = calm_run(lambda sim: main(sim, 2)).findings
    assert "history-duplicate: one record at two offsets" in finding


def test_weak_sets_are_in_the_order_of_additions() -> None:
    """Not in that of addresses in memory: libraries iterate over their subscribers."""

    class Subscriber:
        """Hashed by its address."""

    async def main(_: Simulation) -> None:
        kept = [Subscriber() for _ in range(200)]
        ordered = weakref.WeakSet(kept)
        assert list(ordered) == kept
        ordered.discard(kept[3])
        ordered.add(kept[3])
        assert list(ordered) == [*kept[:3], *kept[4:], kept[3]]
        first = ordered.pop()
        assert first is kept[0]
        del first, kept[:2]
        gc.collect()
        assert len(ordered) == len(list(ordered)) == 198

    assert calm_run(main).findings == ()
