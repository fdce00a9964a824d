"""A row of the Java client: Kafka's own producer-perf-test with its default settings."""

import re
import subprocess

from benchmarks.row import STORING, Figure, Goal, Scale, ServerRow, Values
from benchmarks.targets import Server, kafka_libs

_TIMEOUT_S = 120


def _perf_test(server: Server, topic: str, scale: Scale, _first: bool) -> Values:
    """Produce records of 1 kB, acks=all and idempotent, in batches of 16 kB: sixteen records each."""
    count = scale.of(400_000, 10_000)
    server.create_topic(topic)
    done = subprocess.run(
        [
            *("java", "-Xmx512M", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", f"{kafka_libs()}/*"),
            *("org.apache.kafka.tools.ProducerPerformance", "--bootstrap-server", server.bootstrap),
            *("--topic", topic, "--num-records", str(count), "--record-size", "1000", "--throughput", "-1"),
        ],
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    last = done.stdout.strip().rpartition("\n")[2]
    match = re.match(rf"{count} records sent, ([\d.]+) records/sec .*, ([\d.]+) ms avg latency", last)
    if match is None:
        raise AssertionError(f"producer-perf-test ended with {done.returncode}: {(last + done.stderr)[-200:]}")
    server.delete_topic(topic)
    return {"java_produce_1k": float(match[1])}


ROWS = (
    ServerRow(
        "java_produce_1k",
        (
            Figure(
                "java_produce_1k",
                "produce 1 kB, Java's producer-perf-test",
                "msg/s",
                goal=Goal(of_kfake=1.0),
            ),
        ),
        _perf_test,
        targets=STORING,
    ),
)
