"""Times 64 tests of a producer and a consumer group each, one after the other and eight at a time.

    python -m benchmarks.parallel [junit] [node] [pytest] [kit]

`kit` times clusters of Kafka's embedded test kit instead, one after the other in one JVM.

The clusters are in the server that all test processes share, or in one of each process (UNDERSTUDY_SERVER=own, for
pytest `--kafka-server own`). JUnit needs Maven, and node:test npm; both install the archives that `make packages` made.
Go has its own: `benchmarks/kfake/groups_test.go`. Wall time is a bound on a busy machine, so the load is printed too.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.targets import ROOT
from understudy.version import __version__

_FILES, _EACH, _AT_A_TIME = 8, 8, 8
_ARCHIVES = ROOT / "dist" / "packages"
_PYTEST = """
import pytest
from confluent_kafka import Consumer, Producer

@pytest.mark.kafka(topics=["orders:3"])
@pytest.mark.parametrize("number", range({count}))
def test_group(kafka, number):
    producer = Producer({{"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 0, "log_level": 0}})
    for _ in range(3):
        producer.produce("orders", b"one order")
        assert producer.flush(20) == 0
    consumer = Consumer({{"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g", "log_level": 0,
                         "auto.offset.reset": "earliest"}})
    consumer.subscribe(["orders"])
    records = 0
    while records < 3:
        records += (message := consumer.poll(20)) is not None and message.error() is None
    consumer.commit(asynchronous=False)
    consumer.close()
"""
_NODE = """
const {{ test }} = require('node:test');
const {{ Kafka, logLevel }} = require('kafkajs');
const {{ useKafka }} = require('understudy-kafka/node-test');
const kafka = useKafka({{ topics: {{ orders: 3 }} }});
for (let number = 0; number < {count}; number += 1) test(`group ${{number}}`, async () => {{
  const client = new Kafka({{ brokers: kafka.brokers, logLevel: logLevel.NOTHING }});
  const producer = client.producer();
  await producer.connect();
  for (let at = 0; at < 3; at += 1) await producer.send({{ topic: 'orders', messages: [{{ value: 'one order' }}] }});
  const consumer = client.consumer({{ groupId: 'g', maxWaitTimeInMs: 500 }});
  await consumer.connect();
  await consumer.subscribe({{ topics: ['orders'], fromBeginning: true }});
  let records = 0;
  await new Promise((resolve) => {{
    consumer.run({{ eachMessage: async () => {{ if ((records += 1) === 3) resolve(); }} }});
  }});
  await consumer.disconnect();
  await producer.disconnect();
}});
"""
_JUNIT = """
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.*;
import org.junit.jupiter.api.RepeatedTest;
import understudy.junit.*;

@KafkaTest(topics = "orders:3")
class Groups{number}Test {{
    @RepeatedTest({count})
    void group(Cluster kafka) throws Exception {{
        Map<String, Object> common = Map.of("bootstrap.servers", kafka.bootstrapServers());
        try (var producer = new KafkaProducer<>(common, new StringSerializer(), new StringSerializer())) {{
            for (int at = 0; at < 3; at++) producer.send(new ProducerRecord<>("orders", "one order")).get();
        }}
        var reading = new HashMap<String, Object>(common);
        reading.putAll(Map.of("group.id", "g", "auto.offset.reset", "earliest"));
        try (var consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer())) {{
            consumer.subscribe(List.of("orders"));
            for (int records = 0; records < 3; ) records += consumer.poll(Duration.ofSeconds(20)).count();
            consumer.commitSync();
        }}
    }}
}}
"""


_KIT_POM = """
<project><modelVersion>4.0.0</modelVersion>
<groupId>understudy</groupId><artifactId>kit</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-test-common-runtime</artifactId><version>4.3.1</version></dependency>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>4.3.1</version></dependency>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-clients</artifactId><version>4.3.1</version>
<classifier>test</classifier></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency>
</dependencies></project>
"""
_KIT = """
import java.util.*;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.test.*;

class Kit {
    public static void main(String[] arguments) throws Exception {
        int brokers = Integer.parseInt(arguments[0]);
        var ready = new ArrayList<Long>();
        var ended = new ArrayList<Long>();
        for (int number = 0; number < 12; number++) {
            long begun = System.nanoTime(), end;
            var nodes = new TestKitNodes.Builder().setCombined(true).setNumControllerNodes(brokers)
                .setNumBrokerNodes(brokers).build();
            try (var kit = new KafkaClusterTestKit.Builder(nodes).build()) {
                kit.format();
                kit.startup();
                kit.waitForReadyBrokers();
                try (var admin = kit.admin()) {
                    admin.createTopics(List.of(new NewTopic("orders", 1, (short) 1))).all().get();
                }
                end = System.nanoTime();
                if (number >= 2) ready.add(end - begun); // the first ones load classes
            }
            if (number >= 2) ended.add(System.nanoTime() - end);
        }
        Collections.sort(ready);
        Collections.sort(ended);
        System.out.printf("| Kafka's test kit, %d brokers, p50 | ready: %d ms, end: %d ms |%n", brokers,
            ready.get(ready.size() / 2) / 1_000_000, ended.get(ended.size() / 2) / 1_000_000);
        System.exit(0);
    }
}
"""


def timed(title: str, command: Sequence[object], folder: Path, environment: Mapping[str, str]) -> None:
    """Run a command, and print a row: wall seconds, processor seconds of the test processes, load."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([*map(str, command)], cwd=folder, env=env, capture_output=True, text=True, check=False)
    wall_s, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{title}: {(done.stdout + done.stderr)[-2000:]}")
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    sys.stdout.write(f"| {title} | {wall_s:.1f} s | {used_s:.1f} s | {os.getloadavg()[0]:.0f} |\n")
    sys.stdout.flush()


def each_way(title: str, run: Callable[[str, int, Mapping[str, str]], None]) -> None:
    """Run one after the other, eight at a time, and eight at a time with a server for each process or class."""
    run(f"{title}, one after the other", 1, {})
    run(f"{title}, {_AT_A_TIME} at a time", _AT_A_TIME, {})
    run(f"{title}, {_AT_A_TIME} at a time, a server each", _AT_A_TIME, {"UNDERSTUDY_SERVER": "own"})


def pytest(folder: Path) -> None:
    """With confluent-kafka and pytest-xdist."""
    (folder / "test_groups.py").write_text(_PYTEST.format(count=_FILES * _EACH))

    def run(title: str, at_a_time: int, environment: Mapping[str, str]) -> None:
        kind = environment.get("UNDERSTUDY_SERVER", "shared")
        workers = ("-n", at_a_time) if at_a_time > 1 else ("-p", "no:xdist")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *workers, "--kafka-server", kind]
        timed(title, command, folder, {})

    each_way("confluent-kafka and pytest", run)


def node(folder: Path) -> None:
    """With KafkaJS and node:test: eight files with eight tests."""
    archive = _ARCHIVES / f"understudy-kafka-{__version__}.tgz"
    subprocess.run(["npm", "init", "-y"], cwd=folder, check=True, capture_output=True)
    subprocess.run(["npm", "install", "--no-audit", archive, "kafkajs@2"], cwd=folder, check=True, capture_output=True)
    for number in range(_FILES):
        (folder / f"groups{number}.test.js").write_text(_NODE.format(count=_EACH))
    each_way(
        "KafkaJS and node:test",
        lambda title, count, env: timed(title, ["node", "--test", f"--test-concurrency={count}"], folder, env),
    )


def junit(folder: Path) -> None:
    """With kafka-clients and JUnit's parallel execution: eight classes with eight tests in one JVM."""
    text = (ROOT / "packages" / "java" / "README.md").read_text(encoding="utf-8")
    pom = text.split("`pom.xml`:\n\n```xml\n")[1].split("```")[0]
    (folder / "pom.xml").write_text(pom.replace("${env.CHECKOUT}", str(ROOT)))
    tests = folder / "src" / "test" / "java"
    tests.mkdir(parents=True)
    for number in range(_FILES):
        (tests / f"Groups{number}Test.java").write_text(_JUNIT.format(number=number, count=_EACH))
    subprocess.run(["mvn", "-q", "-B", "test-compile"], cwd=folder, check=True)

    def run(title: str, at_a_time: int, environment: Mapping[str, str]) -> None:
        prefix = "-Djunit.jupiter.execution.parallel"
        parallel = [f"{prefix}.enabled=true", f"{prefix}.mode.classes.default=concurrent"]
        parallel += [f"{prefix}.config.strategy=fixed", f"{prefix}.config.fixed.parallelism={at_a_time}"]
        command = ["mvn", "-q", "-B", "-o", "surefire:test", f"-DargLine={' '.join(parallel)}"]
        timed(title, command, folder, environment)

    each_way("kafka-clients and JUnit", run)


def kit(folder: Path) -> None:
    """Kafka's own KafkaClusterTestKit: from its builder until the brokers are ready, and its end."""
    (folder / "pom.xml").write_text(_KIT_POM)
    (folder / "Kit.java").write_text(_KIT)
    copied = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=libs"]
    subprocess.run(copied, cwd=folder, check=True, capture_output=True)
    for brokers in (1, 3):
        command = ["java", "-Xmx1g", "-cp", "libs/*", "Kit.java", str(brokers)]
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
        sys.stdout.write("".join(row for row in done.stdout.splitlines(keepends=True) if row.startswith("|")))


PARTS: dict[str, Callable[[Path], None]] = {"pytest": pytest, "node": node, "junit": junit, "kit": kit}


def main() -> None:
    """Run what the command line names, or all of it."""
    sys.stdout.write("| 64 tests | wall | processor time of the test processes | load |\n|---|---|---|---|\n")
    for name in sys.argv[1:] or PARTS:
        with tempfile.TemporaryDirectory() as folder:
            PARTS[name](Path(folder))


if __name__ == "__main__":
    main()
