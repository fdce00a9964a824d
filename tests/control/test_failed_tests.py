"""What the report of a failed test has of a cluster to which clients are still connected."""

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from tests.control.harness import ControlPlane
from tests.serving import until
from understudy.pytest_plugin import story
from understudy.pytest_pool import Pool


def test_requests_that_are_being_served_and_polls_do_not_hide_the_others(plane: ControlPlane) -> None:
    """A consumer waits in long polls, as any consumer does while a test fails; its name is no order to a terminal."""
    settings = {"group.id": "g", "client.id": "evil\x1b[2J", "fetch.wait.max.ms": 20, "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": plane.bootstrap, **settings})
    consumer.subscribe(["u"])
    plane.kafka.topics["u"].write("v")
    until(lambda: consumer.poll(0.1), "a record")
    waiting = Producer({"bootstrap.servers": plane.bootstrap, "transactional.id": "x"})
    fault = plane.kafka.faults.add(api="InitProducerId", delay_ms=60_000)
    with pytest.raises(KafkaException):
        waiting.init_transactions(0.001)
    until(lambda: plane.kafka.journal.find(api="InitProducerId"), "the request")
    until(lambda: len(plane.kafka.journal.find(api="Fetch")) > 20, "polls")

    answer = dict(story(plane.kafka, Pool()))

    lines = answer["last requests"].splitlines()
    assert [line for line in lines if "JoinGroup" in line and r"evil\x1b[2J:" in line and "-> ok (" in line]
    late = [line for line in lines if "InitProducerId" in line]
    assert [line for line in late if line.endswith(f"-> is being served [fault {fault.id}]")] == late != []
    assert [line for line in lines if " Fetch v" in line] == []
    assert "the cluster does not answer" not in answer
    consumer.close()
