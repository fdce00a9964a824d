"""The metrics, counted against what was done, and the dashboard, checked against the metrics that are there."""

import json
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from prometheus_client.parser import text_string_to_metric_families

from control_api.verbs import BY_NAME
from tests.control.harness import ControlPlane
from tests.serving import until

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "docs" / "grafana-dashboard.json"
ADDED = {"instance", "le", "job"}
"""Labels that the scraper adds, or that belong to histograms."""


class Samples:
    """The samples of one scrape."""

    def __init__(self, plane: ControlPlane) -> None:
        families = list(text_string_to_metric_families(plane.kafka.metrics()))
        self.types = {family.name: family.type for family in families}
        self.all = [sample for family in families for sample in family.samples]
        self.labels: dict[str, set[str]] = {}
        for sample in self.all:
            self.labels.setdefault(sample.name, set()).update(sample.labels)

    def value(self, name: str, **labels: str) -> float:
        """The value of one sample; 0 where there is none, as `rate` takes it."""
        values = [each.value for each in self.all if each.name == name and each.labels == labels]
        assert len(values) <= 1, f"{name}{labels} is there {len(values)} times"
        return values[0] if values else 0.0


@pytest.fixture
def busy(plane: ControlPlane) -> ControlPlane:
    """With records, a lagging group, an open transaction, a fault that was met, and an error."""
    producer = Producer({"bootstrap.servers": plane.bootstrap, "transactional.id": "x"})
    producer.init_transactions(60)
    producer.begin_transaction()
    for number in range(5):
        producer.produce("t", str(number), partition=number % 2)
    producer.flush(60)
    with plane.kafka.faults.add(api="OffsetFetch", error="COORDINATOR_LOAD_IN_PROGRESS") as fault:
        consumer = Consumer({"bootstrap.servers": plane.bootstrap, "group.id": "g"})
        consumer.commit(offsets=[TopicPartition("t", 0, 1), TopicPartition("t", 1, 2)], asynchronous=False)
        consumer.committed([TopicPartition("t", 0)], timeout=60)
        consumer.close()
        fault.wait_hits(1)
    return plane


def test_requests_are_counted_with_their_errors_latencies_and_faults(busy: ControlPlane) -> None:
    """As the journal has them; the counters go on when it is cleared."""
    before = Samples(busy)  # the server's counters begin with its process, which other tests have used
    busy.kafka.journal.clear()
    fault = busy.kafka.faults.add(api="Metadata", times=2, error="REBOOTSTRAP_REQUIRED", optional=True)
    with fault, suppress(KafkaException):  # whether the client tries again is its own matter
        Producer({"bootstrap.servers": busy.bootstrap}).list_topics(timeout=60)
    after = Samples(busy)
    entries = busy.kafka.journal.find()
    served = Counter(entry.api for entry in entries if entry.duration_ms is not None)
    failed = Counter((entry.api, entry.error) for entry in entries if entry.error is not None)
    assert served["Metadata"] > 0

    def grown(name: str, **labels: str) -> float:
        return after.value(name, **labels) - before.value(name, **labels)

    for api, count in served.items():
        assert grown("understudy_requests_total", api=api) == count
        assert grown("understudy_request_duration_seconds_count", api=api) == count
        assert grown("understudy_request_duration_seconds_bucket", api=api, le="+Inf") == count
    for (api, error), count in failed.items():
        assert grown("understudy_request_errors_total", api=api, error=error) >= count > 0
    assert failed["Metadata", "REBOOTSTRAP_REQUIRED"] > 0
    met = sum(entry.fault is not None for entry in entries)
    assert grown("understudy_faulted_requests_total", api="Metadata") == met > 0


def test_errors_of_single_partitions_are_counted(plane: ControlPlane) -> None:
    """Each code once per answer, however many partitions have it."""
    labels = {"api": "Produce", "error": "NOT_ENOUGH_REPLICAS"}
    before = Samples(plane).value("understudy_request_errors_total", **labels)
    producer = Producer({"bootstrap.servers": plane.bootstrap, "linger.ms": 50, "retries": 9, "retry.backoff.ms": 10})
    with plane.kafka.faults.add(api="Produce", error="NOT_ENOUGH_REPLICAS", times=2):
        for partition in (0, 1):
            producer.produce("t", "v", partition=partition)
        assert producer.flush(60) == 0
    assert Samples(plane).value("understudy_request_errors_total", **labels) - before == 2


