"""Of several settings that are bad, the one that Kafka names: seen on 4.3.1."""

from collections.abc import Callable, Mapping

import pytest

from broker.settings import BrokerSettings, client_metrics, topics
from broker.settings.definition_order import as_defined
from broker.settings.dynamic import validate_broker
from broker.settings.tables import BROKER, TOPIC
from protocol.errors import KafkaError

CONTROLLER = (
    "requirement failed: controller.listener.names must contain at least one value appearing in the 'listeners' "
    "configuration when running the KRaft controller role"
)

CODEC = (
    "Invalid value w for configuration compression.type: String must be one of: uncompressed, zstd, lz4, snappy, gzip, "
    "producer"
)


def of_broker(texts: Mapping[str, str]) -> None:
    """A change of broker 1."""
    validate_broker(texts, BrokerSettings(1), per_broker=True)


def of_topic(texts: Mapping[str, str]) -> None:
    """A topic's settings."""
    topics.validate(texts, BrokerSettings(1))


@pytest.mark.parametrize(
    ("check", "texts", "message"),
    [
        (
            of_broker,
            {"num.io.threads": "y", "message.max.bytes": "x"},
            "Invalid value x for configuration message.max.bytes: Not a number of type INT",
        ),
        (
            of_broker,
            {"log.retention.ms": "x", "log.segment.bytes": "y", "compression.type": "w"},
            CODEC,
        ),
        (
            of_broker,
            {"node.id": "1", "broker.id": "2", "log.dirs": "z", "process.roles": "q"},
            "Cannot update these configs dynamically: [node.id, process.roles, broker.id, log.dirs]",
        ),
        (of_broker, {"log.cleaner.threads": "0"}, "/ by zero"),
        (of_broker, {"listeners": "PLAINTEXT://:9092"}, CONTROLLER),
        (
            of_topic,
            {"min.insync.replicas": "0", "retention.ms": "-5", "max.message.bytes": "-1"},
            "Invalid value -5 for configuration retention.ms: Value must be at least -1",
        ),
        (
            client_metrics.validate,
            {"share.session.timeout.ms": "1", "consumer.session.timeout.ms": "x"},
            "Unknown client metrics configuration: consumer.session.timeout.ms",
        ),
    ],
)
def test_kafka_names_one_of_them(
    check: Callable[[Mapping[str, str]], None], texts: dict[str, str], message: str
) -> None:
    """The first that it defines where it parses, the first of a hash table where it looks for names."""
    with pytest.raises(KafkaError) as refused:
        check(texts)
    assert refused.value.message == message
    with pytest.raises(KafkaError) as refused:
        check(dict(reversed(texts.items())))
    assert refused.value.message == message


def test_the_order_knows_the_settings() -> None:
    """Those that releases before had, and ours, come last."""
    for kind, table in (("broker", BROKER), ("topic", TOPIC)):
        ordered = as_defined(kind, [*table, "x.y"])
        assert sorted(ordered) == sorted([*table, "x.y"])
    assert as_defined("topic", ["retention.ms", "x.y", "segment.bytes"]) == ["segment.bytes", "retention.ms", "x.y"]
