"""The groups' side of the scenarios: offsets committed plainly and in transactions, and members that commit them."""

import asyncio
from collections.abc import Mapping
from typing import Any

from protocol.apis import ApiKey
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.scenarios.transactions.client import Client
from tests.scenarios.transactions.partitions import FOO

G = "g"
MEMBER_ID_REQUIRED = 79
Stored = tuple[int, int, str]
"""Error code, offset, metadata."""


async def pending(
    c: Client,
    producer: tuple[int, int],
    offsets: Mapping[int, int],
    *,
    v: int = 5,
    group: str = G,
    name: str = "tx",
    metadata: Mapping[int, str] | None = None,
    **member: Any,
) -> dict[int, int]:
    """TxnOffsetCommit for partitions of foo: code per partition."""
    partitions = [
        TxnOffsetCommitRequestPartition(index, offset, (metadata or {}).get(index, ""))
        for index, offset in offsets.items()
    ]
    topics = [TxnOffsetCommitRequestTopic(FOO, partitions)]
    request = TxnOffsetCommitRequest(name, group, *producer, topics, **member)
    answer = await c.ask(await c.coordinator(group, 0), ApiKey.TXN_OFFSET_COMMIT, v, request)
    return {p.partition_index: int(p.error_code) for p in answer.topics[0].partitions}


async def committed(c: Client, offset: int, *, partition: int = 0, group: str = G) -> None:
    """OffsetCommit without a member, accepted."""
    topics = [OffsetCommitRequestTopic(FOO, [OffsetCommitRequestPartition(partition, offset)])]
    answer = await c.ask(
        await c.coordinator(group, 0), ApiKey.OFFSET_COMMIT, 8, OffsetCommitRequest(group, topics=topics)
    )
    assert not answer.topics[0].partitions[0].error_code, answer


async def stored(c: Client, *, partition: int = 0, stable: bool = False, v: int = 8, group: str = G) -> Stored:
    """OffsetFetch of one partition of foo."""
    topics = [OffsetFetchRequestTopics(FOO, [partition])]
    request = OffsetFetchRequest(require_stable=stable, groups=[OffsetFetchRequestGroup(group, topics)])
    answer = await c.ask(await c.coordinator(group, 0), ApiKey.OFFSET_FETCH, v, request)
    partition_offset = answer.groups[0].topics[0].partitions[0]
    return int(partition_offset.error_code), partition_offset.committed_offset, partition_offset.metadata


async def all_stored(c: Client, *, stable: bool) -> list[tuple[int, int, int]]:
    """OffsetFetch of everything: partition, offset, code."""
    request = OffsetFetchRequest(require_stable=stable, groups=[OffsetFetchRequestGroup(G, None)])
    answer = await c.ask(await c.coordinator(G, 0), ApiKey.OFFSET_FETCH, 8, request)
    return [
        (p.partition_index, p.committed_offset, int(p.error_code))
        for topic in answer.groups[0].topics
        for p in topic.partitions
    ]


async def member_of(c: Client, instance: str | None = None, generations: int = 1) -> tuple[str, int]:
    """The only member of the classic group after so many rebalances: member id and generation."""
    broker, member_id, generation = await c.coordinator(G, 0), "", 0
    while generation < generations:
        protocol = JoinGroupRequestProtocol("range", b"%d" % generation)
        request = JoinGroupRequest(G, 10_000, member_id, "consumer", [protocol], 60_000, instance)
        wire = await c.at(broker)
        wire.send(ApiKey.JOIN_GROUP, 5, request)
        waiting = asyncio.ensure_future(wire.answer())
        while not waiting.done():
            await c.settle()  # a rebalance begins by a timer, if only by one of 0 ms
        answer = waiting.result()
        member_id = answer.member_id
        if answer.error_code == MEMBER_ID_REQUIRED:
            continue
        assert not answer.error_code, answer
        generation = answer.generation_id
        assigned = [SyncGroupRequestAssignment(member_id, b"")]
        sync = SyncGroupRequest(G, generation, member_id, assigned, instance)
        answer = await c.ask(broker, ApiKey.SYNC_GROUP, 3, sync)
        assert not answer.error_code, answer
    return member_id, generation