def test_groups_and_partitions_have_the_names_of_the_common_exporter(busy: ControlPlane) -> None:
    """Metrics of groups and partitions have the names that boards for Kafka query."""
    samples = Samples(busy)
    assert {index: samples.value("kafka_consumergroup_lag", consumergroup="g", topic="t", partition=index)
            for index in "01"} == {"0": 2, "1": 0}  # fmt: skip
    assert samples.value("kafka_consumergroup_current_offset", consumergroup="g", topic="t", partition="1") == 2
    assert samples.value("kafka_topic_partition_current_offset", topic="t", partition="0") == 3
    assert samples.value("kafka_topic_partitions", topic="t") == 2
    assert samples.value("kafka_brokers") == 1
    assert samples.types["kafka_consumergroup_lag"] == "gauge"


def test_open_transactions_have_an_age_by_the_clock_of_the_cluster(busy: ControlPlane) -> None:
    """It grows with the clock, and ends with the transaction."""
    busy.kafka.clock.freeze()
    busy.kafka.clock.advance(seconds=30)
    samples = Samples(busy)
    assert samples.value("understudy_open_transactions") == 1
    assert samples.value("understudy_oldest_open_transaction_seconds") >= 30
    busy.kafka.transactions["x"].abort()
    until(lambda: Samples(busy).value("understudy_open_transactions") == 0, "the end of the transaction")
    assert Samples(busy).value("understudy_oldest_open_transaction_seconds") == 0


def test_memory_is_measured(plane: ControlPlane) -> None:
    """Under the name that Prometheus' own clients use."""
    assert 10_000_000 < Samples(plane).value("process_resident_memory_bytes") < 4_000_000_000


# --- the dashboard ---------------------------------------------------------------------------------------------------


def expressions(board: dict[str, Any]) -> list[str]:
    """The queries of all panels and variables."""
    panels = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    return panels + [each["definition"] for each in board["templating"]["list"] if "definition" in each]


def wrong(expression: str, labels: dict[str, set[str]]) -> list[str]:
    """The metrics and labels of a query that are not exported."""
    unknown = []
    names = re.findall(r"\b(?:understudy|kafka|process)_\w+", expression)
    known = set().union(*(labels.get(name, set()) for name in names)) | ADDED
    unknown += [name for name in names if name not in labels]
    for listed in re.findall(r"by \(([^)]*)\)", expression):
        unknown += [name for name in re.split(r",\s*", listed) if name not in known]
    for name in re.findall(r"[{,]\s*(\w+)=~?\"", expression):
        unknown += [name] * (name not in known)
    return unknown


def test_the_dashboard_asks_for_metrics_that_are_exported(busy: ControlPlane) -> None:
    """Each name and each label, of every panel and variable."""
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    labels = Samples(busy).labels
    queries = expressions(board)
    assert len(queries) > 20
    assert {expression: wrong(expression, labels) for expression in queries if wrong(expression, labels)} == {}
    assert wrong('sum by (apy) (understudy_request_total{instnce=~"x"})', labels) == [
        *("understudy_request_total", "apy", "instnce"),
    ]


def test_the_dashboard_is_one_that_grafana_can_import() -> None:
    """Ids that differ, panels that do not overlap, a legend whose labels the query keeps."""
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    panels = board["panels"]
    assert {"title", "uid", "schemaVersion", "panels", "templating", "time"} <= board.keys()
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}  # fmt: skip
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    for panel in panels:
        for target in panel.get("targets", ()):
            kept = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", target["expr"])))) | {"instance"}
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= kept, panel["title"]


def test_the_documentation_lists_every_metric(busy: ControlPlane) -> None:
    """The documentation lists every metric that is served, and no other."""
    text = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `((?:understudy|kafka)_\w+)`", text, re.MULTILINE)
    exported = {name for name in Samples(busy).labels if not name.startswith("process_")}
    histogram = {f"understudy_request_duration_seconds{end}" for end in ("_bucket", "_count", "_sum")}
    assert set(rows) == exported - histogram | {"understudy_request_duration_seconds"}
    assert BY_NAME["metrics"].path in text
