"""Requests of very many entries: other clients are served in between."""

import asyncio
from typing import Any

import pytest

from broker.handlers import (
    add_partitions_to_txn,
    consumer_group_describe,
    delete_groups,
    describe_configs,
    describe_groups,
    describe_producers,
    describe_transactions,
    find_coordinator,
    write_txn_markers,
)
from broker.request.api import AnyApi
from broker.time import clock
from protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTransaction
from protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from protocol.messages.describe_transactions import DescribeTransactionsRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from tests.handlers.admin_harness import AdminStage
from tests.handlers.group_harness import Stage
from tests.versions import SERVED

MANY = 40
NAMES = [f"n{number}" for number in range(MANY)]


@pytest.mark.parametrize(
    ("stage", "api", "request_"),
    [
        (
            AdminStage,
            describe_configs.API,
            DescribeConfigsRequest([DescribeConfigsResource(2, each) for each in NAMES]),
        ),
        (AdminStage, describe_producers.API, DescribeProducersRequest([TopicRequest("foo", list(range(MANY)))])),
        (AdminStage, find_coordinator.API, FindCoordinatorRequest(key_type=0, coordinator_keys=NAMES)),
        (AdminStage, describe_transactions.API, DescribeTransactionsRequest(["", *NAMES])),
        (
            AdminStage,
            add_partitions_to_txn.API,
            AddPartitionsToTxnRequest(transactions=[AddPartitionsToTxnTransaction(each) for each in NAMES]),
        ),
        (
            AdminStage,
            write_txn_markers.API,
            WriteTxnMarkersRequest(
                [WritableTxnMarker(1, 0, True, [WritableTxnMarkerTopic("none", list(range(MANY)))])]
            ),
        ),
        (Stage, describe_groups.API, DescribeGroupsRequest(NAMES)),
        (Stage, consumer_group_describe.API, ConsumerGroupDescribeRequest(NAMES)),
        (Stage, delete_groups.API, DeleteGroupsRequest(NAMES)),
    ],
    ids=lambda each: getattr(getattr(each, "key", None), "name", ""),
)
async def test_others_are_served_between_two_entries(
    stage: type[AdminStage] | type[Stage], api: AnyApi, request_: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As soon as a slice is over; here each entry takes one."""
    ticks = iter(range(0, 10**15, 10**9))
    monkeypatch.setattr(clock, "stopwatch_ns", lambda: next(ticks))
    turns, ended = 0, False

    async def other() -> None:
        nonlocal turns
        while not ended:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    await stage().ask(api, request_, SERVED[api.key].versions[1])
    ended = True
    await beside
    assert turns >= MANY - 1
