"""Benthos 4.27: a pipeline from one topic to another, through franz-go and through Sarama."""

from pathlib import Path

import pytest

from tests.ecosystem.cluster import Cluster
from tests.ecosystem.programs import fetch, running, until

pytestmark = [pytest.mark.nightly, pytest.mark.interop, pytest.mark.timeout(900)]

PIPELINE = """
http:
  enabled: false
input:
  {input}
    topics: [orders]
    consumer_group: benthos
    commit_period: 100ms
pipeline:
  threads: 1
  processors:
    - mapping: root = content().uppercase()
output:
  {output}
    topic: loud
    key: ${{! meta("kafka_key") }}
    max_in_flight: 1
    {writes}
"""
FRANZ_GO = "kafka_franz:\n    seed_brokers: {brokers}"
SARAMA = "kafka:\n    addresses: {brokers}\n    target_version: 3.6.0"
OLDEST = "\n    start_from_oldest: true"


@pytest.mark.parametrize("component", [FRANZ_GO, SARAMA], ids=["franz-go", "sarama"])
def test_a_pipeline_copies_each_record(component: str, kafka: Cluster, tmp_path: Path) -> None:
    """The answer to an OffsetCommit is lost: each record is in the output, in order, and no lag is left.

    The answer to a Produce as well, where the producer is idempotent: the batch is not there twice. Sarama's, as
    Benthos configures it, cannot be.
    """
    program = fetch("go", "benthos") / "benthos"
    kafka.create({"orders": 3, "loud": 3})
    kafka.write("orders", [(str(number % 10), f"order {number}") for number in range(500)])
    if idempotent := component == FRANZ_GO:
        kafka.lose_answer("Produce")
    kafka.lose_answer("OffsetCommit")
    writes = "idempotent_write: true" if idempotent else "ack_replicas: true"
    one = component.format(brokers=list(kafka.bootstrap.split(",")))
    (tmp_path / "pipeline.yaml").write_text(PIPELINE.format(input=one + OLDEST, output=one, writes=writes))
    with running([str(program), "-c", "pipeline.yaml"], tmp_path) as benthos:
        until(
            lambda: "benthos" in kafka.groups(), benthos, tmp_path
        )  # confluent-kafka 2.16.0 crashes at NOT_COORDINATOR
        until(lambda: kafka.lag("benthos") == {"orders": 0}, benthos, tmp_path)
        kafka.write("orders", [("late", "order 500")])
        until(lambda: any(each.value == "ORDER 500" for each in kafka.read("loud")), benthos, tmp_path)
        until(lambda: kafka.lag("benthos") == {"orders": 0}, benthos, tmp_path)
    by_key: dict[str | None, list[str]] = {}
    for each in kafka.read("loud"):
        by_key.setdefault(each.key, []).append(each.value)
    assert by_key == {
        **{str(key): [f"ORDER {number}" for number in range(500) if number % 10 == key] for key in range(10)},
        "late": ["ORDER 500"],
    }
    assert kafka.unmet() == []
