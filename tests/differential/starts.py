"""Settings with which a broker starts or does not: random ones, asked of Kafka's own classes without a broker.

``python -m tests.differential.starts SEED COUNT`` prints the sets of which one side refuses to start. With ``--record``
it writes the answers to ``starts.json``, for the tests that have no Java.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

from broker.options import OptionError, parse
from tools.compact_json import dumps
from tools.old_kafka import fetch

HERE = Path(__file__).parent
RECORDED = HERE / "starts.json"
HEAP_MB = 256
RELEASE = "4.4"
BASE = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
}
"""What every real broker has; the sets below replace some of it."""

_NUMBERS = "0 -1 1 +5 5.0 1e3 0x10 '' abc 007 2147483647 2147483648 -2147483649 ٣ 5_000 1L --1"
_ANY_NUMBERS = (
    "num.partitions",
    "min.insync.replicas",
    "offsets.retention.minutes",
    "transaction.max.timeout.ms",
    "transaction.state.log.replication.factor",
    "quota.window.num",
    "num.io.threads",
    "message.max.bytes",
    "delegation.token.expiry.time.ms",
    "metadata.log.max.snapshot.interval.ms",
    "max.connections",
)
_OF_GROUPS = {
    "{0}.heartbeat.interval.ms": "4999 5000 15000 15001 44999 45000",
    "{0}.min.heartbeat.interval.ms": "1 4999 5001 15001",
    "{0}.max.heartbeat.interval.ms": "4999 5000 44999 60000",
    "{0}.session.timeout.ms": "5000 5001 44999 45000 60001",
    "{0}.min.session.timeout.ms": "1 5000 44999 45001 60001",
    "{0}.max.session.timeout.ms": "44999 45000 600000",
    "{0}.assignment.interval.ms": "0 999 15001",
    "{0}.min.assignment.interval.ms": "0 1000 1001 15001",
    "{0}.max.assignment.interval.ms": "0 999 1000",
}
_LISTENERS = "PLAINTEXT://:9092 A://:9094 a://127.0.0.1:9094 A://[::1]:9094 A://0.0.0.0:9095 SSL://h:9096 A: A://h:x"
FAMILIES: Sequence[Mapping[str, str]] = (
    *({name.format(f"group.{kind}"): texts for name, texts in _OF_GROUPS.items()} for kind in ("consumer", "streams")),
    {
        **{name.format("group.share"): texts for name, texts in _OF_GROUPS.items()},
        "group.share.max.size": "1 200 1000 1001",
        "group.share.max.share.sessions": "1 199 200 2000",
    },
    {
        "group.share.delivery.count.limit": "1 2 5 10 11",
        "group.share.min.delivery.count.limit": "1 2 5 6",
        "group.share.max.delivery.count.limit": "4 5 25 26",
        "group.share.record.lock.duration.ms": "1000 14999 15000 60000 60001",
        "group.share.min.record.lock.duration.ms": "999 1000 30000 30001",
        "group.share.max.record.lock.duration.ms": "29999 30000 3600000",
        "group.share.partition.max.record.locks": "99 100 2000 4000 4001",
        "group.share.min.partition.max.record.locks": "100 2000 2001",
        "group.share.max.partition.max.record.locks": "1999 2000 10000",
    },
    {
        "group.streams.num.standby.replicas": "0 1 2 3",
        "group.streams.max.standby.replicas": "0 1 3",
        "group.streams.num.warmup.replicas": "0 2 20 21",
        "group.streams.max.warmup.replicas": "0 1 2 21",
        "group.streams.task.offset.interval.ms": "1 14999 15000",
        "group.streams.min.task.offset.interval.ms": "1 15001 60001",
        "group.streams.assignors": "sticky sticky,sticky a '' ,",
        "group.streams.rack.aware.assignment.tags": "'' a a,a a,b ,",
        "group.consumer.assignors": "uniform range range,range Uniform foo '' ,",
        "group.share.assignors": "simple simple,simple range '' simple,range",
        "group.coordinator.rebalance.protocols": "classic consumer classic,share CLASSIC '' classic,classic foo",
    },
    {
        "log.roll.ms": "-1 0 1",
        "log.roll.hours": "-1 0 1 2147483647",
        "log.roll.jitter.ms": "-1 0 5",
        "log.roll.jitter.hours": "-1 0 1",
        "log.retention.ms": "-2 -1 0 1",
        "log.retention.minutes": "-1 0 1",
        "log.retention.hours": "-1 0 1 2147483647",
        "log.segment.bytes": "14 1048575 1048576",
        "log.index.size.max.bytes": "3 4",
        "log.flush.interval.ms": "-1 0 1",
        "log.flush.scheduler.interval.ms": "-1 0",
        "log.cleanup.policy": "compact delete '' compact,delete delete,delete Compact",
        "compression.type": "gzip GZIP none producer ''",
    },
    {
        "log.cleaner.threads": "0 1 127 128",
        "log.cleaner.dedupe.buffer.size": "1048576 1048577 2097153",
        "log.cleaner.min.compaction.lag.ms": "0 5 6",
        "log.cleaner.max.compaction.lag.ms": "1 5",
        "log.cleaner.min.cleanable.ratio": "-0.1 0 1 1.1 NaN .5",
        "log.dirs": "/a /a,/b '' , /a,/a",
        "cordoned.log.dirs": "'' /a /a,/b * *,/a /c",
        "remote.log.storage.system.enable": "true false TRUE yes",
        "log.local.retention.ms": "-3 -2 -1 0 604800001",
        "log.local.retention.bytes": "-2 -1 0 5",
        "log.remote.copy.lag.ms": "-2 -1 0 5",
        "log.retention.bytes": "-1 4 5",
    },
    {
        "replica.fetch.wait.max.ms": "0 499 30000 30001",
        "replica.socket.timeout.ms": "499 500 30000",
        "replica.lag.time.max.ms": "499 500 30000",
        "queued.max.request.bytes": "-1 0 1 104857600",
        "socket.request.max.bytes": "0 1 104857601",
        "offsets.topic.compression.codec": "-1 0 4 5",
        "share.coordinator.state.topic.compression.codec": "-1 4 5",
        "connections.max.idle.ms": "-1 0 100 101",
        "connection.failed.authentication.delay.ms": "-1 0 100 600000",
        "max.connections.per.ip": "-1 0 1",
        "max.connections.per.ip.overrides": "'' h:5 h a:b h:-5 [::1]:7 ::1:5 h:5, ,h:5 h:5,h:6 ho*st:5 h:9999999999",
    },
    {
        **dict.fromkeys(_ANY_NUMBERS, _NUMBERS),
        "node.id": "1 -1 x ''",
        "broker.id": "1 2 -1 x",
        "auto.create.topics.enable": "true TRUE yes 1 ''",
        "ssl.client.auth": "none NONE required ''",
        "security.inter.broker.protocol": "PLAINTEXT plaintext SSL",
        "early.start.listeners": "'' CONTROLLER PLAINTEXT X plaintext ,",
    },
)


def sets(seed: int, count: int) -> Iterator[dict[str, str]]:
    """Generate settings: some of one family, or listeners with what refers to them."""
    rng = Random(seed)
    for _ in range(count):
        chosen = rng.randrange(len(FAMILIES) + 3)
        if chosen >= len(FAMILIES):
            yield _with_listeners(rng)
            continue
        family = FAMILIES[chosen]
        names = rng.sample(sorted(family), rng.randint(1, min(4, len(family))))
        yield {name: rng.choice(family[name].split()).strip("'") for name in names}


def _with_listeners(rng: Random) -> dict[str, str]:
    """Choose listeners; Kafka's default for the one between brokers fits them, since it does not matter here."""
    own = rng.sample(_LISTENERS.split(), rng.randint(1, 3))
    settings = {"listeners": ",".join([*own, "CONTROLLER://:9093"])}
    if rng.random() < 0.7:
        entries = ["A:PLAINTEXT", "SSL:PLAINTEXT", "PLAINTEXT:PLAINTEXT", "a:PLAINTEXT", "A:TLS", "B", "CONTROLLER:SSL"]
        settings["listener.security.protocol.map"] = ",".join([*rng.sample(entries, 3), "CONTROLLER:PLAINTEXT"])
    if rng.random() < 0.5:
        settings["advertised.listeners"] = ",".join(rng.sample(_LISTENERS.split(), rng.randint(1, 2)))
    if rng.random() < 0.3:
        settings["security.inter.broker.protocol"] = rng.choice(["PLAINTEXT", "SSL", "SASL_PLAINTEXT"])
    if "security.inter.broker.protocol" not in settings or rng.random() < 0.1:
        settings["inter.broker.listener.name"] = rng.choice(["A", "a", "PLAINTEXT", "SSL", "X", "CONTROLLER"])
    return settings


