"""A client called ``__admin_client`` may write into the coordinators' logs; coordinators survive any record there."""

import itertools

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.conftest import BrokerWith
from tests.scenarios.core.asking import produced
from tests.scenarios.core.batches import batch
from tests.serving import Server, until
from tests.wire import Wire

SETTINGS = {
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
}
KEYS = [
    b"",
    b"k",
    b"\0\1",
    b"\0\0\xff\xff",
    b"\0\0\0\x09abc",
    b"\0\1\0\1g\0\1t\0\0\0\0",
    b"\0\2\0\xffg",
    b"\0\2\0\1g",
    b"\0\0\0\2tx",
    b"\xff\xff",
]
VALUES = [b"", b"\0", b"\0\4garbage", b"\0\1\0\0\0\0", b"\xff" * 30, None]


def coordinated(broker: Server) -> Wire:
    """A connection to a broker that coordinates groups and transactions."""
    wire = broker.wire(client_id="__admin_client")
    for kind in (0, 1):
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=["tx"])
        until(lambda a=request: not wire.call(ApiKey.FIND_COORDINATOR, 4, a).coordinators[0].error_code, "coordinator")  # type: ignore[misc]
    return wire


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_garbage_in_the_logs_stops_no_coordinator(broker_with: BrokerWith, how: str) -> None:
    """It is passed over when the broker starts again; groups and producers are served as before."""
    broker = broker_with(settings=SETTINGS)
    wire = coordinated(broker)
    first = wire.call(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest("mine", 10_000))
    for topic, key, value in itertools.product(("__consumer_offsets", "__transaction_state"), KEYS, VALUES):
        produced(wire, topic, batch(value, keys=[key]))
    broker.control("POST", f"/v1/brokers/1/{how}")
    broker.control("POST", "/v1/brokers/1/start")
    wire = coordinated(broker)
    second = wire.call(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest("mine", 10_000))
    assert (second.error_code, second.producer_id) == (ErrorCode.NONE, first.producer_id)
    assert second.producer_epoch == first.producer_epoch + 1
    joining = JoinGroupRequest("g", 10_000, "", "x", [JoinGroupRequestProtocol("p", b"")], rebalance_timeout_ms=100)
    assert wire.call(ApiKey.JOIN_GROUP, 3, joining).error_code is ErrorCode.NONE
