"""A whole cluster goes from Apache Kafka to Understudy: first only to be looked at, then for good."""

import contextlib

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in its __all__

from storage.checkpoints import CLEANER, decode_offsets
from tests.storage.test_read_only import fingerprint
from tests.swap.contents import COMPACTED, GROUPS, check_gone_on, fill, go_on, set_configs
from tests.swap.looking import PATIENCE_S, UNCOMMITTED, look, patiently
from tests.swap.nodes import Node

pytestmark = [pytest.mark.interop, pytest.mark.timeout(240)]
LOOKED_AT = (*GROUPS, "consumer")


def compact(node: Node) -> None:
    """Let Kafka clean all that can be cleaned, and nothing after that."""
    active: dict[tuple[str, int], int] = {}
    for name in COMPACTED:
        for path in node.data.glob(f"{name}-*/*.log"):
            at = (name, int(path.parent.name.rpartition("-")[2]))
            active[at] = max(active.get(at, 0), int(path.stem))
    dirty = {at: base for at, base in active.items() if base}

    def clean_to() -> dict[tuple[str, int], int]:
        with contextlib.suppress(FileNotFoundError):
            return {at: to for at, to in decode_offsets((node.data / CLEANER).read_bytes()).items() if at in dirty}
        return {}

    set_configs(node.bootstrap, COMPACTED, {"min.cleanable.dirty.ratio": "0.001"})
    assert patiently(clean_to, lambda seen: seen == dirty) == dirty
    set_configs(node.bootstrap, COMPACTED, {"min.cleanable.dirty.ratio": "1"})


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_we_go_on_with_what_kafka_wrote(node: Node, clean: bool) -> None:
    """Same answers read-only and for good; then the clients go on, and Kafka after us."""
    node.start_kafka()
    clients = fill(node.bootstrap, ("classic", "consumer"))
    clients.members.pop("consumer").consumer.close()
    compact(node)
    reported = look(node.bootstrap, LOOKED_AT)
    assert len(reported.records["compacted", 0, UNCOMMITTED]) < reported.bounds["compacted", 0, UNCOMMITTED][1] / 2
    node.stop(clean=clean)
    assert list(node.data.glob("__cluster_metadata-0/*.checkpoint"))
    before = fingerprint(node.data)
    node.start_ours(read_only=True)
    assert look(node.bootstrap, LOOKED_AT) == reported
    node.stop()
    assert fingerprint(node.data) == before
    node.start_ours()
    assert look(node.bootstrap, LOOKED_AT) == reported
    go_on(clients)
    after = look(node.bootstrap, LOOKED_AT)
    check_gone_on(reported, after)
    node.stop()
    node.start_kafka()
    assert look(node.bootstrap, LOOKED_AT) == after
    assert node.kafka_complaints() == []
    clients.close()


def refusal_of(producer: Producer) -> str:
    """The error of a producer that tries to write."""
    reported: list[str] = []
    producer.produce("t", b"x", partition=0, on_delivery=lambda error, _: reported.append(str(error)))
    assert producer.flush(PATIENCE_S) == 0
    return reported[0]


def test_a_reader_is_served_and_a_writer_is_refused(bare_node: Node) -> None:
    """Read-only: records, members and commits as ever; POLICY_VIOLATION, at once, for changes to a topic."""
    node = bare_node
    node.start_ours()
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    for creation in admin.create_topics([NewTopic("t", 1, 1)]).values():
        creation.result(PATIENCE_S)
    producer = Producer({"bootstrap.servers": node.bootstrap})
    producer.produce("t", b"there")
    assert producer.flush(PATIENCE_S) == 0
    node.stop()
    before = fingerprint(node.data)
    server = node.start_ours(read_only=True)
    for settings in ({}, {"enable.idempotence": True}):
        assert "POLICY_VIOLATION" in refusal_of(Producer({"bootstrap.servers": node.bootstrap, **settings}))
    transactional = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": "x"})
    with pytest.raises(KafkaException, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
        transactional.init_transactions(PATIENCE_S)
    (refused,) = admin.create_topics([NewTopic("new", 1, 1)]).values()
    with pytest.raises(KafkaException, match="read-only"):
        refused.result(PATIENCE_S)
    consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    (message,) = consumer.consume(1, PATIENCE_S)
    assert message.value() == b"there"
    consumer.commit(message=message, asynchronous=False)
    assert consumer.committed([TopicPartition("t", 0)], timeout=PATIENCE_S)[0].offset == 1
    consumer.close()
    server.control("POST", "/v1/reset")
    server.advance(10 * 86_400_000)
    assert len(look(node.bootstrap, ()).records["t", 0, UNCOMMITTED]) == 1
    node.stop()
    assert fingerprint(node.data) == before
