"""`GET /v1/overview`, beside real clients: what happens in the cluster, at one glance."""

from urllib.parse import urlencode

import pytest
from confluent_kafka import Consumer, KafkaException, Message, Producer

from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane
from tests.serving import until


def transactor(plane: ControlPlane, client_id: str) -> Producer:
    """A producer of the transactional id x with a record in t-0."""
    settings = {"bootstrap.servers": plane.bootstrap, "transactional.id": "x", "client.id": client_id}
    producer = Producer(settings)
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("t", b"v", partition=0)
    assert producer.flush(60) == 0
    return producer


@pytest.mark.verb("overview")
def test_errors_refusals_and_open_transactions(plane: ControlPlane) -> None:
    """By API and code, with the request to look at; why, and of which id; what a transaction is held at."""
    first = transactor(plane, "first")
    transactor(plane, "second")
    with pytest.raises(KafkaException):
        first.commit_transaction(60)
    plane.kafka.transactions["x"].hold("markers")

    overview = plane.kafka.overview()

    (counted,) = [each for each in overview.counted_errors if each.api == "EndTxn"]
    assert (counted.error, counted.count, counted.client_id) == ("INVALID_PRODUCER_EPOCH", 1, "first")
    assert plane.kafka.journal.find(id=counted.entry)[0].error == "INVALID_PRODUCER_EPOCH"
    (refusal,) = overview.refusals
    assert (refusal.kind, refusal.name, refusal.error) == ("transactions", "x", "INVALID_PRODUCER_EPOCH")
    assert refusal.why.startswith("fenced: at ")
    (open_one,) = overview.transactions
    assert (open_one.transactional_id, open_one.state, open_one.partitions) == ("x", "Ongoing", 1)
    assert (open_one.held_at, open_one.stopped) == ("markers", False)
    assert open_one.deadline_ms == plane.kafka.transactions["x"].show().deadline_ms


def test_a_refused_id_is_shown_beside_any_number_of_others(plane: ControlPlane) -> None:
    """Sixty ids that were used afterwards, without an error, moved it out of the list and out of the report."""
    first = transactor(plane, "first")
    transactor(plane, "second")
    with pytest.raises(KafkaException):
        first.commit_transaction(60)
    for number in range(60):
        settings = {"bootstrap.servers": plane.bootstrap, "transactional.id": f"other-{number}"}
        Producer(settings).init_transactions(60)
    (refusal,) = plane.kafka.overview().refusals
    assert (refusal.name, refusal.error) == ("x", "INVALID_PRODUCER_EPOCH")
    report = plane.kafka.report()
    assert [each.subject for each in report.refusals] == ["transactional id x"]
    assert report.diagrams[0].startswith("Transactional id x")


def test_the_errors_that_are_counted_are_found_in_the_journal(plane: ControlPlane) -> None:
    """As many as the page shows, all of them and by API and code; a request that is never answered is one."""
    plane.kafka.faults.add(api="EndTxn", drop=True, times=1)
    first = transactor(plane, "first")
    with pytest.raises(KafkaException):
        first.commit_transaction(1)
    transactor(plane, "second")
    overview = plane.kafka.overview()
    since = overview.first_entry
    assert since is not None
    assert overview.errors == len(plane.kafka.journal.find(errors=True, since=since)) >= 1
    dropped = [each for each in overview.counted_errors if each.outcome]
    assert [(each.api, each.error, each.count) for each in dropped] == [("EndTxn", "never answered", 1)]
    for each in overview.counted_errors:
        query = urlencode({"api": each.api, "since": since, "outcome" if each.outcome else "error": each.error})
        assert len(plane.http("GET", f"/v1/journal?{query}")["entries"]) == each.count
    listed = plane.ctl_text("journal", "list", "--errors", "--outcome", "never answered")
    assert "EndTxn" in listed
    assert len(listed.splitlines()) == len(plane.ctl_text("journal", "list", "--id", "0").splitlines()) + 1


def test_clients_topics_and_groups(plane: ControlPlane) -> None:
    """Software and versions of each client; requests of each topic, also where they have its id alone; the lag."""
    producer = Producer({"bootstrap.servers": plane.bootstrap, "client.id": "writer"})
    for _ in range(3):
        producer.produce("t", b"v", partition=1)
    assert producer.flush(60) == 0
    settings = {"group.id": "g", "client.id": "reader", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": plane.bootstrap, **settings})
    consumer.subscribe(["t"])
    record: Message = until(lambda: consumer.poll(0.1), "a record")
    consumer.commit(record, asynchronous=False)  # type: ignore[call-overload]  # a message is one of its arguments

    overview = plane.kafka.overview()

    clients = {each.client_id: each for each in overview.clients}
    assert {"reader", "writer"} <= set(clients)
    assert clients["writer"].software.startswith("confluent-kafka-python ")
    assert any(each.startswith("Produce v") for each in clients["writer"].apis)
    assert not any(each.startswith("Produce v") for each in clients["reader"].apis)
    assert clients["reader"].open >= 1
    assert {each.name for each in overview.topics} >= {"t"}
    assert [(each.group_id, each.members, each.lag) for each in overview.groups] == [("g", 1, 2)]
    assert overview.requests == sum(overview.series) == sum(each.requests for each in overview.apis)
    assert len(overview.series) * overview.step_ms == overview.window_ms
    consumer.close()
    del producer
    until(lambda: not [each for each in plane.kafka.overview().clients if each.open and each.client_id == "writer"],
          "a closed connection", 20)  # fmt: skip


def test_each_request_is_counted_once_until_the_journal_is_cleared(plane: ControlPlane) -> None:
    """The overview counts each request once, however often it is read, until the journal is cleared."""
    admin = Producer({"bootstrap.servers": plane.bootstrap, "client.id": "asker"})
    counts = []
    for _ in range(3):
        admin.list_topics(timeout=60)
        counts.append(sum(each.requests for each in plane.kafka.overview().apis if each.name == "Metadata"))
    assert counts == sorted(set(counts))
    (asker,) = [each for each in plane.kafka.overview().clients if each.client_id == "asker"]
    assert asker.requests == len(plane.kafka.journal.find(client_id="asker"))
    plane.kafka.journal.clear()
    assert [each for each in plane.kafka.overview().clients if each.client_id == "asker"] == []


def test_faults_and_other_things_that_were_changed_on_purpose(plane_of: ControlPlaneOf) -> None:
    """A frozen clock, a broker that is down or paused, a replica that replicates nothing."""
    plane = plane_of(brokers=3, topics=["t:1"], settings={"default.replication.factor": 3})
    assert plane.kafka.overview().oddities == ()
    fault = plane.kafka.faults.add(api="Produce", drop=True, optional=True)
    part = plane.kafka.topics["t"].partitions[0]
    part.move_leader(1)
    plane.http("POST", "/v1/topics/t/partitions/0/isr", {"replicas": [1, 2, 3], "held": [2]})
    plane.kafka.clock.freeze()
    plane.kafka.brokers[3].pause()

    overview = plane.kafka.overview()

    assert [each.id for each in overview.faults] == [fault.id]
    assert overview.oddities == ("the clock is frozen", "broker 3 is paused", "t-0: replicas on 2 do not replicate")
    plane.kafka.brokers[3].resume()
    plane.kafka.brokers[3].kill()
    assert "broker 3 is down" in plane.kafka.overview().oddities
