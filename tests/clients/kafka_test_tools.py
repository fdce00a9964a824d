"""Kafka's own test tools through TOOLS_STEPS, and Kafka Streams through STREAMS_STEPS; processes die on the way."""

# ruff: noqa: D102 -- TOOLS_STEPS and STREAMS_STEPS document each step

import json
import queue
import subprocess
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, ConsumerGroupState, Producer, TopicPartition
from confluent_kafka import admin as typed_admin

from tests.clients.class_archive import archive_flags
from tests.clients.observed import Report
from tests.clients.script import expect
from tests.clients.targets import JVM, kafka_libs

cadmin: Any = typed_admin
RECORDS = 6000
PARTITIONS = 9
KEYS, PER_KEY = 30, 100
TERMS, LINES = 20, 30
PATIENCE_S = 120.0


class Process:
    """A Java main class that prints JSON lines; a thread reads them."""

    def __init__(self, class_path: str, main_class: str, *arguments: str) -> None:
        libs = kafka_libs()
        archive = archive_flags(libs) if class_path.startswith(f"{libs}/*") else ()
        self.process = subprocess.Popen(
            ["java", *JVM, *archive, "-cp", class_path, main_class, *arguments], stdout=subprocess.PIPE, text=True
        )
        self.lines: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for line in output:
                if line.startswith("{"):
                    self.lines.put(json.loads(line))
        self.lines.put(None)

    def follow(self, until: Callable[[dict[str, Any]], object]) -> bool:
        """Read lines until one is right; False where the output ended first."""
        deadline = time.monotonic() + PATIENCE_S
        while (line := self.lines.get(timeout=max(0.1, deadline - time.monotonic()))) is not None:
            if until(line):
                return True
        return False

    def end(self) -> int:
        """Wait until it has ended by itself."""
        return self.process.wait(PATIENCE_S)

    def kill(self) -> None:
        """At once, as by a power cut."""
        self.process.kill()
        self.process.wait()
        self.reader.join()


