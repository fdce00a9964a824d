"""DescribeCluster: core B.4, DCL-01."""

import pytest

from broker.handlers.describe_cluster import API
from broker.request.context import AclOperation, ResourceType
from protocol.errors import ErrorCode
from protocol.messages.describe_cluster import DescribeClusterRequest
from tests.handlers.admin_harness import CLUSTER_ID, AdminStage

NOT_ASKED = -(2**31)


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_brokers_are_listed_by_the_listeners_addresses(version: int) -> None:
    """With the cluster's id and a broker that takes requests for the controller."""
    answer = await AdminStage(2).ask(API, DescribeClusterRequest(), version)
    assert (answer.error_code, answer.error_message, answer.cluster_id) == (ErrorCode.NONE, None, CLUSTER_ID)
    assert [(b.broker_id, b.host, b.port) for b in answer.brokers] == [(1, "b1", 9091), (2, "b2", 9092)]
    assert (answer.controller_id, answer.cluster_authorized_operations) == (1, NOT_ASKED)


async def test_fenced_brokers_are_listed_on_request() -> None:
    """KIP-1073; they are no controllers."""
    stage = AdminStage(2)
    stage.stop(1)
    plain = await stage.ask(API, DescribeClusterRequest())
    assert ([b.broker_id for b in plain.brokers], plain.controller_id) == ([2], 2)
    every = await stage.ask(API, DescribeClusterRequest(include_fenced_brokers=True))
    assert [(b.broker_id, b.is_fenced) for b in every.brokers] == [(1, True), (2, False)]


async def test_authorized_operations_need_describe() -> None:
    """With DESCRIBE on the cluster all of its operations are listed, without it none."""
    stage, request = AdminStage(), DescribeClusterRequest(True)
    assert (await stage.ask(API, request)).cluster_authorized_operations == 8096
    denied = {(AclOperation.DESCRIBE, ResourceType.CLUSTER)}
    assert (await stage.ask(API, request, denied=denied)).cluster_authorized_operations == 0
