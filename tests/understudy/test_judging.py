"""`kafka.conformance()`: what the clients of a running cluster did, by the invariants of the protocol."""

import json
from collections.abc import Iterator
from dataclasses import asdict

import pytest
from confluent_kafka import Producer

import understudy
from understudy import judging
from understudy.judging import judge

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def kafka() -> Iterator[understudy.Cluster]:
    """With five batches of an idempotent producer in its journal."""
    with understudy.start(topics={"t": 1}) as cluster:
        assert str(cluster.conformance()) == "0 broken, 0 kept"  # an empty journal
        settings = {"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True, "linger.ms": 0}
        producer = Producer({**settings, "log_level": 0})
        for number in range(5):
            producer.produce("t", str(number).encode())
            assert producer.flush(60) == 0
        yield cluster


def test_a_correct_client_keeps_what_it_could_break(kafka: understudy.Cluster) -> None:
    """What had no occasion is not called kept."""
    report = kafka.conformance()
    assert report.errors == report.broken == ()
    assert "i03-sequence" in report.kept
    assert "i14-outside-transaction" not in report.kept
    assert [each["software"] for each in report.document["clients"]] == ["confluent-kafka-python"]


async def test_the_asynchronous_client_and_other_software(kafka: understudy.Cluster) -> None:
    """The same by `kafka.aio`; a name that no client has is an error, not a good report."""
    assert "i03-sequence" in (await kafka.aio.conformance(software="confluent*")).kept
    with pytest.raises(understudy.ConformanceError, match="holds no request of sarama"):
        await kafka.aio.conformance(software=["sarama"])


def test_requests_before_a_time_are_left_out(kafka: understudy.Cluster) -> None:
    """`since`, for clusters that several tests share."""
    assert kafka.conformance(since=kafka.clock.show().now_ms + 60_000).document == {}


def test_what_a_connection_that_began_earlier_sends_first_is_not_judged(kafka: understudy.Cluster) -> None:
    """A test begins in the middle of a client's life; connections that came later are judged."""
    entries = [asdict(entry) for entry in kafka.journal.find()]
    late = [each for each in entries if each["api"] == "Produce"]
    report = judge(late)
    assert "i02-first-request" not in {*report.kept, *(each.invariant for each in report.broken)}
    highest = max(each["connection"] for each in late)
    greeting = next(each for each in entries if each["api"] == "ApiVersions")
    later = [greeting | {"id": 1_001, "connection": highest + 1}, late[0] | {"id": 1_002, "connection": highest + 2}]
    (broken,) = [each for each in judge([*late, *later]).broken if each.invariant == "i02-first-request"]
    assert [each["id"] for each in broken.rows] == [1_002]


def test_an_examination_that_takes_too_long_is_an_error_of_this_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exam that takes too long is ended, and raises this package's error."""
    monkeypatch.setattr(judging, "LIMIT_S", 0.01)
    with pytest.raises(understudy.ConformanceError, match=r"1 requests could not be examined in 0\.01 s"):
        judge([{"id": 1}])


def test_a_gap_in_a_sequence_is_named(kafka: understudy.Cluster) -> None:
    """The invariant, the client and the request."""
    entries = [asdict(entry) for entry in kafka.journal.find()]
    text = json.dumps(entries)
    assert text.count('"base_sequence": 3') == 1
    report = judge(json.loads(text.replace('"base_sequence": 3', '"base_sequence": 7')))
    assert "i03-sequence" in [each.invariant for each in report.errors]
    assert "i03-sequence" not in report.kept
    (line,) = [each for each in str(report).splitlines() if "i03-sequence" in each and "base_sequence 7" in each]
    assert line.startswith("ERROR i03-sequence: ")
    assert "confluent-kafka-python" in line


def test_what_is_no_journal_is_an_error() -> None:
    """As is a package that is missing: with the command's sentence."""
    with pytest.raises(understudy.ConformanceError, match="no journal there"):
        judge([{"id": 1}])


def test_repr_names_the_cluster_and_how_it_was_started() -> None:
    """Without secrets: the token, and settings, which may be passwords."""
    with understudy.start(brokers=2, control_token="secret", settings={"log.retention.ms": 77}) as kafka:
        text = repr(kafka)
        assert kafka.bootstrap_servers in text
        assert kafka.control_url in text
        assert "--brokers 2" in text
        assert kafka.process is not None
        assert text.endswith(f", process {kafka.process.ready.pid}>")
        assert "secret" not in text
        assert "log.retention" not in text
        assert repr(kafka.aio).replace("AsyncCluster", "Cluster") == text
        other = repr(understudy.connect(kafka.control_url, "secret"))
        assert "process" not in other
        assert kafka.bootstrap_servers in other
    assert repr(kafka).endswith("which has ended>")
