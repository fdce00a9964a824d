"""The first FindCoordinator of a cluster is answered as Kafka does (core B.6), and at once after a reset."""

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.conftest import BrokerWith
from tests.scenarios.groups.members import SETTINGS
from tests.serving import Server
from tests.wire import Wire

GROUP, TRANSACTION = 0, 1


def first_code(wire: Wire, kind: int) -> ErrorCode:
    """The error code of one FindCoordinator."""
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=["x"])
    (found,) = wire.call(ApiKey.FIND_COORDINATOR, 4, request).coordinators
    code: ErrorCode = found.error_code
    return code


def reset(server: Server) -> None:
    """Reset the cluster; connections stay."""
    server.control("POST", "/v1/reset", {})


@pytest.mark.parametrize("kind", [GROUP, TRANSACTION])
def test_after_a_reset_the_first_request_finds_a_coordinator(broker_with: BrokerWith, kind: int) -> None:
    """Without a pause for the client."""
    server = broker_with(settings=SETTINGS)
    wire = server.wire()
    reset(server)
    assert first_code(wire, kind) is ErrorCode.NONE


@pytest.mark.parametrize("kind", [GROUP, TRANSACTION])
def test_a_lazy_cluster_answers_as_kafka_does(broker_with: BrokerWith, kind: int) -> None:
    """COORDINATOR_NOT_AVAILABLE while the internal topic is created."""
    server = broker_with(settings=SETTINGS, lazy_coordinators=True)
    wire = server.wire()
    for _ in range(2):
        assert first_code(wire, kind) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert first_code(wire, kind) is ErrorCode.NONE
        reset(server)
