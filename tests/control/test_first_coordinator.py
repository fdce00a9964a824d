"""The first FindCoordinator of a cluster is answered at once, and as Kafka does (core B.6) where that is asked for."""

from pathlib import Path
from typing import Any

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
    (coordinator,) = wire.call(ApiKey.FIND_COORDINATOR, 4, request).coordinators
    code: ErrorCode = coordinator.error_code
    return code


def reset(server: Server) -> None:
    """Reset the cluster; connections stay."""
    server.control("POST", "/v1/reset", {})


@pytest.mark.parametrize("kind", [GROUP, TRANSACTION])
def test_after_a_reset_the_first_request_finds_a_coordinator(broker_with: BrokerWith, kind: int) -> None:
    """After a reset the first request finds a coordinator, without a pause for the client."""
    server = broker_with(settings=SETTINGS)
    wire = server.wire()
    reset(server)
    assert first_code(wire, kind) is ErrorCode.NONE


@pytest.mark.parametrize(("kind", "seed"), [(GROUP, 4101), (TRANSACTION, 4102)])
def test_in_memory_the_first_request_finds_a_coordinator(broker_with: BrokerWith, kind: int, seed: int) -> None:
    """Before any reset; no other test has this seed, so the process is new."""
    assert first_code(broker_with(settings=SETTINGS, seed=seed).wire(), kind) is ErrorCode.NONE


@pytest.mark.parametrize("option", ["as_version", "data_dir"])
def test_a_release_or_a_directory_begins_as_kafka_does(broker_with: BrokerWith, tmp_path: Path, option: str) -> None:
    """An emulated release or a data directory begins without coordinators, until the first reset."""
    options: dict[str, Any] = {"as_version": "4.3"} if option == "as_version" else {"data_dir": str(tmp_path)}
    server = broker_with(settings=SETTINGS, seed=4103, **options)
    wire = server.wire()
    assert first_code(wire, GROUP) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert first_code(wire, GROUP) is ErrorCode.NONE
    reset(server)
    assert first_code(wire, GROUP) is ErrorCode.NONE


@pytest.mark.parametrize("kind", [GROUP, TRANSACTION])
def test_a_lazy_cluster_answers_as_kafka_does(broker_with: BrokerWith, kind: int) -> None:
    """COORDINATOR_NOT_AVAILABLE while the internal topic is created."""
    server = broker_with(settings=SETTINGS, lazy_coordinators=True)
    wire = server.wire()
    for _ in range(2):
        assert first_code(wire, kind) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert first_code(wire, kind) is ErrorCode.NONE
        reset(server)