class Tools:
    """The steps; what one writes the next reads."""

    def __init__(self, class_path: str, bootstrap: str, brokers: int, topic: str) -> None:
        self.class_path, self.bootstrap, self.replicas = class_path, bootstrap, min(brokers, 3)
        self.inputs, self.output, self.group = f"{topic}-in", f"{topic}-out", f"{topic}-group"
        self.admin: Any = cadmin.AdminClient({"bootstrap.servers": bootstrap})
        self.processes: list[Process] = []

    def program(self, main_class: str, *arguments: str) -> Process:
        """Start a program of the class path."""
        self.processes.append(Process(self.class_path, main_class, *arguments))
        return self.processes[-1]

    def close(self) -> None:
        """End what still runs, also after a step that failed."""
        for each in self.processes:
            each.kill()

    def java(self, tool: str, *arguments: str) -> Process:
        """One of Kafka's tools."""
        return self.program(f"org.apache.kafka.tools.{tool}", *arguments)

    def create(self, partitions: int) -> None:
        """The two topics."""
        topics = [cadmin.NewTopic(topic, partitions, self.replicas) for topic in (self.inputs, self.output)]
        for future in self.admin.create_topics(topics).values():
            future.result(20)

    def read(self, topic: str, partitions: int, count: int, quiet_s: float = 1.0) -> list[tuple[bytes, bytes]]:
        """Keys and values with read_committed, in each partition's order: so many, and what comes in a moment after."""
        settings = {"bootstrap.servers": self.bootstrap, "group.id": "unused", "enable.auto.commit": False}
        consumer = Consumer({**settings, "isolation.level": "read_committed"})
        consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(partitions)])
        read: list[tuple[bytes, bytes]] = []
        deadline = time.monotonic() + PATIENCE_S
        whole = False
        while not whole and time.monotonic() < deadline:
            whole = len(read) >= count
            messages = consumer.consume(1000, timeout=quiet_s if whole else 0.1)
            read += [(m.key() or b"", m.value() or b"") for m in messages if m.error() is None]
        consumer.close()
        return read

    def step_verifiable_producer(self) -> str:
        self.create(PARTITIONS)
        arguments = ("--topic", self.inputs, "--max-messages", str(RECORDS), "--repeating-keys", "100")
        producer = self.java("VerifiableProducer", *arguments, "--bootstrap-server", self.bootstrap)
        acknowledged = 0

        def is_summary(line: dict[str, Any]) -> bool:
            nonlocal acknowledged
            acknowledged += line["name"] == "producer_send_success"
            return bool(line["name"] == "tool_data")

        expect(producer.follow(is_summary), "it ended without its summary")
        expect(acknowledged == RECORDS, f"{acknowledged} acknowledged")
        expect(producer.end() == 0, "exit code")
        return f"{acknowledged} acknowledged"

    def step_verifiable_consumer(self) -> str:
        arguments = ("--topic", self.inputs, "--group-id", self.group, "--bootstrap-server", self.bootstrap)
        consumers = [self.java("VerifiableConsumer", *arguments) for _ in range(2)]
        counts = [0, 0]
        committed: dict[int, int] = {}
        deadline = time.monotonic() + PATIENCE_S
        while sum(committed.values()) < RECORDS:
            expect(time.monotonic() < deadline, f"{counts} consumed, {committed} committed")
            for n, consumer in enumerate(consumers):
                try:
                    line = consumer.lines.get(timeout=0.05) or {"name": "ended"}
                except queue.Empty:
                    continue
                expect(line["name"] != "ended", "a consumer ended")
                if line["name"] == "records_consumed":
                    counts[n] += line["count"]
                if line["name"] == "offsets_committed":
                    expect(line["success"], line)
                    committed |= {each["partition"]: each["offset"] for each in line["offsets"]}
        for consumer in consumers:
            consumer.process.terminate()
            expect(consumer.follow(lambda line: line["name"] == "shutdown_complete"), "no clean end")
        return f"{counts} consumed, {len(committed)} partitions committed"

    def copier(self, number: int) -> Process:
        """One copier of the group."""
        options = {
            "--input-topic": self.inputs,
            "--input-partition": "-1",
            "--output-topic": self.output,
            "--broker-list": self.bootstrap,
            "--consumer-group": f"{self.group}-copiers",
            "--transaction-size": "100",
            "--transactional-id": f"{self.output}-copier-{number}",
            "--transaction-timeout": "20000",
        }
        flags = [part for pair in options.items() for part in pair]
        return self.java(
            "TransactionalMessageCopier", *flags, "--group-mode", "--use-group-metadata", "--enable-random-aborts"
        )

    def step_copier(self) -> str:
        copiers = [self.copier(number) for number in range(3)]
        victim = copiers[1]
        busy = victim.follow(lambda line: line.get("stage") == "ProcessLoop" and line.get("consumed", 0) > 200)
        victim.kill()
        copiers[1] = self.copier(1)
        codes = [copier.end() for copier in copiers]
        expect(codes == [0, 0, 0], f"exit codes {codes}")
        read = Counter(value for _, value in self.read(self.output, PARTITIONS, RECORDS))
        wanted = Counter(str(n).encode() for n in range(RECORDS))
        expect(read == wanted, f"{sum((wanted - read).values())} missing, {sum((read - wanted).values())} too many")
        return f"{sum(read.values())} records, killed {'at work' if busy else 'after its work'}"

    # ---------------------------------------------------------------- Streams

    def feed(self, turns: range) -> None:
        """One record of every key for each turn."""
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for turn in turns:
            for key in range(KEYS):
                producer.produce(self.inputs, key=f"key-{key}", value=str(turn))
        expect(producer.flush(20) == 0, "not delivered")

    def step_exactly_once_v2(self) -> str:
        self.create(3)
        with tempfile.TemporaryDirectory() as folder:
            arguments = (self.bootstrap, self.inputs, self.output, f"{self.group}-streams", folder)
            first = self.program("streams.Count", *arguments)
            self.feed(range(PER_KEY // 2))
            begun = len(self.read(self.output, 3, 300, quiet_s=0))
            first.kill()
            second = self.program("streams.Count", *arguments)
            self.feed(range(PER_KEY // 2, PER_KEY))
            read = self.read(self.output, 3, KEYS * PER_KEY)
            second.process.terminate()
            second.end()
        counts: dict[bytes, list[int]] = defaultdict(list)
        for key, value in read:
            counts[key].append(int(value))
        wanted = list(range(1, PER_KEY + 1))
        wrong = {key: steps for key, steps in counts.items() if steps != wanted}
        expect(not wrong and len(counts) == KEYS, f"{len(counts)} keys; wrong: {wrong}")
        return f"{len(read)} steps of {len(counts)} keys, killed after {begun}"

    # ---------------------------------------------------------------- Streams groups (KIP-1071)

    def counting(self, folder: str, protocol: str) -> Process:
        """An instance of the application that counts terms."""
        topics = (f"{self.inputs}-terms", f"{self.output}-terms")
        wanted = (self.bootstrap, *topics, f"{self.group}-terms", folder, protocol)
        return self.program("streams.Terms", *wanted)

    def feed_lines(self, turns: range) -> None:
        """One line of all terms for each turn."""
        producer = Producer({"bootstrap.servers": self.bootstrap})
        line = " ".join(f"term-{n}" for n in range(TERMS))
        for turn in turns:
            producer.produce(f"{self.inputs}-terms", key=f"line-{turn}", value=line)
        expect(producer.flush(20) == 0, "not delivered")

    def check_counts(self, lines: int) -> str:
        """Every term was counted once for each line, in order."""
        counts: dict[bytes, list[int]] = defaultdict(list)
        for key, value in self.read(f"{self.output}-terms", 3, TERMS * lines):
            counts[key].append(int(value))
        wrong = {key: steps for key, steps in counts.items() if steps != list(range(1, lines + 1))}
        expect(not wrong and len(counts) == TERMS, f"{len(counts)} terms; wrong: {wrong}")
        return f"{len(counts)} terms counted up to {lines}"

    def step_classic_before_streams(self) -> str:
        topics = [cadmin.NewTopic(f"{name}-terms", 3, self.replicas) for name in (self.inputs, self.output)]
        for future in self.admin.create_topics(topics).values():
            future.result(20)
        with tempfile.TemporaryDirectory() as folder:
            instance = self.counting(folder, "classic")
            self.feed_lines(range(LINES))
            counted = self.check_counts(LINES)
            instance.process.terminate()
            instance.end()
        self.wait_until_empty(f"{self.group}-terms")
        return counted

    def wait_until_empty(self, group: str) -> None:
        """Until the last member's session has ended: Streams leaves no classic group when it is closed."""
        deadline, pause = time.monotonic() + PATIENCE_S, threading.Event()
        while True:
            state = self.admin.describe_consumer_groups([group])[group].result(20).state
            if state is ConsumerGroupState.EMPTY:
                return
            expect(time.monotonic() < deadline, f"{group} is {state}")
            pause.wait(0.2)

    def step_streams_group(self) -> str:
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
            first, second = self.counting(one, "streams"), self.counting(two, "streams")
            self.feed_lines(range(LINES, 2 * LINES))
            self.read(f"{self.output}-terms", 3, TERMS * LINES * 3 // 2, quiet_s=0)
            first.kill()
            self.feed_lines(range(2 * LINES, 3 * LINES))
            with tempfile.TemporaryDirectory() as three:
                third = self.counting(three, "streams")
                counted = self.check_counts(3 * LINES)
                for each in (second, third):
                    each.process.terminate()
                    each.end()
        return counted

    def streams_groups(self, *arguments: str) -> str:
        """What `kafka-streams-groups` prints, without its log lines."""
        command = ["java", *JVM, "-cp", f"{kafka_libs()}/*", "org.apache.kafka.tools.streams.StreamsGroupCommand"]
        finished = subprocess.run(
            [*command, "--bootstrap-server", self.bootstrap, *arguments], capture_output=True, text=True, check=False
        )
        return "\n".join(line for line in finished.stdout.splitlines() if line and not line.startswith(("[", "\t")))

    def step_streams_groups_tool(self) -> str:
        group, topic = f"{self.group}-terms", f"{self.inputs}-terms"
        expect(f"{group} Empty" in " ".join(self.streams_groups("--list", "--state").split()), "not listed as Empty")
        state = self.streams_groups("--describe", "--group", group, "--state").split()
        expect({group, "Empty"} <= {*state}, f"state: {state}")
        wanted = ("--group", group, "--input-topic", topic, "--to-current", "--execute")
        reset = self.streams_groups("--reset-offsets", *wanted)
        expect(reset.count(topic) == 3, f"reset: {reset}")
        refused = self.streams_groups("--delete", "--group", f"{group}-none")
        expect("not found" in refused or "failed" in refused, f"deletion of no group: {refused}")
        return f"{len(reset.splitlines())} lines of a reset"

    def step_classic_after_streams(self) -> str:
        with tempfile.TemporaryDirectory() as folder:
            instance = self.counting(folder, "classic")
            self.feed_lines(range(3 * LINES, 4 * LINES))
            counted = self.check_counts(4 * LINES)
            instance.process.terminate()
            instance.end()
        return counted


def play(class_path: str, steps: Iterable[str], bootstrap: str, brokers: int, topic: str) -> Report:
    """Play steps with the programs of a class path."""
    report = Report()
    tools = Tools(class_path, bootstrap, brokers, topic)
    try:
        for name in steps:
            report.step(name, getattr(tools, f"step_{name}"))
    finally:
        tools.close()
    return report
