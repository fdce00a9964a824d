"""Kafka's own command-line tools through the script of TOOL_STEPS, each a process of its own by its main class."""

# ruff: noqa: D102 -- TOOL_STEPS documents each step

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.clients.class_archive import archive_flags
from tests.clients.observed import Report
from tests.clients.script import expect, until
from tests.clients.steps import CODECS, TOOL_STEPS
from tests.clients.targets import JVM

TOOLS = "org.apache.kafka.tools"
TOPICS = f"{TOOLS}.TopicCommand"
GROUPS = f"{TOOLS}.consumer.group.ConsumerGroupCommand"
CONFIGS = "kafka.admin.ConfigCommand"
PRODUCER = f"{TOOLS}.ConsoleProducer"
CONSUMER = f"{TOOLS}.consumer.ConsoleConsumer"
OFFSETS = f"{TOOLS}.GetOffsetShell"
PER_CODEC = 10
WRITTEN = PER_CODEC * len(CODECS) + 3


class Tools:
    """Runs the tools, and returns what they printed."""

    def __init__(self, libs: str, bootstrap: str, brokers: int, topic: str, report: Report) -> None:
        self.libs, self.bootstrap, self.brokers, self.topic = libs, bootstrap, brokers, topic
        self.group, self.report = f"{topic}-group", report

    def run(self, main_class: str, *arguments: str, stdin: str = "", bare: bool = False) -> str:
        """Run a tool and return its output; fail the step unless it ends with 0. `bare`: without --bootstrap-server."""
        server = () if bare else ("--bootstrap-server", self.bootstrap)
        flags = (*JVM, *archive_flags(Path(self.libs)))  # with them a tool starts in half the time
        done = subprocess.run(
            ["java", *flags, "-cp", f"{self.libs}/*", main_class, *server, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        sys.stderr.write(done.stderr)
        printed = {"code": done.returncode, "returned": done.stdout.splitlines()}
        self.report.call(main_class.rpartition(".")[2], printed)
        expect(
            done.returncode == 0,
            f"{main_class} {arguments}: {done.returncode} {done.stdout[-700:]} {done.stderr[-700:]}",
        )
        expect("Error" not in done.stdout, done.stdout[-700:])
        return done.stdout

    def step_cluster_id(self) -> str:
        answer = self.run(f"{TOOLS}.ClusterTool", "cluster-id", "--bootstrap-server", self.bootstrap, bare=True)
        expect(re.search(r"Cluster ID: \S+", answer), answer)
        return answer.strip()

    def step_broker_api_versions(self) -> str:
        answer = self.run(f"{TOOLS}.BrokerApiVersionsCommand")
        expect(answer.count("Produce(0):") == self.brokers, answer[:500])
        expect(answer.count("(id: ") == self.brokers, answer[:500])
        return f"{answer.count('usable: ')} usable"

    def step_features_describe(self) -> str:
        answer = self.run(f"{TOOLS}.FeatureCommand", "describe")
        for feature in ("metadata.version", "transaction.version", "group.version"):
            expect(f"Feature: {feature}" in answer, answer)
        return ", ".join(re.findall(r"Feature: (\S+)\s.*FinalizedVersionLevel: (?:\S+)", answer))

    def step_quorum_describe(self) -> None:
        answer = self.run(f"{TOOLS}.MetadataQuorumCommand", "describe", "--status")
        expect(re.search(r"LeaderId:\s+\d+", answer) and "CurrentVoters:" in answer, answer)

    def topics(self) -> list[str]:
        """All topics' names."""
        return self.run(TOPICS, "--list").split()

    def step_topics_list(self) -> None:
        expect(self.topic not in self.topics(), "listed already")

    def step_topics_create(self) -> None:
        replicas = str(min(self.brokers, 3))
        shape = ("--partitions", "3", "--replication-factor", replicas, "--config", "segment.bytes=2097152")
        expect("Created topic" in self.run(TOPICS, "--create", "--topic", self.topic, *shape), "not created")

    def step_topics_describe(self) -> None:
        answer = self.run(TOPICS, "--describe", "--topic", self.topic)
        expect(f"PartitionCount: 3\tReplicationFactor: {min(self.brokers, 3)}" in answer, answer)
        expect("segment.bytes=2097152" in answer and len(re.findall(r"Leader: \d+", answer)) == 3, answer)

    def step_console_producer(self, codec: str) -> None:
        lines = "".join(f"{codec}-{i}\t{codec}-value-{i}\n" for i in range(PER_CODEC))
        self.run(
            PRODUCER,
            "--topic",
            self.topic,
            "--compression-codec",
            codec,
            "--reader-property",
            "parse.key=true",
            stdin=lines,
        )

    def step_console_producer_headers(self) -> None:
        properties = ("parse.headers=true", "parse.key=true", "null.marker=NULL")
        flags = [part for each in properties for part in ("--reader-property", each)]
        lines = "h:one,h:two\twith-headers\tvalue\nempty:\tempty-header\tvalue\nh:one\tnull-value\tNULL\n"
        self.run(PRODUCER, "--topic", self.topic, *flags, stdin=lines)

    def step_console_consumer(self) -> None:
        shown = ("key", "headers", "timestamp", "partition", "offset")
        flags = [part for each in shown for part in ("--formatter-property", f"print.{each}=true")]
        limits = ("--from-beginning", "--max-messages", str(WRITTEN), "--timeout-ms", "20000")
        lines = self.run(CONSUMER, "--topic", self.topic, *flags, *limits).splitlines()
        expect(len(lines) == WRITTEN, lines)
        expect(all(line.startswith("CreateTime:") for line in lines), lines)
        answer = {tuple(line.split("\t")[3:]) for line in lines}
        wanted = {("NO_HEADERS", f"{codec}-{i}", f"{codec}-value-{i}") for codec in CODECS for i in range(PER_CODEC)}
        wanted |= {
            ("h:one,h:two", "with-headers", "value"),
            ("empty:", "empty-header", "value"),
            ("h:one", "null-value", "null"),
        }
        expect(answer == wanted, answer ^ wanted)

    def offsets(self, *flags: str) -> dict[int, int]:
        """By partition."""
        lines = self.run(OFFSETS, "--topic", self.topic, *flags).split()
        return {int(line.split(":")[1]): int(line.split(":")[2]) for line in lines}

    def step_get_offsets(self) -> str:
        latest = self.offsets()
        expect(sum(latest.values()) == WRITTEN, latest)
        expect(self.offsets("--time", "earliest") == {0: 0, 1: 0, 2: 0}, "earliest")
        expect(self.offsets("--time", "1000000000000") == {0: 0, 1: 0, 2: 0}, "by timestamp")
        return str(latest)

    def step_group_consume(self) -> None:
        limits = ("--from-beginning", "--max-messages", str(WRITTEN), "--timeout-ms", "20000")
        lines = self.run(CONSUMER, "--topic", self.topic, "--group", self.group, *limits).splitlines()
        expect(len(lines) == WRITTEN, lines)

    def step_groups_list(self) -> None:
        expect(re.search(rf"{self.group}\s+Empty", self.run(GROUPS, "--list", "--state")), "not listed as empty")
        expect(
            re.search(rf"{self.group}\s+Classic\s+consumer", self.run(f"{TOOLS}.GroupsCommand", "--list")), "not listed"
        )

    def lag(self) -> dict[int, tuple[int, int]]:
        """By partition: committed offset, lag."""
        answer = self.run(GROUPS, "--describe", "--group", self.group, "--offsets")
        rows = [line.split() for line in answer.splitlines() if line.startswith(self.group)]
        return {int(row[2]): (int(row[3]), int(row[5])) for row in rows}

    def step_groups_describe(self) -> str:
        lag = self.lag()
        expect(sum(offset for offset, _ in lag.values()) == WRITTEN and not any(left for _, left in lag.values()), lag)
        answer = self.run(GROUPS, "--describe", "--group", self.group, "--state")
        expect(re.search(rf"{self.group}\s.*Empty\s+0", answer), answer)
        return str(lag)

    def step_groups_reset_offsets(self) -> None:
        self.run(GROUPS, "--reset-offsets", "--group", self.group, "--topic", self.topic, "--to-earliest", "--execute")
        lag = self.lag()
        expect(sum(left for _, left in lag.values()) == WRITTEN, lag)

    def step_groups_delete(self) -> None:
        self.run(GROUPS, "--delete", "--group", self.group)
        expect(self.group not in self.run(GROUPS, "--list"), "still listed")

    def step_configs_describe(self) -> None:
        answer = self.run(CONFIGS, "--describe", "--all", "--entity-type", "topics", "--entity-name", self.topic)
        expect("cleanup.policy=delete" in answer and "segment.bytes=2097152" in answer, answer)
        answer = self.run(CONFIGS, "--describe", "--all", "--entity-type", "brokers", "--entity-name", "1")
        expect("log.retention.hours=168" in answer, answer)

    def configs(self) -> str:
        """The topic's own settings."""
        return self.run(CONFIGS, "--describe", "--entity-type", "topics", "--entity-name", self.topic)

    def step_configs_alter(self) -> None:
        mine = ("--alter", "--entity-type", "topics", "--entity-name", self.topic)
        self.run(CONFIGS, *mine, "--add-config", "retention.ms=3600000,cleanup.policy=[compact,delete]")
        answer = self.configs()
        expect("retention.ms=3600000" in answer and "cleanup.policy=compact,delete" in answer, answer)
        self.run(CONFIGS, *mine, "--delete-config", "retention.ms,cleanup.policy")
        answer = self.configs()
        expect("retention.ms" not in answer and "segment.bytes=2097152" in answer, answer)

    def step_configs_quotas(self) -> None:
        client = ("--entity-type", "clients", "--entity-name", self.topic)
        self.run(CONFIGS, "--alter", *client, "--add-config", "producer_byte_rate=1000000,request_percentage=12.5")
        answer = self.run(CONFIGS, "--describe", *client)
        expect(f"for client-id '{self.topic}'" in answer, answer)
        expect("producer_byte_rate=1000000.0" in answer and "request_percentage=12.5" in answer, answer)
        self.run(CONFIGS, "--alter", *client, "--delete-config", "producer_byte_rate,request_percentage")

    def step_topics_alter(self) -> None:
        self.run(TOPICS, "--alter", "--topic", self.topic, "--partitions", "4")
        expect("PartitionCount: 4" in self.run(TOPICS, "--describe", "--topic", self.topic), "not altered")

    def step_producer_perf_test(self) -> str:
        load = ("--num-records", "20000", "--record-size", "100", "--throughput", "-1")
        answer = self.run(f"{TOOLS}.ProducerPerformance", "--topic", self.topic, *load)
        expect("20000 records sent" in answer, answer)
        return answer.strip().splitlines()[-1]

    def step_consumer_perf_test(self) -> str:
        answer = self.run(f"{TOOLS}.ConsumerPerformance", "--topic", self.topic, "--num-records", "20000")
        return answer.strip().splitlines()[-1]

    def step_log_dirs_describe(self) -> None:
        answer = self.run(f"{TOOLS}.LogDirsCommand", "--describe", "--topic-list", self.topic)
        described = json.loads(answer.strip().splitlines()[-1])
        partitions = [p["partition"] for b in described["brokers"] for d in b["logDirs"] for p in d["partitions"]]
        expect(len(partitions) == 4 * min(self.brokers, 3), described)

    def step_delete_records(self) -> None:
        offsets = {"version": 1, "partitions": [{"topic": self.topic, "partition": 0, "offset": 5}]}
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "offsets.json"
            file.write_text(json.dumps(offsets))
            self.run(f"{TOOLS}.DeleteRecordsCommand", "--offset-json-file", str(file))
        expect(self.offsets("--time", "earliest")[0] == 5, "earliest offset")

    def step_topics_delete(self) -> None:
        self.run(TOPICS, "--delete", "--topic", self.topic)
        until(lambda: self.topic not in self.topics(), lambda: "still listed")


def step_of(tools: Tools, name: str) -> Callable[[], object]:
    """The step by its name."""
    if name.removeprefix("console_producer_") in CODECS:
        return lambda: tools.step_console_producer(name.removeprefix("console_producer_"))
    step: Callable[[], object] = getattr(tools, f"step_{name}")
    return step


def play(libs: str, bootstrap: str, brokers: int, topic: str) -> Report:
    """Play all steps with the tools of a folder of jars."""
    report = Report()
    tools = Tools(libs, bootstrap, brokers, topic, report)
    for name in TOOL_STEPS:
        report.step(name, step_of(tools, name))
    return report
