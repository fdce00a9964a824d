"""log.message.format.version: what brokers were left at when they were upgraded before their clients (KIP-185's case).

The answers are those of real brokers of 2.8 and 3.0 that were started with the setting.
"""

import pytest

from protocol.errors import ErrorCode
from tests.conftest import BrokerWith
from tests.releases.asking import Client
from tests.serving import Server


def idempotent(server: Server, configs: dict[str, str]) -> tuple[ErrorCode, int]:
    """How an idempotent producer fares on a topic with these settings, and the magic of a plain record there."""
    client = Client(server.addresses[0], 5)
    topic = client.topic(configs)
    code = client.produce(topic, client.producer(), 0).error_code
    client.produce(topic)
    records = bytes(client.fetch(topic).records)
    client.wire.close()
    return code, records[16]


@pytest.mark.parametrize(
    ("name", "configs", "expected"),
    [
        ("2.8", {}, (ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, 1)),
        ("2.8", {"message.format.version": "2.0"}, (ErrorCode.NONE, 2)),
        ("3.0", {}, (ErrorCode.NONE, 2)),
    ],
)
def test_topics_inherit_the_broker_s_format(
    broker_with: BrokerWith, name: str, configs: dict[str, str], expected: tuple[ErrorCode, int]
) -> None:
    """Unless they have their own, and up to 2.8 (KIP-724)."""
    settings = {"log.message.format.version": "0.10.2", "offsets.topic.num.partitions": "4"}
    left_behind = broker_with(settings=settings, as_version=name)
    assert idempotent(left_behind, configs) == expected