def asked_of_kafka(questions: Sequence[Mapping[str, str]]) -> list[str]:
    """Return "ok" or the reason for which Kafka does not start, for each set."""
    lines = "".join(json.dumps(BASE | dict(each)) + "\n" for each in questions)
    command = ["java", f"-Xmx{HEAP_MB}m", "-cp", f"{fetch(RELEASE)}/*", str(HERE / "java" / "Starts.java")]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def asked_of_understudy(question: Mapping[str, str]) -> str:
    """Return "ok" or the reason for which a server of ours does not start, with the set in its server.properties."""
    try:
        parse({"properties": [f"{name}={text}" for name, text in (BASE | dict(question)).items()]})
    except OptionError as error:
        return str(error)
    return "ok"


def differences(questions: Sequence[Mapping[str, str]], kafka: Sequence[str]) -> list[str]:
    """Return the sets with which only one of both starts."""
    differing = []
    for question, answer in zip(questions, kafka, strict=True):
        ours = asked_of_understudy(question)
        if (ours == "ok") is not (answer == "ok"):
            differing.append(f"{json.dumps(question)}\n  Kafka: {answer}\n  Understudy: {ours}")
    return differing


def main(seed: int, count: int, *, record: bool) -> int:
    """Compare, and record Kafka's answers if wanted; return 1 if there are differences."""
    questions = list(sets(seed, count))
    kafka = asked_of_kafka(questions)
    if record:
        answers = [[question, answer == "ok"] for question, answer in zip(questions, kafka, strict=True)]
        RECORDED.write_text(dumps(answers), encoding="utf-8")
    differing = differences(questions, kafka)
    sys.stdout.write(
        "\n".join([*differing, f"{len(differing)} of {count} differ; Kafka starts with {kafka.count('ok')}\n"])
    )
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), record="--record" in sys.argv))
